// `bun .ci/packages.ts` makes npm packages of the executables in dist/, in the style of esbuild and biome: a small package
// with the command, and one package for each platform, of which npm installs the fitting one. It also fills in the
// Homebrew formula and the Scoop manifest. The names are in packaging/owner.json.

import { chmod, copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join, resolve } from "node:path";

export interface Owner {
  /** The npm package, with its scope. */
  readonly npm: string;
  /** The repository that has the releases. */
  readonly repository: string;
  /** The public key of minisign. Null: there is none yet. */
  readonly public_key: string | null;
}

export async function readOwner(): Promise<Owner> {
  const owner: Owner = JSON.parse(await readFile("packaging/owner.json", "utf8"));
  if (!/^@[\w.-]+\/[\w.-]+$/.test(owner.npm))
    throw new Error("packaging/owner.json: npm is not a scoped name.");
  return owner;
}

/** Throws until the owner has put names and the public key of the signature into packaging/owner.json. */
export function requireOwner({ npm, repository, public_key: key }: Owner): void {
  if ([npm, repository].some((name) => /^@?example\//.test(name)))
    throw new Error("packaging/owner.json still has the names of an example: put the real ones there.");
  if (key === null)
    throw new Error(
      "packaging/owner.json has no public_key: users check the checksums of a release with it.",
    );
}

/** Such as `linux-x64-musl`. */
interface Target {
  readonly os: string;
  readonly cpu: string;
  readonly musl: boolean;
}

/** From the name of an executable in dist/. Null for other files. */
export function readTarget(file: string): Target | null {
  const [, os, cpu, musl] = /^gateway-(linux|darwin|windows)-(x64|arm64)(-musl)?(?:\.exe)?$/.exec(file) ?? [];
  return os === undefined || cpu === undefined ? null : { os, cpu, musl: musl !== undefined };
}

export function describePlatform(owner: Owner, version: string, target: Target): Record<string, unknown> {
  const { os, cpu, musl } = target;
  return {
    ...describeCommon(owner, version),
    name: namePlatform(owner, target),
    description: `The executable of ${owner.npm} for ${os} on ${cpu}${musl ? " with musl" : ""}.`,
    os: [os === "windows" ? "win32" : os],
    cpu: [cpu],
    ...(os === "linux" && { libc: [musl ? "musl" : "glibc"] }),
    files: [os === "windows" ? "gateway.exe" : "gateway"],
  };
}

export function describeLauncher(
  owner: Owner,
  version: string,
  targets: readonly Target[],
): Record<string, unknown> {
  return {
    ...describeCommon(owner, version),
    name: owner.npm,
    description: "One local gateway between your AI tools and the platforms that serve models.",
    bin: { gateway: "bin/gateway.cjs" },
    files: ["bin"],
    engines: { node: ">=18" },
    optionalDependencies: Object.fromEntries(targets.map((target) => [namePlatform(owner, target), version])),
  };
}

function describeCommon({ repository }: Owner, version: string): Record<string, unknown> {
  return {
    version,
    license: "MIT",
    repository: { type: "git", url: `git+https://github.com/${repository}.git` },
    publishConfig: { access: "public" },
  };
}

function namePlatform({ npm }: Owner, { os, cpu, musl }: Target): string {
  return `${npm}-${os}-${cpu}${musl ? "-musl" : ""}`;
}

/** Replaces `{{version}}`, `{{repository}}` and `{{sha256 FILE}}`. Throws if a value is not known. */
export function fillIn(template: string, values: ReadonlyMap<string, string>): string {
  return template.replaceAll(/\{\{(.*?)\}\}/g, (_, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`The template names {{${name}}}, which has no value.`);
    return value;
  });
}

/** Packs what is in `from`. Returns the paths of the tarballs in `to`. */
export async function makePackages(
  owner: Owner,
  version: string,
  from: string,
  to: string,
): Promise<string[]> {
  await rm(to, { recursive: true, force: true });
  const targets = (await readdir(from)).flatMap((file) => {
    const target = readTarget(file);
    return target === null ? [] : [{ file, target }];
  });
  if (targets.length === 0)
    throw new Error(`${from} has no executables: run \`npm run build -- --all\` first.`);
  const packed: string[] = [];
  for (const { file, target } of targets) {
    const folder = join(to, "platforms", file.replace(".exe", ""));
    await mkdir(folder, { recursive: true });
    const program = join(folder, target.os === "windows" ? "gateway.exe" : "gateway");
    await copyFile(join(from, file), program);
    await chmod(program, 0o755);
    packed.push(await pack(folder, describePlatform(owner, version, target), to));
  }
  const folder = join(to, "launcher");
  await mkdir(join(folder, "bin"), { recursive: true });
  await copyFile("packaging/launch.cjs", join(folder, "bin/gateway.cjs"));
  await copyFile("README.md", join(folder, "README.md"));
  const launcher = describeLauncher(
    owner,
    version,
    targets.map(({ target }) => target),
  );
  return [await pack(folder, launcher, to), ...packed];
}

async function pack(folder: string, manifest: Record<string, unknown>, to: string): Promise<string> {
  await copyFile("LICENSE", join(folder, "LICENSE"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
  const child = Bun.spawn(["npm", "pack", "--json", "--pack-destination", resolve(to)], {
    cwd: folder,
    stdout: "pipe",
    stderr: "inherit",
  });
  const [text, status] = await Promise.all([child.stdout.text(), child.exited]);
  if (status !== 0) throw new Error(`npm pack failed in ${folder} with status ${status}.`);
  const [{ filename = "" } = {}]: { filename?: string }[] = JSON.parse(text);
  return join(to, basename(filename));
}

export async function writeManifests(owner: Owner, version: string, checksums: string): Promise<void> {
  const sums = checksums
    .trim()
    .split("\n")
    .map((line) => line.split(/\s+/))
    .map(([sum = "", file = ""]) => [`sha256 ${file}`, sum] as const);
  const values = new Map([["version", version], ["repository", owner.repository], ...sums]);
  for (const [template, file] of [
    ["packaging/gateway.rb", "dist/gateway.rb"],
    ["packaging/scoop.json", "dist/gateway.json"],
  ] as const)
    await writeFile(file, fillIn(await readFile(template, "utf8"), values));
}

if (import.meta.main) {
  const owner = await readOwner();
  const { version }: { version: string } = JSON.parse(await readFile("package.json", "utf8"));
  for (const path of await makePackages(owner, version, "dist", "dist/npm")) console.log(`packed ${path}`);
}
