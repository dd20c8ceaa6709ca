// Tests which folder of src may import which: lib → config → billing → dialects → bridges → recording → gateway → web → cli.

import { expect, test } from "bun:test";
import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";

const SRC = join(import.meta.dir, "../../src");
const ORDER = ["lib", "config", "billing", "dialects", "bridges", "recording", "gateway", "web", "cli"];

/** Returns the folders of src that a folder may import from. */
function allowedFor(folder: string): Set<string> {
  if (folder === "demo") return new Set(["demo", "lib"]);
  if (folder === "main.ts") return new Set(["main.ts", "commands", "cli"]);
  if (folder === "commands") return new Set(["commands", "cli", "config"]);
  const allowed = ORDER.slice(0, ORDER.indexOf(folder) + 1);
  return new Set(folder === "cli" ? [...allowed, "demo"] : allowed);
}

const files = [...new Glob("**/*.{ts,tsx}").scanSync(SRC)].map((file) => file.replaceAll("\\", "/"));
const texts = new Map(files.map((file) => [file, readFileSync(join(SRC, file), "utf8")]));
const folderOf = (file: string): string => file.split("/")[0] ?? "";

function findImports(file: string, text: string): string[] {
  const found = text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.tsx?)"/g);
  return [...found].map(([, path]) => normalize(join(dirname(file), path ?? "")).replaceAll("\\", "/"));
}

const IMPORTS = new Map(files.map((file) => [file, findImports(file, texts.get(file) ?? "")]));

/** Lists the imports of these files that are not allowed, each in a sentence. */
function listStrays(of: readonly string[], isAllowed: (file: string, imported: string) => boolean): string[] {
  expect(of.length).toBeGreaterThan(0);
  return of.flatMap((file) =>
    (IMPORTS.get(file) ?? [])
      .filter((imported) => !isAllowed(file, imported))
      .map((imported) => `${file} imports ${imported}`),
  );
}

test("a folder of src imports only itself and the folders before it in the order", () => {
  expect(listStrays(files, (file, imported) => allowedFor(folderOf(file)).has(folderOf(imported)))).toEqual(
    [],
  );
});

/** Inside these folders, a subfolder or file imports itself and its left neighbours. `(base)`: all other files. */
const INNER_ORDER: Readonly<Record<string, string>> = {
  gateway:
    "observe cache intake upstream request.ts channels gateway.ts bill send deliver api pipeline.ts websocket server.ts start.ts",
  cli: "terminal access (base) keys tools catalog money live channels setup doctor serve completions",
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
  const isLeft = (file: string, imported: string) =>
    folderOf(imported) !== folder || rankOf(imported) <= rankOf(file);
  expect(listStrays(inside, isLeft)).toEqual([]);
});

test("docs/architecture.md has the folders of src, their order and a request's steps as in the code", () => {
  const text = readFileSync(join(SRC, "../docs/architecture.md"), "utf8");
  expect(text).toContain(`\`${ORDER.join(" → ")}\``);
  const rooms = [...text.matchAll(/^\| `src\/(\w+)\/` \|/gm)].map(([, room]) => room);
  const folders = files.map(folderOf).filter((each) => !each.includes("."));
  expect(new Set(rooms)).toEqual(new Set(folders));
  const steps = [...text.matchAll(/\*\*`(\w+)`\*\*/g)].map(([, step]) => step);
  const pipeline = texts.get("gateway/pipeline.ts") ?? "";
  const [, handle = "", serve = ""] =
    /function handle(.*?)\n}\n.*?function serve(.*?)\n}\n/s.exec(pipeline) ?? [];
  const places = steps.map((step) => `${serve}${handle}`.indexOf(`${step}(`));
  expect(steps.length).toBeGreaterThan(5);
  expect(places).toEqual(places.filter((place) => place > 0).toSorted((a, b) => a - b));
});

test("the browser's side imports types, itself, and code that runs in a browser", () => {
  const page = files.filter((file) => file.startsWith("web/page/"));
  const allowed =
    /^(web\/page\/.*|web\/(api|report-file)\.ts|config\/limit-names\.ts|billing\/reports\/words\.ts|lib\/(money|text\/(allowance|printable))\.ts)$/;
  const strays = page.flatMap((file) => {
    const values = (texts.get(file) ?? "").replaceAll(/import type \{[^}]*\} from [^;]*;/g, "");
    return findImports(file, values).filter((imported) => !allowed.test(imported));
  });
  expect(strays).toEqual([]);
});

test("no files import each other in a circle, type imports included", () => {
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file);
    if (start >= 0) circles.push([...path.slice(start), file].join(" → "));
    if (start >= 0 || done.has(file)) return;
    for (const imported of IMPORTS.get(file) ?? []) visit(imported, [...path, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(circles).toEqual([]);
});

test("src/gateway and src/billing never compare the name of a platform or dialect", () => {
  const branches = /(platform|dialect(\.name)?) ?[!=]== ?"|switch \((.*\.)?(platform|dialect(\.name)?)\)/;
  const strays = files
    .filter((file) => ["gateway", "billing"].includes(folderOf(file)))
    .filter((file) => branches.test(texts.get(file) ?? ""));
  expect(strays).toEqual([]);
});

test("only src/lib/http/fetch.ts and the page in the browser call fetch", () => {
  const strays = files
    .filter((file) => !file.startsWith("web/page/"))
    .filter((file) => /(?<![\w.#])fetch\(|\bfetch(?= *[;,)\]}])/.test(stripComments(texts.get(file) ?? "")));
  expect(strays).toEqual(["lib/http/fetch.ts"]);
});

function stripComments(text: string): string {
  return text.replaceAll(/\/\*[^]*?\*\/|^\s*\/\/.*$/gm, "");
}

const transpiler = new Bun.Transpiler({ loader: "ts" });

/** The files that these files load when they are imported. `import()` loads others later. */
function listLoaded(...entries: readonly string[]): string[] {
  const loaded = new Set<string>();
  const visit = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    for (const { kind, path } of transpiler.scanImports((texts.get(file) ?? "").replace(/^#!.*/, "")))
      if (kind === "import-statement" && path.startsWith(".")) visit(normalize(join(dirname(file), path)));
  };
  for (const entry of entries) visit(entry);
  return [...loaded];
}

test("`serve` loads no code that it rarely needs, and `--help` loads only src/{lib,config,cli,commands}", () => {
  const rare =
    /^(demo|web\/page)\/|^cli\/(setup\/init|serve\/demo|serve\/spans|channels\/change)\.ts|^web\/assets\.ts/;
  expect(listLoaded("main.ts", "cli/serve/serve.ts").filter((file) => rare.test(file))).toEqual([]);
  const early = /^(billing|dialects|bridges|recording|gateway|web|demo)\//;
  expect(listLoaded("main.ts").filter((file) => early.test(file))).toEqual([]);
});
