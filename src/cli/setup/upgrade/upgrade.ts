// The action of `gateway upgrade`: takes a newer release when it is asked, checks that the owner has signed it, and puts it
// in the place of this executable.

import ownerFile from "../../../../packaging/owner.json" with { type: "json" };
import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { getErrorCode, getErrorMessage } from "../../../lib/errors.ts";
import { Refusal } from "../../../lib/refusal.ts";
import { quoteWord } from "../../../lib/text/shell-word.ts";
import { VERSION } from "../../../lib/version.ts";
import { fail, print, printNote } from "../../terminal/terminal.ts";
import { findOwnCommand } from "../../tools/background.ts";
import { restartWhenIdle } from "../service.ts";
import { namePrevious, replaceExecutable, swapPrevious, whileLocked } from "./executable.ts";
import { download, readRelease, type Release, type ReleaseSource } from "./release.ts";

/** Compiled in. */
const OWNER: { readonly npm: string; readonly releases: string | null; readonly public_key: string | null } =
  ownerFile;

/** Of a build for another system. */
declare const GATEWAY_TARGET: string | undefined;

export async function upgrade(flags: { readonly check?: true; readonly undo?: true }): Promise<void> {
  const [executable = "", script] = findOwnCommand();
  if (script !== undefined) fail("This gateway runs from its source: `git pull && npm install` upgrades it.");
  const place = realpathSync(executable);
  const manager = findManager(place);
  if (flags.undo === true) {
    if (manager !== null)
      fail(`A package manager installed this executable, and can install an earlier version.`);
    await undoUpgrade(place);
    return await restartWhenIdle();
  }
  const { releases, public_key: publicKey } = OWNER;
  if (manager !== null) return print(manager);
  if (releases === null || publicKey === null)
    return fail(
      "This executable was built without the address of its releases, and cannot upgrade itself. Put a newer one in its place.",
    );
  const changed = await upgradeExecutable({ releases, publicKey }, place, flags.check === true);
  if (changed) await restartWhenIdle();
}

/** False: nothing was changed. `current`: the version that runs. */
export async function upgradeExecutable(
  source: ReleaseSource,
  executable: string,
  isCheck: boolean,
  current = VERSION,
): Promise<boolean> {
  const release = await attempt(executable, () => readRelease(source));
  const order = Bun.semver.order(release.version, current);
  if (order < 0)
    fail(
      `The newest release is ${release.version}, which is older than this version, ${current}. Nothing was changed.`,
    );
  if (order === 0) {
    printNote(`${current} is the newest version.`);
    return false;
  }
  if (isCheck) {
    print(`${release.version} is there; this is ${current}. \`gateway upgrade\` takes it.`);
    return false;
  }
  await attempt(executable, () => whileLocked(executable, () => install(source, release, executable)));
  printNote(`${executable} is ${release.version} now. \`gateway upgrade --undo\` goes back to ${current}.`);
  return true;
}

async function install(source: ReleaseSource, release: Release, executable: string): Promise<void> {
  const name = nameExecutable();
  const checksum =
    release.checksums.get(name) ??
    fail(`The release ${release.version} has no ${name}. Nothing was changed.`);
  await replaceExecutable(
    executable,
    (take) => download(source, name, checksum, take),
    (draft) => requireVersion(draft, release.version),
  );
}

/** What does not start here must not take the place of what does. */
function requireVersion(draft: string, version: string): void {
  const { exitCode, stdout } = Bun.spawnSync([draft, "--version"], { stdin: "ignore", stderr: "ignore" });
  if (exitCode !== 0 || stdout.toString().trim() !== version)
    throw new Error(`the new executable does not start here as ${version}`);
}

async function undoUpgrade(executable: string): Promise<void> {
  await attempt(executable, () => whileLocked(executable, () => swapPrevious(executable)));
  const { stdout } = Bun.spawnSync([executable, "--version"], { stdin: "ignore", stderr: "ignore" });
  printNote(
    `${executable} is ${stdout.toString().trim()} again. The other one is ${namePrevious(executable)}.`,
  );
}

/** The build names it: a C library cannot be seen from inside. */
export function nameExecutable(): string {
  const system = process.platform === "win32" ? "windows" : process.platform;
  const target = typeof GATEWAY_TARGET === "string" ? GATEWAY_TARGET : `${system}-${process.arch}`;
  return `gateway-${target}${system === "windows" ? ".exe" : ""}`;
}

/** The command of the package manager that installed the executable; null: none did. */
export function findManager(executable: string): string | null {
  const path = executable.replaceAll("\\", "/");
  if (path.includes("/node_modules/")) return `npm install -g ${OWNER.npm}@latest`;
  if (/\/(?:Cellar|homebrew)\//.test(path)) return "brew upgrade gateway";
  return path.toLowerCase().includes("/scoop/apps/") ? "scoop update gateway" : null;
}

const ADVICE: Readonly<Record<string, string>> = {
  EACCES: "this user cannot write",
  EPERM: "this user cannot write",
  EROFS: "nobody can write, because its file system is read-only,",
  ENOSPC: "there is no space left",
};

async function attempt<T>(executable: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof Refusal) throw error;
    const advice = ADVICE[getErrorCode(error)];
    const why =
      advice === undefined ? getErrorMessage(error) : `${advice} in ${quoteWord(dirname(executable))}`;
    return fail(`The upgrade has failed, and nothing was changed: ${why}.`);
  }
}
