// What a start loads: each file, and each module of the runtime, delays the first response. docs/performance.md has the times.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

const SRC = join(import.meta.dir, "../../src");
const transpiler = new Bun.Transpiler({ loader: "ts" });

interface Loaded {
  readonly files: ReadonlySet<string>;
  /** Of the runtime and of packages. */
  readonly modules: ReadonlySet<string>;
}

/** Follows static imports of values. What `import()` loads is not needed at once. */
function load(...entries: readonly string[]): Loaded {
  const files = new Set<string>();
  const modules = new Set<string>();
  const visit = (file: string): void => {
    const name = relative(SRC, file).replaceAll("\\", "/");
    if (files.has(name)) return;
    files.add(name);
    const code = readFileSync(file, "utf8").replace(/^#!.*/, "");
    for (const { kind, path } of transpiler.scanImports(code)) {
      if (kind !== "import-statement") continue;
      if (!path.startsWith(".")) modules.add(path);
      else if (path.endsWith(".ts")) visit(join(dirname(file), path));
    }
  };
  for (const entry of entries) visit(join(SRC, entry));
  return { files, modules };
}

const SERVE = load("main.ts", "cli/serve/serve.ts");

const RARELY_NEEDED = [
  "cli/serve/demo.ts",
  "cli/serve/second-gateway.ts",
  "cli/serve/survey.ts",
  "cli/setup/init/init.ts",
  "cli/tools/programs/",
  "demo/",
  "web/assets.ts",
  "web/page/",
];

test("`gateway serve` starts without what only some starts need", () => {
  const isRare = (file: string): boolean => RARELY_NEEDED.some((rare) => file.startsWith(rare));
  expect([...SERVE.files].filter(isRare)).toEqual([]);
});

test("it loads at most 322 files", () => {
  expect(SERVE.files.size).toBeGreaterThan(200);
  expect(SERVE.files.size).toBeLessThanOrEqual(322);
});

/** zod marks each schema with this property. Prints how many schemas the files create when they are loaded. */
const COUNT_SCHEMAS = `
  const { defineProperty } = Object;
  let schemas = 0;
  Object.defineProperty = (object, name, property) => {
    if (name === "_zod") schemas += 1;
    return defineProperty(object, name, property);
  };
  await import("./cli/serve/serve.ts");
  console.log(schemas);
`;

// Without `z.lazy` at rarely needed schemas, there would be 676.
test("it creates the schemas of the config, and few others", () => {
  const { stdout } = Bun.spawnSync([process.execPath, "-e", COUNT_SCHEMAS], { cwd: SRC });
  const schemas = Number(stdout.toString());
  expect(schemas).toBeGreaterThan(100);
  expect(schemas).toBeLessThanOrEqual(317);
});

test("it loads none of the runtime's modules that are slow to load", () => {
  const slow = ["child_process", "crypto", "http", "https", "readline", "tls", "worker_threads"];
  expect(SERVE.modules).toContain("node:fs");
  expect(slow.filter((name) => SERVE.modules.has(`node:${name}`))).toEqual([]);
});

test("before a command is known, only the flags of commands are loaded", () => {
  const { files, modules } = load("main.ts");
  expect([...modules]).toEqual(["commander"]);
  expect(files.size).toBeLessThanOrEqual(25);
});
