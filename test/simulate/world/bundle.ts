// Bundles the gateway's source into one function, which is called for every simulated process: each process has its own
// modules, and sees only the runtime calls that it gets. The source is read from the files, with changes in memory:
// planted bugs never touch the files.

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

/** These are pure, and slow to load, so all processes share them. */
const SHARED = ["zod", "yaml"];

export interface Bundle {
  /** A function expression `(exports, require, module, …) => void`. */
  readonly text: string;
  /** Other files that the source reads, by name. */
  readonly assets: ReadonlyMap<string, Buffer>;
}

export async function bundleProgram(changes: readonly Change[] = []): Promise<Bundle> {
  const files = new Map<string, string>();
  for (const { file, from, to } of changes) {
    const path = join(ROOT, file);
    const text = files.get(path) ?? readFileSync(path, "utf8");
    if (!text.includes(from)) throw new Error(`${file} does not contain the text to replace: ${from}`);
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
  const [output, ...others] = built.outputs;
  if (output === undefined) throw new Error(built.logs.map(({ message }) => message).join("\n"));
  const text = await output.text();
  const assets = new Map<string, Buffer>();
  for (const other of others)
    assets.set(other.path.replace(/^.*\//, ""), Buffer.from(await other.arrayBuffer()));
  return { text: text.slice(text.indexOf("(function(")), assets };
}
