// Bundles the gateway's source into one function, which is called for every simulated process: each process has its own
// modules, and sees only the runtime calls that it gets. HTTP on sockets is below the simulated network, and left out.

import { readFileSync } from "node:fs";
import { join } from "node:path";

/** Modules that the simulated network replaces, with their replacements. */
const BELOW: ReadonlyMap<string, string> = new Map(
  [
    ["http/client.ts", "createClient"],
    ["http/serve.ts", "listen"],
  ].map(([file = "", name]) => [
    join(import.meta.dir, "../../../src/lib", file),
    `export function ${name}() {\n  throw new Error("the simulator has its own ${name}");\n}\n`,
  ]),
);

/** These modules keep no state and are slow to load, so all processes share them. */
const SHARED = ["zod", "yaml"];

export interface Bundle {
  /** The source as one function expression `(exports, require, module, …) => void`. */
  readonly text: string;
  /** Other files that the source reads, by name. */
  readonly assets: ReadonlyMap<string, Buffer>;
}

export async function bundleProgram(): Promise<Bundle> {
  const built = await Bun.build({
    entrypoints: [join(import.meta.dir, "../program.ts")],
    target: "bun",
    format: "cjs",
    external: SHARED,
    plugins: [
      {
        name: "imports",
        setup(build) {
          build.onLoad({ filter: /\.ts$/ }, ({ path }) => ({
            contents: BELOW.get(path) ?? importNow(readFileSync(path, "utf8")),
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
  return { text: text.slice(text.indexOf("(function("), text.lastIndexOf(")") + 1), assets };
}

/** Lazy imports of the source are loaded at the beginning: otherwise the bundler would wrap all modules. */
function importNow(text: string): string {
  const paths: string[] = [];
  const body = text.replaceAll(
    /\bimport\(("\.[^"]+")\)/g,
    (_, path: string) => `Promise.resolve(later${paths.push(path)})`,
  );
  const imports = paths.map((path, index) => `import * as later${index + 1} from ${path};\n`);
  return imports.join("") + body;
}
