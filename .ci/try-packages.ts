// `bun .ci/try-packages.ts dist/gateway`: packs the executable for npm, installs it from the tarballs into an empty folder
// without network, and runs the smoke test on the installed command.

import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { makePackages, readOwner } from "./packages.ts";

/** A machine with glibc may have musl's loader as well. */
const GLIBC = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

function nameTarget(): string {
  const { platform, arch } = process;
  const system = platform === "win32" ? "windows" : platform;
  const isMusl = platform === "linux" && !GLIBC.some((path) => existsSync(path));
  return `gateway-${system}-${arch}${isMusl ? "-musl" : ""}${platform === "win32" ? ".exe" : ""}`;
}

async function runCommand(words: readonly string[], cwd: string, env = {}): Promise<void> {
  const child = Bun.spawn([...words], {
    cwd,
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...process.env, ...env },
  });
  if ((await child.exited) !== 0) throw new Error(`${words.join(" ")} failed.`);
}

const folder = await mkdtemp(join(tmpdir(), "gateway-packages-"));
try {
  const [from, app] = [join(folder, "dist"), join(folder, "app")];
  await mkdir(from);
  await mkdir(app);
  await copyFile(resolve(process.argv[2] ?? "dist/gateway"), join(from, nameTarget()));
  const { version }: { version: string } = JSON.parse(await Bun.file("package.json").text());
  const tarballs = await makePackages(await readOwner(), version, from, join(folder, "npm"));
  const empty = { npm_config_cache: join(folder, "cache") };
  await runCommand(["npm", "install", "--offline", "--no-audit", "--no-fund", ...tarballs], app, empty);
  await runCommand(["node", ".ci/smoke.mjs", join(app, "node_modules/.bin/gateway")], process.cwd());
} finally {
  await rm(folder, { recursive: true, force: true });
}
