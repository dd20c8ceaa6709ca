// The opening handshake of RFC 6455, on the client's side. No extension and no subprotocol is negotiated. Pure.

import { hasToken } from "../head.ts";
import type { Field, Fields } from "../../http/fields.ts";

const VERSION = "13";
const ACCEPT_SALT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export interface ClientHandshake {
  readonly key: string;
  readonly fields: readonly Field[];
}

export function startHandshake(): ClientHandshake {
  const key = Buffer.from(crypto.getRandomValues(new Uint8Array(16))).toString("base64");
  return {
    key,
    fields: [
      ["upgrade", "websocket"],
      ["sec-websocket-version", VERSION],
      ["sec-websocket-key", key],
    ],
  };
}

/** What is wrong with a server's 101; null if nothing is. */
export function findAcceptFault(fields: Fields, key: string): string | null {
  if (!names(fields, "upgrade", "websocket")) return "`Upgrade` does not name websocket";
  if (!names(fields, "connection", "upgrade")) return "`Connection` does not name upgrade";
  if (fields.get("sec-websocket-accept")?.trim() !== computeAccept(key))
    return "`Sec-WebSocket-Accept` does not fit the key";
  if (fields.get("sec-websocket-extensions") !== undefined) return "an extension that nobody offered";
  if (fields.get("sec-websocket-protocol") !== undefined) return "a subprotocol that nobody offered";
  return null;
}

function computeAccept(key: string): string {
  return Bun.CryptoHasher.hash("sha1", `${key.trim()}${ACCEPT_SALT}`, "base64");
}

/** True if a field, which may be repeated, contains the token. */
function names(fields: Fields, name: string, token: string): boolean {
  return fields.getAll(name).some((value) => hasToken(value, token));
}
