// Checks an idle connection for what the event loop has not reported yet: its end, or unexpected bytes.

import { dlopen } from "bun:ffi";
import { readSync } from "node:fs";
import { getErrorCode } from "../../errors.ts";

/** True if the system has bytes or an end for us on this descriptor. */
type Check = (fd: number) => boolean;

/** Asks the system, which knows before the event loop does. The check may consume a byte, so the connection must be closed
 *  if there is one. On Windows a socket is not a file, so only the event loop reports. */
export function hasUnreadBytesOrEnd(socket: object): boolean {
  if (process.platform === "win32" || !("fd" in socket) || typeof socket.fd !== "number") return false;
  check ??= openPoll() ?? readByte;
  return check(socket.fd);
}

let check: Check | null = null;

/** A `struct pollfd`: the descriptor, then POLLIN in the lower half (all our machines are little-endian). */
const entry = new Int32Array(2);
const POLLIN = 1;

/** The system's `poll`, called directly. Null if its library cannot be opened. */
function openPoll(): Check | null {
  // musl takes the name of glibc's file for its own. A name that the system did not know would be looked for in the
  // current folder, so there is no list of names to try.
  const library = process.platform === "darwin" ? "/usr/lib/libSystem.B.dylib" : "libc.so.6";
  try {
    const { poll } = dlopen(library, { poll: { args: ["ptr", "u64", "i32"], returns: "i32" } }).symbols;
    return (fd) => {
      entry[0] = fd;
      entry[1] = POLLIN;
      return poll(entry, 1, 0) !== 0;
    };
  } catch {
    return null;
  }
}

const byte = Buffer.allocUnsafeSlow(1);

/** Slower, because "nothing there" is an exception. */
function readByte(fd: number): boolean {
  try {
    readSync(fd, byte);
    return true;
  } catch (error) {
    const code = getErrorCode(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
