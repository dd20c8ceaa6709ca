// Where the control path of a running gateway is: a unix socket that only this user can use. Its name is derived from
// the ledger's path, because a ledger has at most one gateway.

import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { homedir, tmpdir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { PLATFORM } from "../../lib/files/platform.ts";
import { sha256Hex } from "../../lib/secret.ts";

/** Both sides check that the folder belongs to this user alone, because everybody can write to a temporary folder. */
export interface ControlSocket {
  readonly folder: string;
  readonly path: string;
}

/** The possible places, best first. A command looks in all of them, because a gateway that runs as a service may have
 *  another environment. */
export function locateControl(
  ledgerPath: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ControlSocket[] {
  const name = `${sha256Hex(resolveLinks(ledgerPath)).slice(0, 16)}.sock`;
  return listFolders(env).map((folder) => ({ folder, path: join(folder, name) }));
}

function listFolders(env: Readonly<Record<string, string | undefined>>): string[] {
  if (!PLATFORM.hasModes)
    return [join(env["LOCALAPPDATA"] ?? join(homedir(), "AppData", "Local"), "gateway")];
  const { uid } = userInfo();
  const runtime = [env["XDG_RUNTIME_DIR"] ?? "", `/run/user/${uid}`].filter(
    (base) => base !== "" && existsSync(base),
  );
  const folders = [
    ...runtime.map((base) => join(base, "gateway")),
    join(tmpdir(), `gateway-${uid}`),
    `/tmp/gateway-${uid}`,
  ];
  return [...new Set(folders)];
}

/** The ledger is the same, even if the config was found through a link. */
function resolveLinks(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

export function makeControlFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (PLATFORM.hasModes && isOwn(lstatSync(folder))) closeToOthers(folder);
  if (!isPrivate(folder)) throw new Error(`${folder} is not a folder that only this user can use`);
}

/** Through a descriptor, because the name may point elsewhere by now. */
function closeToOthers(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    if (isOwn(fstatSync(fd))) fchmodSync(fd, 0o700);
  } finally {
    closeSync(fd);
  }
}

/** False if there is no folder, or if somebody else may have put the socket there. */
export function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  if (!PLATFORM.hasModes) return found?.isDirectory() === true;
  return found !== undefined && isOwn(found) && (found.mode & 0o077) === 0;
}

/** A link does not count, wherever it leads. */
function isOwn(found: Stats): boolean {
  return found.isDirectory() && found.uid === userInfo().uid;
}
