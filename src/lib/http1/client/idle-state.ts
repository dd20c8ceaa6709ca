// Checks an idle connection for what the event loop has not reported yet: its end, or unexpected bytes.

import { readSync } from "node:fs";
import { getErrorCode } from "../../errors.ts";

const byte = Buffer.allocUnsafeSlow(1);

/** Asks the system, which knows before the event loop does. It takes 1 µs. The check consumes one byte if there is any,
 *  so the connection must be closed then. On Windows a socket is not a file, so only the event loop reports. */
export function hasUnreadBytesOrEnd(socket: object): boolean {
  if (process.platform === "win32" || !("fd" in socket) || typeof socket.fd !== "number") return false;
  try {
    readSync(socket.fd, byte);
    return true;
  } catch (error) {
    const code = getErrorCode(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
