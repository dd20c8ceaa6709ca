// The responses API over a WebSocket. `stream_id` separates responses.

import type { GatewayError } from "../../lib/errors.ts";
import { readString } from "../../lib/json/scanner.ts";
import { scanMembers } from "../../lib/scan.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { formWireError, reasonFields } from "./openai.ts";

export interface SocketEvent {
  /** Empty without a type, or if the message is not an object. */
  readonly type: string;
  readonly streamId: string | null;
}

const NAMES = ["type", "stream_id"];
const NOTHING: SocketEvent = { type: "", streamId: null };

export function readSocketEvent(message: Uint8Array): SocketEvent {
  const scan = scanMembers(message, NAMES);
  if (scan === null) return NOTHING;
  const [type, streamId] = NAMES.map((name) => {
    const span = scan.get(name);
    return span === undefined ? null : readString(message, span);
  });
  return { type: type ?? "", streamId: streamId ?? null };
}

export const CREATE = "response.create";

const ERRORS: ReadonlySet<string> = new Set(["error", "response.failed"]);
const ENDS: ReadonlySet<string> = new Set(["response.completed", "response.incomplete", ...ERRORS]);

export function endsResponse({ type }: SocketEvent): boolean {
  return ENDS.has(type);
}

export function readErrorStatus(message: Uint8Array): number {
  const event = parseJson(new TextDecoder().decode(message));
  const status = Math.floor(Number(getField(event, "status") ?? getField(event, "status_code")));
  return status >= 400 && status < 600 ? status : 400;
}

export function writeErrorEvent(error: GatewayError, streamId: string | null): Buffer {
  const { status, retrySeconds } = error;
  const wait = retrySeconds === null ? [] : [["retry-after", String(retrySeconds)] as const];
  const fields = [...wait, ...reasonFields(error)];
  return Buffer.from(
    JSON.stringify({
      type: "error",
      status,
      ...(streamId === null ? {} : { stream_id: streamId }),
      error: formWireError(error),
      ...(fields.length === 0 ? {} : { headers: Object.fromEntries(fields) }),
    }),
  );
}

/** On this code, clients open a new connection. */
export const RECONNECT_CODE = "websocket_connection_limit_reached";
