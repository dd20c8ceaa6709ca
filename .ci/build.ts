// `bun run build` makes dist/gateway for this machine. `bun run build --all` makes an executable for each platform that we
// ship to, and their checksums. `bun .ci/build.ts FILE` makes only FILE, with `--target windows-x64` for that platform.
// The executable needs nothing next to it.

import { createHash } from "node:crypto";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { parseArgs } from "node:util";

const TARGETS = [
  "bun-linux-x64",
  "bun-linux-arm64",
  "bun-linux-x64-musl",
  "bun-linux-arm64-musl",
  "bun-darwin-x64",
  "bun-darwin-arm64",
  "bun-windows-x64",
] as const;

/** The executable loads none of these from the current folder, which may be a stranger's repository: a bunfig.toml could
 *  run code in the executable, and a .env could set GATEWAY_CONFIG. */
const NOTHING_LOADED = {
  autoloadBunfig: false,
  autoloadDotenv: false,
  autoloadPackageJson: false,
  autoloadTsconfig: false,
} as const;

async function compile(outfile: string, target?: (typeof TARGETS)[number]): Promise<void> {
  const built = await Bun.build({
    entrypoints: ["src/main.ts", "src/gateway/api/worker.ts"],
    minify: true,
    bytecode: true,
    format: "esm",
    // A command loads only its own part: `--version` takes two thirds of the time that it takes without splitting.
    splitting: true,
    ...(target !== undefined && { define: { GATEWAY_TARGET: JSON.stringify(target.replace("bun-", "")) } }),
    compile: { outfile, ...NOTHING_LOADED, ...(target === undefined ? {} : { target }) },
  });
  if (!built.success) throw new AggregateError(built.logs, `could not build ${outfile}`);
  console.log(`built ${outfile}`);
}

async function hashFile(path: string): Promise<string> {
  return createHash("sha256")
    .update(await readFile(path))
    .digest("hex");
}

async function buildAll(): Promise<void> {
  const lines: string[] = [];
  for (const target of TARGETS) {
    const extension = target.includes("windows") ? ".exe" : "";
    const outfile = `dist/gateway-${target.replace("bun-", "")}${extension}`;
    await compile(outfile, target);
    lines.push(`${await hashFile(outfile)}  ${basename(outfile)}`);
  }
  await writeFile("dist/SHA256SUMS", `${lines.join("\n")}\n`);
}

const { positionals, values } = parseArgs({
  options: { all: { type: "boolean", default: false }, target: { type: "string" } },
  allowPositionals: true,
});
const [outfile] = positionals;
if (outfile !== undefined) {
  const target = TARGETS.find((each) => each === `bun-${values.target}`);
  if (values.target !== undefined && target === undefined) throw new Error(`no target ${values.target}`);
  await compile(outfile, target);
} else {
  await rm("dist", { recursive: true, force: true });
  await mkdir("dist", { recursive: true });
  if (values.all) await buildAll();
  else await compile(process.platform === "win32" ? "dist/gateway.exe" : "dist/gateway");
}
