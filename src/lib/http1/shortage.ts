// What this process itself runs out of: file descriptors (each connection is one) and other system resources. No
// upstream is to blame for it. The last descriptors stay reserved: without any, the runtime keeps accepting
// connections at full speed and cannot serve one of them.

import { closeSync, openSync } from "node:fs";
import { devNull } from "node:os";

/** Descriptors that client connections leave free, so that accepted clients can be served. */
export const FILES_RESERVED_FROM_CLIENTS = 16;
/** Descriptors that all connections leave free: for the ledger, the config, name lookups and commands. */
export const RESERVED_FILES = 8;

/** The highest descriptor number that was opened so far. */
let highestKnownFile = -1;
const PROBE_AHEAD_FILES = 64;

/** Whether this many descriptors can still be opened besides this one. The system gives out the lowest free number. */
export function hasFilesLeft(socket: object, spared: number): boolean {
  const needed = ("fd" in socket && typeof socket.fd === "number" ? socket.fd : 0) + spared;
  if (needed > highestKnownFile)
    highestKnownFile = Math.max(highestKnownFile, openFilesUpTo(needed + PROBE_AHEAD_FILES));
  return needed <= highestKnownFile;
}

/** Opens files until one has this number. Returns the highest number that it got, or -1. */
function openFilesUpTo(number: number): number {
  const opened: number[] = [];
  let highest = -1;
  try {
    while (highest < number) {
      highest = openSync(devNull, "r");
      opened.push(highest);
    }
  } catch {
    // The failure shows how many files we could open.
  }
  opened.forEach((file) => closeSync(file));
  return highest;
}
