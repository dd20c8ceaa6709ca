// Reads the beginning of a streamed response while another channel can still be tried. A stream that was announced with
// 200 may begin with an error. The beginning is held until the first real event is known, for a short time at most.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { joinChunks } from "./answer.ts";
import { openSseParser } from "../../lib/sse/sse-parser.ts";
import { blamesChannel } from "./failure-rules.ts";

/** Stop holding a stream of which nothing has come after this. */
const MAX_WAIT_MS = 5000;
/** How much longer to hold a stream once a prelude event has come: clients show that event. */
const MAX_PRELUDE_WAIT_MS = 1000;
const MAX_HELD_BYTES = 256 * 1024;
/** Each scan reads all that is held. This bounds the work, however small the chunks are. */
const MAX_SCANS = 100;
/** Bytes that can end an event, or an error that is not framed as an event. */
const EVENT_ENDS = [0x0a, 0x0d, 0x7d, 0x5d];

export interface StreamHead {
  /** The same response. Reading it gives the held bytes first. */
  readonly response: UpstreamResponse;
  readonly first: FirstEvent;
  readonly start: BodyStart;
}

export async function readStreamHead(response: UpstreamResponse): Promise<StreamHead> {
  const beginning = new HeldBeginning();
  // The first event mostly arrives together with the head. Then there is no wait.
  const early = response.buffered && !response.finished ? await response.read() : null;
  const first = early === null ? "open" : beginning.add(early);
  if (first === "open") return await awaitFirstEvent(response, beginning);
  return beginning.finish(response, first, null);
}

/** What a body begins with. `unknown`: too little has come, or it failed before. */
export type BodyStart = "response" | "empty" | "foreign" | "unknown";

/** Reads a body until it is clear whether it can be JSON or an event stream. Reading the response gives all bytes again. */
export async function readBodyStart(
  response: UpstreamResponse,
): Promise<{ response: UpstreamResponse; start: BodyStart }> {
  const whole = response.takeBuffered();
  if (whole !== null) {
    return { response: new PeekedResponse(response, [whole], null), start: judgeWhole(whole) };
  }
  const held: Uint8Array[] = [];
  let text = "";
  let heldBytes = 0;
  for (;;) {
    const pending = readQuietly(response);
    const chunk = await pending.catch(() => "fault" as const);
    if (chunk === "fault") return { response: new PeekedResponse(response, held, pending), start: "unknown" };
    if (chunk !== null) {
      held.push(chunk);
      heldBytes += chunk.length;
      text = text.trimStart() + asBuffer(chunk).toString("latin1", 0, MAX_START_BYTES);
    }
    const start = judgeBodyStart(text, chunk === null);
    const isEnough = heldBytes > MAX_BLANK_BYTES || held.length > MAX_SCANS;
    if (start !== "unknown" || isEnough) return { response: new PeekedResponse(response, held, null), start };
  }
}

export function judgeWhole(body: Uint8Array): BodyStart {
  const isObject = body[0] === OPEN_BRACE;
  return isObject ? "response" : judgeBodyStart(asBuffer(body).toString("latin1", 0, MAX_START_BYTES), true);
}

const OPEN_BRACE = 0x7b;
const MAX_START_BYTES = 64;
/** A body with more blanks before its beginning is passed on. */
const MAX_BLANK_BYTES = 64 * 1024;
/** A byte order mark, as latin-1 or decoded. */
const BYTE_ORDER_MARK = /^(?:\u00ef\u00bb\u00bf|\ufeff)/;
/** JSON begins with a bracket, and an event stream with a field or a comment. */
const STARTS = ["{", "[", "data:", "event:", "id:", "retry:", ":"];

/** `isAll`: the body has ended. */
function judgeBodyStart(beginning: string, isAll: boolean): BodyStart {
  const text = beginning.trimStart().replace(BYTE_ORDER_MARK, "").trimStart();
  if (STARTS.some((start) => text.startsWith(start))) return "response";
  if (!isAll && STARTS.some((start) => start.startsWith(text))) return "unknown";
  return text === "" ? "empty" : "foreign";
}

async function awaitFirstEvent(response: UpstreamResponse, beginning: HeldBeginning): Promise<StreamHead> {
  const { held } = beginning;
  const late = Promise.withResolvers<"late">();
  const wait = (ms: number): Timer => setTimeout(late.resolve, ms, "late" as const);
  let timer = wait(held.length > 0 ? MAX_PRELUDE_WAIT_MS : MAX_WAIT_MS);
  let pending = readQuietly(response);
  try {
    for (;;) {
      const chunk = await Promise.race([pending, late.promise]);
      if (chunk === null) beginning.hasEnded = true;
      if (chunk === "late" || chunk === null) break;
      const first = beginning.add(chunk);
      if (first !== "open") return beginning.finish(response, first, null);
      if (held.length === 1) {
        clearTimeout(timer);
        timer = wait(MAX_PRELUDE_WAIT_MS);
      }
      pending = readQuietly(response);
    }
  } catch (fault) {
    // The next read throws it again.
    if (!(fault instanceof UpstreamFault)) throw fault;
  } finally {
    clearTimeout(timer);
  }
  return beginning.finish(response, "open", pending);
}

/** The held bytes of a stream, and the search for its first event in them. */
class HeldBeginning {
  readonly held: Uint8Array[] = [];
  hasEnded = false;
  readonly #decoder = new TextDecoder();
  #text = "";
  #scans = 0;

  /** `enough`: the first event is not known, and the search ends. */
  add(chunk: Uint8Array): FirstEvent | "enough" {
    this.held.push(chunk);
    this.#text += this.#decoder.decode(chunk, { stream: true });
    const mayEnd = EVENT_ENDS.some((byte) => chunk.includes(byte));
    this.#scans += mayEnd ? 1 : 0;
    const first = mayEnd ? readFirstEvent(this.#text) : "open";
    return first === "open" && (this.#text.length > MAX_HELD_BYTES || this.#scans > MAX_SCANS)
      ? "enough"
      : first;
  }

  finish(
    response: UpstreamResponse,
    first: FirstEvent | "enough",
    pending: Promise<Uint8Array | null> | null,
  ): StreamHead {
    return {
      response: new PeekedResponse(response, this.held, pending),
      first: first === "enough" ? "open" : first,
      start: judgeBodyStart(this.#text.slice(0, MAX_START_BYTES), this.hasEnded),
    };
  }
}

/** A failure before anybody awaits the promise is not an unhandled rejection. */
function readQuietly(response: UpstreamResponse): Promise<Uint8Array | null> {
  const pending = response.read();
  pending.catch(() => {});
  return pending;
}

class PeekedResponse implements UpstreamResponse {
  readonly status: number;
  readonly fields: UpstreamResponse["fields"];
  readonly length: number | null;
  readonly closeDelimited: boolean;
  readonly reused: boolean;
  readonly #response: UpstreamResponse;
  readonly #held: Uint8Array[];
  #pending: Promise<Uint8Array | null> | null;

  constructor(response: UpstreamResponse, held: Uint8Array[], pending: Promise<Uint8Array | null> | null) {
    this.status = response.status;
    this.fields = response.fields;
    this.length = response.length;
    this.closeDelimited = response.closeDelimited;
    this.reused = response.reused;
    this.#response = response;
    this.#held = held;
    this.#pending = pending;
  }

  field(name: string): string | undefined {
    return this.#response.field(name);
  }

  get buffered(): boolean {
    return this.#held.length > 0 || (this.#pending === null && this.#response.buffered);
  }

  get finished(): boolean {
    return this.#held.length === 0 && this.#pending === null && this.#response.finished;
  }

  read(): Promise<Uint8Array | null> {
    const held = this.#held.shift();
    if (held !== undefined) return Promise.resolve(held);
    const pending = this.#pending;
    this.#pending = null;
    return pending ?? this.#response.read();
  }

  takeBuffered(): Uint8Array | null {
    if (this.#pending !== null) return null;
    if (!this.#response.finished) {
      const rest = this.#response.takeBuffered();
      if (rest === null) return null;
      this.#held.push(rest);
    }
    return joinChunks(this.#held.splice(0));
  }

  cancel(): void {
    this.#response.cancel();
  }
}

/** `open`: not known yet. `good`: a real response, or an error about the request, which is for the client. */
export type FirstEvent =
  | "open"
  | "good"
  | {
      /** The HTTP status with the same meaning. */
      readonly status: number;
      readonly message: string;
    };

/** Events that come before the response itself and report no usage. */
const PRELUDES = new Set<unknown>(["ping", "response.created", "response.in_progress", "response.queued"]);

/** The names of errors in streams, and the status with the same meaning. Errors about the request and unknown names are
 *  for the client. */
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

export function readFirstEvent(text: string): FirstEvent {
  const start = text.trimStart();
  if (start === "") return "open";
  return start.startsWith("{") || start.startsWith("[") ? readJson(start) : readEvents(text);
}

function readEvents(text: string): FirstEvent {
  for (const { data } of openSseParser().push(Buffer.from(text))) {
    const value = parseJson(data);
    if (!PRELUDES.has(getField(value, "type"))) return judgeEvent(value);
  }
  return "open";
}

/** Reads a stream in the form of a JSON array, or an error that is not framed as an event. */
function readJson(start: string): FirstEvent {
  const [opening] = /^\[?\s*\{\s*"error"/.exec(start) ?? [];
  if (opening === undefined) return start.length < 32 && !start.includes(":") ? "open" : "good";
  const value = parseJson(start.replace(/^\[/, "").replace(/[,\]]\s*$/, ""));
  return value === undefined ? "open" : judgeEvent(value);
}

function judgeEvent(value: unknown): FirstEvent {
  const error = findError(value);
  if (error === null) return "good";
  // Usage is billed, so a response that reports it is passed on.
  const usage = getField(getField(value, "response"), "usage") ?? getField(value, "usage");
  if (usage !== undefined && usage !== null) return "good";
  const status = readStatus(error);
  if (status === null || !blamesChannel(status)) return "good";
  const message = getField(error, "message");
  return { status, message: typeof message === "string" ? message : "" };
}

function findError(value: unknown): unknown {
  const error = getField(value, "error") ?? getField(getField(value, "response"), "error") ?? null;
  return error === null && getField(value, "type") === "error" ? value : error;
}

function readStatus(error: unknown): number | null {
  const code = getField(error, "code");
  if (typeof code === "number") return code;
  return STATUS_OF_NAME.get(code) ?? STATUS_OF_NAME.get(getField(error, "type")) ?? null;
}
