// The gateway's source as one function, made anew for every simulated process: each has its
// own modules, and sees only the edges that it is given. Built from the files as they are,
// or with changes in memory: planted bugs never touch the tree.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dir, "../../..");

/** A text in a file that is replaced by another one. */
export interface Change {
  /** From the project's root. */
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

/** Pure, and dear to load: all processes share them. */
export const SHARED = ["zod", "yaml"];

/** The text of a function expression `(exports, require, module, …) => void`. */
export async function bundleProgram(changes: readonly Change[] = []): Promise<string> {
  const files = new Map<string, string>();
  for (const { file, from, to } of changes) {
    const path = join(ROOT, file);
    const text = files.get(path) ?? readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} does not contain what is to be changed: ${from}`);
    files.set(
      path,
      text.replace(from, () => to),
    );
  }
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "../program.ts")],
    target: "bun",
    format: "cjs",
    external: SHARED,
    plugins: [
      {
        name: "changes",
        setup(build) {
          if (files.size === 0) return;
          build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
            contents: files.get(path) ?? readFileSync(path, "utf8"),
            loader: "ts",
          }));
        },
      },
    ],
  });
  const [output] = built.outputs;
  if (output === undefined) throw new Error(built.logs.map(({ message }) => message).join("\n"));
  const text = await output.text();
  return text.slice(text.indexOf("(function("));
}
