// Finds the config file, and checks its owner, who could send credentials away.

import { lstatSync, type Stats } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { whileReplaced } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import type { Environment } from "../yaml/expand.ts";
import { ConfigError } from "../yaml/problems.ts";

const FILE_NAME = "gateway.yaml";

/** A relative XDG_CONFIG_HOME would depend on the current folder. */
export function configHome(env: Environment): string {
  const named = env["XDG_CONFIG_HOME"] ?? "";
  return isAbsolute(named) ? named : join(env["HOME"] || homedir(), ".config");
}

export function stateFolder(env: Environment): string {
  const named = env["XDG_STATE_HOME"] ?? "";
  return join(isAbsolute(named) ? named : join(env["HOME"] || homedir(), ".local/state"), "gateway");
}

/** Never in the current folder, which may be a cloned repository. */
export function placeConfig(flag: string | undefined, env: Environment, folder = process.cwd()): string {
  const named = readNamed(flag, env);
  return named === "" ? join(configHome(env), "gateway", FILE_NAME) : resolve(folder, named);
}

function readNamed(flag: string | undefined, env: Environment): string {
  return flag ?? env["GATEWAY_CONFIG"] ?? "";
}

export function hasConfig(flag: string | undefined, env: Environment, folder = process.cwd()): boolean {
  return readNamed(flag, env) !== "" || isThere(placeConfig(flag, env, folder));
}

export function findConfig(flag: string | undefined, env: Environment, folder = process.cwd()): string {
  const place = placeConfig(flag, env, folder);
  if (hasConfig(flag, env, folder)) return place;
  const none = `There is no config file ${place}.`;
  const local = join(folder, FILE_NAME);
  if (local !== place && isThere(local)) throw new ConfigError(`${none} ${LOCAL_ADVICE}`);
  const ways = "Write one with `gateway init`, name one with --config, or try `gateway serve --demo`.";
  throw new ConfigError(`${none} ${ways}`, [], "gateway init");
}

const LOCAL_ADVICE =
  `The ${FILE_NAME} in this folder is not read by itself: a file that came with a repository could send your ` +
  `credentials to a stranger. If it is yours, name it: \`--config ${FILE_NAME}\`.`;

/** A broken link counts, too: the error of opening it says what is wrong. */
function isThere(path: string): boolean {
  try {
    whileReplaced(path, () => lstatSync(path));
    return true;
  } catch (error) {
    return !["ENOENT", "ENOTDIR"].includes(codeOf(error));
  }
}

/** Read from the open file, which nobody can replace after the check. */
export type Ownership = Pick<Stats, "uid" | "mode">;

const OTHERS_WRITE = 0o002;
const GROUP_WRITES = 0o020;
const NOT_OWNER = 0o077;

/** The user's ids. With sudo, the caller's id counts, too. */
export function listOwnIds(env: Environment = process.env): number[] {
  const own = process.getuid?.();
  if (own === undefined) return [];
  const caller = own === 0 ? Number(env["SUDO_UID"] || own) : own;
  return Number.isSafeInteger(caller) ? [own, caller] : [own];
}

/** The file must be the user's or root's, and not writable by everybody.
 *  Windows has no such modes. */
export function requireTrust(path: string, { uid, mode }: Ownership, ownIds = listOwnIds()): void {
  if (!PLATFORM.hasModes) return;
  const [own = 0] = ownIds;
  if (uid !== 0 && !ownIds.includes(uid)) {
    const what = `The config file ${path} belongs to another user (id ${uid}). If you trust it, make it yours`;
    throw refuse(what, `${own === 0 ? "" : "sudo "}chown ${own} ${quoteWord(path)}`);
  }
  if ((mode & OTHERS_WRITE) !== 0) {
    const what = `Everybody can change the config file ${path}. Look through it, then keep others out`;
    throw refuse(what, `chmod 600 ${quoteWord(path)}`);
  }
}

function refuse(what: string, fix: string): ConfigError {
  return new ConfigError(`${what}: ${fix}`, [], fix);
}

export function warnOfMode(path: string, { mode }: Ownership): string[] {
  if (!PLATFORM.hasModes || (mode & NOT_OWNER) === 0) return [];
  const what =
    (mode & GROUP_WRITES) === 0
      ? "can be read by others on this machine"
      : "can be changed by its group, which could send your credentials anywhere";
  return [`${path} ${what}: chmod 600 ${quoteWord(path)}`];
}
