// The opening handshake of RFC 6455, on both sides. No extension and no subprotocol is negotiated. Pure.

import { hasToken } from "../head.ts";
import type { Field, Fields } from "../../http/fields.ts";

const VERSION = "13";
const ACCEPT_SALT = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

interface Head {
  readonly fields: Iterable<Field>;
  field(name: string): string | undefined;
}

/** What is wrong with a client's handshake; null if nothing is. */
export function findHandshakeFault(request: Head & { readonly method: string }): string | null {
  if (request.method !== "GET") return "a WebSocket handshake must be a GET";
  if (!names(request, "upgrade", "websocket")) return "`Upgrade` does not name websocket";
  if (!names(request, "connection", "upgrade")) return "`Connection` does not name upgrade";
  if (request.field("sec-websocket-version") !== VERSION)
    return `\`Sec-WebSocket-Version\` is not ${VERSION}`;
  const [key = "", ...others] = listValues(request, "sec-websocket-key");
  if (others.length > 0 || !isKey(key)) return "`Sec-WebSocket-Key` is not 16 bytes in base64";
  return null;
}

/** The fields of the response that accepts a valid handshake. HTTP adds `connection`. */
export function acceptHandshake(request: Head): Field[] {
  return [
    ["upgrade", "websocket"],
    ["sec-websocket-accept", computeAccept(request.field("sec-websocket-key") ?? "")],
  ];
}

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
  if (!names({ fields }, "upgrade", "websocket")) return "`Upgrade` does not name websocket";
  if (!names({ fields }, "connection", "upgrade")) return "`Connection` does not name upgrade";
  if (fields.get("sec-websocket-accept")?.trim() !== computeAccept(key))
    return "`Sec-WebSocket-Accept` does not fit the key";
  if (fields.get("sec-websocket-extensions") !== undefined) return "an extension that nobody offered";
  if (fields.get("sec-websocket-protocol") !== undefined) return "a subprotocol that nobody offered";
  return null;
}

function computeAccept(key: string): string {
  return Bun.CryptoHasher.hash("sha1", `${key.trim()}${ACCEPT_SALT}`, "base64");
}

function isKey(key: string): boolean {
  return /^[A-Za-z0-9+/]{22}==$/.test(key.trim());
}

/** True if a field, which may be repeated, contains the token. */
function names(head: Pick<Head, "fields">, name: string, token: string): boolean {
  return listValues(head, name).some((value) => hasToken(value, token));
}

function listValues({ fields }: Pick<Head, "fields">, name: string): string[] {
  return [...fields].filter(([other]) => other === name).map(([, value]) => value);
}
