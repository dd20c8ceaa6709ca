// What this process lacks itself: files, of which every connection is one, and
// what else the system gives out. It is nobody else's doing. The last files stay
// free: where none is, the runtime goes on accepting at full speed, and in vain.

import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";
import { codeOf } from "../errors.ts";

/** Nothing else than that: another moment may do. */
export class Shortage extends Error {
  override readonly name = "Shortage";
  readonly status = 503;
}

/** So many stay free of clients: those who were taken have to be served. */
export const FILES_RESERVED_FROM_CLIENTS = 16;
/** So many stay free of all connections: for the ledger, the config, names, commands, and to turn clients away. */
export const RESERVED_FILES = 8;

export const TOO_MANY_FILES =
  "this process has too many open files and connections: raise its limit (ulimit -n)";

const EXPLANATIONS: ReadonlyMap<string, string> = new Map([
  ["EMFILE", TOO_MANY_FILES],
  ["ENFILE", "this system has too many open files: raise its limit (fs.file-max)"],
  ["ENOBUFS", "this system has no memory left for connections"],
  ["ENOMEM", "this system has no memory left for connections"],
  ["EADDRNOTAVAIL", "this system has no port left for a connection there (ip_local_port_range)"],
]);

/** Null: a connection failed for another reason. */
export function explainShortage(error: unknown): string | null {
  const known = EXPLANATIONS.get(codeOf(error));
  if (known !== undefined) return known;
  // The runtime says of it that the connection was refused.
  return openFilesUpTo(0) < 0 ? TOO_MANY_FILES : null;
}

/** The highest number that a file is known to get. */
let highestKnownFile = -1;
const PROBE_AHEAD_FILES = 64;

/** Whether so many files can still be opened beside this one. Numbers are given out from the lowest. */
export function hasFilesLeft(socket: object, spared: number): boolean {
  const needed = ("fd" in socket && typeof socket.fd === "number" ? socket.fd : 0) + spared;
  if (needed > highestKnownFile)
    highestKnownFile = Math.max(highestKnownFile, openFilesUpTo(needed + PROBE_AHEAD_FILES));
  return needed <= highestKnownFile;
}

/** Opens files until one has this number; returns the highest that could be had, -1 when none. */
function openFilesUpTo(number: number): number {
  const opened: number[] = [];
  let highest = -1;
  try {
    while (highest < number) {
      highest = openSync(devNull, "r");
      opened.push(highest);
    }
  } catch {
    // That is the answer.
  }
  opened.forEach((file) => closeSync(file));
  return highest;
}
