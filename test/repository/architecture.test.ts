// Who may import whom: lib → config → billing → dialects → bridges → recording → gateway → web → cli.

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { VERSION } from "../../src/lib/version.ts";

const SRC = join(import.meta.dir, "../../src");
const ORDER = ["lib", "config", "billing", "dialects", "bridges", "recording", "gateway", "web", "cli"];

/** The folders of src that a folder may import from. */
function allowedFor(folder: string): Set<string> {
  if (folder === "demo") return new Set(["demo", "lib"]);
  if (folder === "main.ts") return new Set(["main.ts", "commands", "cli"]);
  if (folder === "commands") return new Set(["commands", "cli", "config"]);
  const allowed = ORDER.slice(0, ORDER.indexOf(folder) + 1);
  return new Set(folder === "cli" ? [...allowed, "demo"] : allowed);
}

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  const found = text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.tsx?)"/g);
  return [...found].map(([, path]) => normalize(join(dirname(file), path ?? "")));
}

const files = [...new Glob("**/*.{ts,tsx}").scanSync(SRC)].map((file) => file.replaceAll("\\", "/"));
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

/** docs/architecture.md says what each of them is. */
const REQUEST_NOUNS = new Set(["Request", "Match", "Attempt", "ChannelResponse"]);

/** Inside these folders, a subfolder or file imports itself and what is left of it. `(base)`: all other files. */
const INNER_ORDER: Readonly<Record<string, string>> = {
  gateway:
    "observe intake upstream channels request.ts gateway.ts bill deliver attempt control pipeline.ts websocket server.ts start.ts",
  cli: "terminal access (base) keys tools catalog money live channels setup doctor serve console completions",
};

test.each(Object.entries(INNER_ORDER))("inside %s, imports follow the order: %s", (folder, order) => {
  const places = order.split(" ");
  const rankOf = (file: string): number => {
    const [, place = "", ...rest] = file.split("/");
    const rank = places.indexOf(place);
    return rank < 0 && rest.length === 0 ? places.indexOf("(base)") : rank;
  };
  const inside = files.filter((file) => folderOf(file) === folder);
  expect(inside.filter((file) => rankOf(file) < 0)).toEqual([]);
  const strays = inside.flatMap((file) =>
    importsOf(file)
      .filter((imported) => folderOf(imported) === folder && rankOf(imported) > rankOf(file))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(strays).toEqual([]);
});

test("the browser's side imports only itself, the types of its requests, and what runs in a browser", () => {
  const page = files.filter((file) => file.startsWith("web/page/"));
  expect(page.length).toBeGreaterThan(0);
  const allowed =
    /^(web\/page\/.*|web\/api\.ts|config\/limit-names\.ts|lib\/(money|traffic|text\/(allowance|printable))\.ts|lib\/sse\/sse-parser\.ts)$/;
  const strays = page.flatMap((file) =>
    importsOf(file)
      .filter((imported) => !allowed.test(imported))
      .map((imported) => `${file} imports ${imported}`),
  );
  expect(strays).toEqual([]);
});

test("code that changes the config waits for the running gateway", () => {
  const writers = files.filter((file) => /\beditConfig\(/.test(readFileSync(join(SRC, file), "utf8")));
  expect(writers.sort()).toEqual(["cli/access/config.ts", "config/file/replace.ts", "web/keys.ts"]);
});

test("no files import each other in a circle, type imports included", () => {
  expect(findCycles()).toEqual([]);
});

/** One circle of each file that closes one: "a.ts → b.ts → a.ts". */
function findCycles(): string[] {
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) cycles.push([...path.slice(start), file].join(" → "));
    if (start >= 0 || done.has(file)) return;
    for (const imported of importsOf(file)) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  return cycles;
}

test("the name of an exported type is declared once in a layer, and the nouns of a request once in all", () => {
  const places = new Map<string, string[]>();
  for (const file of files) {
    const text = readFileSync(join(SRC, file), "utf8");
    for (const [, exported, name = ""] of text.matchAll(/^(export )?(?:interface|type|class) (\w+)/gm)) {
      if (exported === undefined && !REQUEST_NOUNS.has(name)) continue;
      const place = REQUEST_NOUNS.has(name) ? name : `${folderOf(file)}: ${name}`;
      places.set(place, [...(places.get(place) ?? []), file]);
    }
  }
  for (const noun of REQUEST_NOUNS) expect([noun, places.get(noun)?.length]).toEqual([noun, 1]);
  expect([...places].filter(([, declared]) => declared.length > 1)).toEqual([]);
});

/** Without a README. Beyond this, a folder is a list and no longer a topic. */
const MAX_ENTRIES = 16;

test.each(["src", "test"])("no folder of %s has more than sixteen entries beside its README", (root) => {
  const entries = new Map<string, Set<string>>();
  for (const file of new Glob("**/*").scanSync({ cwd: join(SRC, "..", root), dot: true })) {
    const path = [root, ...file.replaceAll("\\", "/").split("/")];
    if (path.at(-1) === "README.md") path.pop();
    for (let depth = path.length - 1; depth > 0; depth -= 1) {
      const folder = path.slice(0, depth).join("/");
      entries.set(folder, (entries.get(folder) ?? new Set()).add(path[depth] ?? ""));
    }
  }
  const crowded = [...entries].filter(([, inside]) => inside.size > MAX_ENTRIES);
  expect(entries.size).toBeGreaterThan(10);
  expect(crowded.map(([folder, inside]) => `${folder}: ${inside.size}`)).toEqual([]);
});

test("only terminal.ts imports the prompts", () => {
  const importers = files.filter((file) =>
    readFileSync(join(SRC, file), "utf8").includes('"@clack/prompts"'),
  );
  expect(importers).toEqual(["cli/terminal/terminal.ts"]);
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
