// Checks idle connections for what the event loop has not reported yet: its end, or unexpected bytes.

import { dlopen } from "bun:ffi";
import { readSync } from "node:fs";
import { getErrorCode } from "../../errors.ts";

/** For each descriptor, whether the system has bytes or an end for us. */
type Check = (fds: readonly number[]) => boolean[];

/** Asks the system, which knows before the event loop does, about many sockets at once. The check may consume a byte, so
 *  a connection must be closed if it has one. On Windows a socket is not a file, so only the event loop reports. */
export function findUnread(sockets: readonly object[]): boolean[] {
  if (process.platform === "win32") return sockets.map(() => false);
  check ??= openPoll() ?? ((fds) => fds.map(hasByte));
  return check(sockets.map(fdOf));
}

/** The system passes over a negative number. */
function fdOf(socket: object): number {
  return "fd" in socket && typeof socket.fd === "number" ? socket.fd : -1;
}

let check: Check | null = null;

/** `struct pollfd`: the descriptor, then POLLIN in the lower half, and what there is in the upper half (all our machines
 *  are little-endian). */
let entries = new Int32Array(2 * 64);
const POLLIN = 1;
const REPORTED = ~0xffff;

/** The system's `poll`, called directly. Null if its library cannot be opened. */
function openPoll(): Check | null {
  // musl takes the name of glibc's file for its own. A name that the system did not know would be looked for in the
  // current folder, so there is no list of names to try.
  const library = process.platform === "darwin" ? "/usr/lib/libSystem.B.dylib" : "libc.so.6";
  try {
    const { poll } = dlopen(library, { poll: { args: ["ptr", "u64", "i32"], returns: "i32" } }).symbols;
    return (fds) => {
      if (entries.length < 2 * fds.length) entries = new Int32Array(4 * fds.length);
      for (let at = 0; at < fds.length; at += 1) {
        entries[2 * at] = fds[at] ?? -1;
        entries[2 * at + 1] = POLLIN;
      }
      const found = poll(entries, fds.length, 0);
      return fds.map((_, at) => found !== 0 && ((entries[2 * at + 1] ?? 0) & REPORTED) !== 0);
    };
  } catch {
    return null;
  }
}

const byte = Buffer.allocUnsafeSlow(1);

/** Slower, because "nothing there" is an exception. */
function hasByte(fd: number): boolean {
  if (fd < 0) return false;
  try {
    readSync(fd, byte);
    return true;
  } catch (error) {
    const code = getErrorCode(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
