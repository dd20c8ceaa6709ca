// Who may import whom: lib → config → billing → dialects → bridges → gateway → cli.

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { VERSION } from "../src/lib/version.ts";

const SRC = join(import.meta.dir, "../src");
const ORDER = ["lib", "config", "billing", "dialects", "bridges", "gateway", "cli"];

/** The folders of src that a folder may import from. */
function allowedFor(folder: string): Set<string> {
  if (folder === "demo") return new Set(["demo", "lib"]);
  if (folder === "main.ts") return new Set(["main.ts", "cli", "lib"]);
  const allowed = ORDER.slice(0, ORDER.indexOf(folder) + 1);
  return new Set(folder === "cli" ? [...allowed, "demo"] : allowed);
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  const found = text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g);
  return [...found].map(([, path]) => normalize(join(dirname(file), path ?? "")));
}

const files = [...new Glob("**/*.ts").scanSync(SRC)].map((file) => file.replaceAll("\\", "/"));
const folderOf = (file: string): string => file.split("/")[0] ?? "";

test("a folder imports itself and what is left of it", () => {
  expect(files.length).toBeGreaterThan(50);
  const strays = files.flatMap((file) => {
    const allowed = allowedFor(folderOf(file));
    return importsOf(file)
      .filter((imported) => !allowed.has(folderOf(imported)))
      .map((imported) => `${file} imports ${imported}`);
  });
  expect(strays).toEqual([]);
});

const CLI_ORDER = [
  "keys",
  "tools",
  "catalog",
  "money",
  "live",
  "channels",
  "setup",
  "doctor",
  "serve",
  "console",
  "completions",
];

test("a folder of commands imports the files of cli/ itself and folders before it, and those files import no folder", () => {
  /** Files of cli/ itself: 0. */
  const rankOf = (file: string): number => {
    const [, folder = "", ...rest] = file.split("/");
    return rest.length === 0 ? 0 : CLI_ORDER.indexOf(folder) + 1 || Number.NaN;
  };
  const ours = files.filter((file) => folderOf(file) === "cli");
  expect(ours.filter((file) => Number.isNaN(rankOf(file)))).toEqual([]);
  const strays = ours.flatMap((file) =>
    importsOf(file)
      .filter((imported) => folderOf(imported) === "cli" && rankOf(imported) > rankOf(file))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(strays).toEqual([]);
});

test("only terminal.ts imports the prompts, and only main.ts imports the command tree", () => {
  const importers = files.filter((file) =>
    readFileSync(join(SRC, file), "utf8").includes('"@clack/prompts"'),
  );
  expect(importers).toEqual(["cli/terminal.ts"]);
});

test("a platform's or dialect's name is compared nowhere but in its own folders", () => {
  const branches = /(platform|dialect(\.name)?) ?[!=]== ?"|switch \((.*\.)?(platform|dialect(\.name)?)\)/;
  const strays = files
    .filter((file) => ["gateway", "billing"].includes(folderOf(file)))
    .filter((file) => branches.test(readFileSync(join(SRC, file), "utf8")));
  expect(strays).toEqual([]);
});

test("the program's version is the package's", async () => {
  expect(await Bun.file(join(SRC, "../package.json")).json()).toMatchObject({ version: VERSION });
});
