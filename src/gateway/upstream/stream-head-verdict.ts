// Whether a stream that was announced with 200 begins with an error: only what
// comes before its first real event is looked at. Pure.

import { fieldOf, parseJson } from "../../lib/json/json.ts";
import { blamesChannel } from "./failure-rules.ts";

/** `open`: too little has come. `good`: an answer, or an error about the request, which is for the client. */
export type FirstEvent =
  | "open"
  | "good"
  | {
      /** The status that says the same. */
      readonly status: number;
      readonly message: string;
    };

/** Events that say nothing yet, and report no usage. */
const PRELUDES = new Set<unknown>(["ping", "response.created", "response.in_progress", "response.queued"]);

/** What platforms call in a stream what they else say with a status. Names that stand for errors of the request,
 *  and names that nobody knows, are left to the client. */
const STATUS_OF_NAME: ReadonlyMap<unknown, number> = new Map<unknown, number>([
  ["authentication_error", 401],
  ["invalid_api_key", 401],
  ["billing_error", 402],
  ["insufficient_quota", 402],
  ["permission_error", 403],
  ["timeout_error", 504],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["slow_down", 429],
  ["api_error", 500],
  ["server_error", 500],
  ["internal_server_error", 500],
  ["server_is_overloaded", 503],
  ["overloaded_error", 529],
]);

const BETWEEN_EVENTS = /\r?\n\r?\n/g;

export function readFirstEvent(text: string): FirstEvent {
  const start = text.trimStart();
  if (start === "") return "open";
  return start.startsWith("{") || start.startsWith("[") ? readJson(start) : readEvents(text);
}

function readEvents(text: string): FirstEvent {
  let start = 0;
  for (const { index, 0: blank } of text.matchAll(BETWEEN_EVENTS)) {
    const first = readEvent(text.slice(start, index));
    if (first !== "open") return first;
    start = index + blank.length;
  }
  return "open";
}

function readEvent(event: string): FirstEvent {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  if (lines.length === 0) return "open";
  const value = parseJson(lines.map((line) => line.slice("data:".length).trim()).join("\n"));
  return PRELUDES.has(fieldOf(value, "type")) ? "open" : judgeEvent(value);
}

/** A stream as a JSON array, or an error that isn't framed as an event. */
function readJson(start: string): FirstEvent {
  const [opening] = /^\[?\s*\{\s*"error"/.exec(start) ?? [];
  if (opening === undefined) return start.length < 32 && !start.includes(":") ? "open" : "good";
  const value = parseJson(start.replace(/^\[/, "").replace(/[,\]]\s*$/, ""));
  return value === undefined ? "open" : judgeEvent(value);
}

function judgeEvent(value: unknown): FirstEvent {
  const error = findError(value);
  if (error === null) return "good";
  // What has been counted is billed: such an answer is passed on.
  const usage = fieldOf(fieldOf(value, "response"), "usage") ?? fieldOf(value, "usage");
  if (usage !== undefined && usage !== null) return "good";
  const status = readStatus(error);
  if (status === null || !blamesChannel(status)) return "good";
  const message = fieldOf(error, "message");
  return { status, message: typeof message === "string" ? message : "" };
}

function findError(value: unknown): unknown {
  const told = fieldOf(value, "error") ?? fieldOf(fieldOf(value, "response"), "error") ?? null;
  return told === null && fieldOf(value, "type") === "error" ? value : told;
}

function readStatus(error: unknown): number | null {
  const code = fieldOf(error, "code");
  if (typeof code === "number") return code;
  return STATUS_OF_NAME.get(code) ?? STATUS_OF_NAME.get(fieldOf(error, "type")) ?? null;
}
