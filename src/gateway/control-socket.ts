// Where the control path of a running gateway is: a unix socket that only this
// user can use, named after the ledger, of which there is one writer at most.

import { chmodSync, lstatSync, mkdirSync, realpathSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { basename, dirname, join } from "node:path";
import { sha256Hex } from "../lib/secret.ts";

/** The folder is this user's alone: checked by both sides, for a temporary folder is everyone's. */
export interface ControlSocket {
  readonly folder: string;
  readonly path: string;
}

export function locateControl(
  ledgerPath: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): ControlSocket {
  const runtime = env["XDG_RUNTIME_DIR"] ?? "";
  const folder = runtime === "" ? join(tmpdir(), `gateway-${userInfo().uid}`) : join(runtime, "gateway");
  return { folder, path: join(folder, `${sha256Hex(resolveLinks(ledgerPath)).slice(0, 16)}.sock`) };
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
  if (isOwn(folder)) chmodSync(folder, 0o700);
  requirePrivate(folder);
}

/** Throws where somebody else may have put the socket. */
export function requirePrivate(folder: string): void {
  if (isOwn(folder) && (lstatSync(folder).mode & 0o077) === 0) return;
  throw new Error(`${folder} is not a folder that only this user can use`);
}

/** A link is nobody's folder, wherever it leads. */
function isOwn(folder: string): boolean {
  const found = lstatSync(folder);
  return found.isDirectory() && found.uid === userInfo().uid;
}
