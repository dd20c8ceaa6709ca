// What can go wrong between a request and the end of its response, and whether the upstream may have worked on it.

import { openSync, closeSync } from "node:fs";
import { devNull } from "node:os";
import { getErrorCode } from "../errors.ts";

/** Whether the upstream has the request. `perhaps`: it left, and no byte of a response came. */
export type Sent = "no" | "perhaps" | "yes";

/** For each kind: whether the upstream has the request, unless a byte of its response has come. */
export const FAULTS = {
  /** The name is not known, the connection is refused, or the proxy refuses the tunnel. */
  connect: "no",
  connect_timeout: "no",
  /** This process lacks files, ports or memory. No upstream is to blame. */
  shortage: "no",
  /** The handshake failed, or the certificate is not the upstream's. */
  tls: "no",
  /** We cancelled while a connection was dialled. */
  withdrawn: "no",
  /** We cancelled later. */
  cancelled: "perhaps",
  /** The head has not come in time. */
  first_byte_timeout: "perhaps",
  /** The connection ended before the head was complete. */
  reset: "perhaps",
  /** What came is not the HTTP/1.1 that we accept. */
  malformed: "yes",
  /** The connection ended inside the body. */
  cut: "yes",
  /** The body stopped arriving. */
  idle_timeout: "yes",
} as const satisfies Record<string, Sent>;

export type FaultKind = keyof typeof FAULTS;

export class UpstreamFault extends Error {
  override readonly name = "UpstreamFault";
  readonly kind: FaultKind;
  readonly sent: Sent;
  /** `answered`: a byte of the response has come. */
  constructor(kind: FaultKind, message: string, answered = false, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
    this.sent = answered ? "yes" : FAULTS[kind];
  }
}

const TOO_MANY_FILES = "this process has too many open files and connections: raise its limit (ulimit -n)";

const SHORTAGES: ReadonlyMap<string, string> = new Map([
  ["EMFILE", TOO_MANY_FILES],
  ["ENFILE", "this system has too many open files: raise its limit (fs.file-max)"],
  ["ENOBUFS", "this system has no memory left for connections"],
  ["ENOMEM", "this system has no memory left for connections"],
  ["EADDRNOTAVAIL", "this system has no port left for a connection there (ip_local_port_range)"],
]);

/** What this process or system lacks; null if the connection failed for another reason. */
export function explainShortage(error: unknown): string | null {
  const known = SHORTAGES.get(getErrorCode(error));
  if (known !== undefined) return known;
  try {
    // Without a free descriptor, the runtime reports "connection refused".
    closeSync(openSync(devNull, "r"));
    return null;
  } catch {
    return TOO_MANY_FILES;
  }
}
