// `bun run promises`: the test of each promise of docs/contract.md. A title that begins with a number ("P35: …") is a test of
// that promise. The command fails if a promise has no test.

import { Glob } from "bun";
import { readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { CHANGED } from "../test/promises/world/changed.ts";

const ROOT = join(import.meta.dir, "..");
const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

interface Proof {
  readonly file: string;
  readonly title: string;
  readonly isBuilt: boolean;
}

/** A string at the place of a title, after `test(`, `describe(`, `test.each(rows)(` or `notBuilt(`. */
const TITLE = /(notBuilt\(|[(])\s*(["'`])((?:P\d+(?:, )?)+): ((?:\\.|(?!\2)[^\\])*)\2/g;

function listProofs(): Map<number, Proof[]> {
  const proofs = new Map<number, Proof[]>();
  for (const file of [...new Glob("test/**/*.test.{ts,tsx}").scanSync(ROOT)].toSorted()) {
    for (const [, call, , numbers = "", title = ""] of read(file).matchAll(TITLE)) {
      const proof = { file, title, isBuilt: call !== "notBuilt(" };
      for (const [number] of numbers.matchAll(/\d+/g))
        proofs.set(Number(number), [...(proofs.get(Number(number)) ?? []), proof]);
    }
  }
  return proofs;
}

/** Lists the imports of src in the tests of promises, which must not know the source. */
function listSourceImports(): string[] {
  const queue = [...new Glob("test/promises/**/*.ts").scanSync(ROOT)];
  const seen = new Set(queue);
  const strays: string[] = [];
  for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
    for (const [, path = ""] of read(file).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)) {
      const target = normalize(join(dirname(file), path));
      if (target.startsWith("src/")) strays.push(`${file} imports ${target}`);
      else if (target.endsWith(".ts") && !seen.has(target)) {
        seen.add(target);
        queue.push(target);
      }
    }
  }
  return strays;
}

const promises = [...read("docs/contract.md").matchAll(/^P(\d+)\. (.+)$/gm)].map(
  ([, number, sentence = ""]) => ({ number: Number(number), sentence }),
);
const proofs = listProofs();
const problems = listSourceImports();
const open: string[] = [];
let tested = 0;

for (const [index, { number, sentence }] of promises.entries()) {
  if (number !== index + 1) problems.push(`docs/contract.md: P${number} follows P${index}`);
  const found = proofs.get(number) ?? [];
  const built = found.filter(({ isBuilt }) => isBuilt);
  if (found.length === 0) problems.push(`P${number} has no test: ${sentence}`);
  if (built.length > 0) tested += 1;
  for (const { file, title, isBuilt } of found) {
    console.log(`P${number}  ${file}  ${title}${isBuilt ? "" : "  (not built yet)"}`);
    if (!isBuilt) open.push(`P${number}  ${title}`);
  }
}
const known = new Set(promises.map(({ number }) => number));
const strange = [...proofs.keys()].filter((number) => !known.has(number));
for (const number of strange) problems.push(`P${number} is not in docs/contract.md`);

const list = (title: string, lines: readonly string[]): void =>
  console.log(`\n${title}: ${lines.length}\n${lines.map((line) => `  ${line}`).join("\n")}`);
if (open.length > 0) list("Not built yet", open);
const changed = Object.entries(CHANGED).map(([number, old]) => `P${number}  ${old}`);
if (changed.length > 0) list("Not kept by 0.2.0, which did this", changed);
if (problems.length > 0) list("Problems", problems);
console.log(`\n${promises.length} promises, ${tested} tested.`);
process.exit(problems.length > 0 ? 1 : 0);
