// Where the control path of a running gateway is: a unix socket that only this
// user can use, named after the ledger, of which there is one writer at most.

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
import { tmpdir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { sha256Hex } from "../../lib/secret.ts";

/** The folder is this user's alone: checked by both sides, for a temporary folder is everyone's. */
export interface ControlSocket {
  readonly folder: string;
  readonly path: string;
}

/** Where it may be, best first. A gateway that runs as a service and a command in a shell need not have the same
 *  environment: it is looked for in all of these. */
export function locateControl(
  ledgerPath: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ControlSocket[] {
  const { uid } = userInfo();
  const runtime = [env["XDG_RUNTIME_DIR"] ?? "", `/run/user/${uid}`].filter(
    (base) => base !== "" && existsSync(base),
  );
  const folders = [
    ...runtime.map((base) => join(base, "gateway")),
    join(tmpdir(), `gateway-${uid}`),
    `/tmp/gateway-${uid}`,
  ];
  const name = `${sha256Hex(resolveLinks(ledgerPath)).slice(0, 16)}.sock`;
  return [...new Set(folders)].map((folder) => ({ folder, path: join(folder, name) }));
}

/** However a config file was reached, its ledger is the same. */
function resolveLinks(path: string): string {
  try {
    return join(realpathSync(dirname(path)), basename(path));
  } catch {
    return path;
  }
}

export function makeControlFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (isOwn(lstatSync(folder))) closeToOthers(folder);
  if (!isPrivate(folder)) throw new Error(`${folder} is not a folder that only this user can use`);
}

/** By its descriptor: the name may lead elsewhere by now. */
function closeToOthers(folder: string): void {
  const fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    if (isOwn(fstatSync(fd))) fchmodSync(fd, 0o700);
  } finally {
    closeSync(fd);
  }
}

/** False where somebody else may have put the socket, or where there is no folder. */
export function isPrivate(folder: string): boolean {
  const found = lstatSync(folder, { throwIfNoEntry: false });
  return found !== undefined && isOwn(found) && (found.mode & 0o077) === 0;
}

/** A link is nobody's folder, wherever it leads. */
function isOwn(found: Stats): boolean {
  return found.isDirectory() && found.uid === userInfo().uid;
}
