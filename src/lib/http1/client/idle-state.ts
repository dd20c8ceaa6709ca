// Whether an idle connection has news that the event loop has not reported yet: its end, or bytes that nobody
// asked for. What this file does not own: what follows from it (pool.ts).

import { readSync } from "node:fs";
import { codeOf } from "../../error-code.ts";

const byte = Buffer.allocUnsafeSlow(1);

/** Asks the system, which knows it before the event loop does: an idle connection has nothing to read. It costs 1 µs.
 *  A byte that is read is lost, so a connection with news must be closed. On Windows a socket is no file, and there
 *  only the event loop reports. */
export function hasNews(socket: object): boolean {
  if (process.platform === "win32" || !("fd" in socket) || typeof socket.fd !== "number") return false;
  try {
    readSync(socket.fd, byte);
    return true;
  } catch (error) {
    const code = codeOf(error);
    return code !== "EAGAIN" && code !== "EWOULDBLOCK";
  }
}
