// The beginning of a streamed answer, looked at while another channel could still
// be tried. Held until its first real event is known, for a moment at most.

import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { fieldOf, parseJson } from "../../lib/json/json.ts";
import { blamesChannel } from "./failure-rules.ts";

/** An answer that only begins to come is passed on after this, whatever it will say. */
const PATIENCE_MS = 5000;
/** So much longer when something has come that says nothing yet: clients like to see it. */
const PRELUDE_MS = 1000;
const HELD_BYTES = 256 * 1024;
/** Looks at all that is held cost time: so many, and no more, however small the pieces. */
const MOST_LOOKS = 100;
/** Where an event, or an error that is none, may end. */
const ENDS = [0x0a, 0x7d, 0x5d];

export interface StreamHead {
  /** The same answer, not read yet as far as anyone can tell. */
  readonly response: UpstreamResponse;
  readonly first: FirstEvent;
}

export async function readStreamHead(response: UpstreamResponse): Promise<StreamHead> {
  const beginning = new Beginning();
  // Mostly the first event comes along with the head: then nothing is waited for.
  const along = response.buffered && !response.finished ? await response.read() : null;
  const first = along === null ? "open" : beginning.add(along);
  if (first === "open") return await awaitFirstEvent(response, beginning);
  return { response: new PeekedResponse(response, beginning.held, null), first: knownOf(first) };
}

async function awaitFirstEvent(response: UpstreamResponse, beginning: Beginning): Promise<StreamHead> {
  const { held } = beginning;
  const late = Promise.withResolvers<"late">();
  const wait = (ms: number): Timer => setTimeout(late.resolve, ms, "late" as const);
  let timer = wait(held.length > 0 ? PRELUDE_MS : PATIENCE_MS);
  let pending = readQuietly(response);
  try {
    for (;;) {
      const came = await Promise.race([pending, late.promise]);
      if (came === "late" || came === null) break;
      const first = beginning.add(came);
      if (first !== "open")
        return { response: new PeekedResponse(response, held, null), first: knownOf(first) };
      if (held.length === 1) {
        clearTimeout(timer);
        timer = wait(PRELUDE_MS);
      }
      pending = readQuietly(response);
    }
  } catch (fault) {
    // Whoever reads on meets it again.
    if (!(fault instanceof UpstreamFault)) throw fault;
  } finally {
    clearTimeout(timer);
  }
  return { response: new PeekedResponse(response, held, pending), first: "open" };
}

/** What has come of a stream, as far as it is looked at. */
class Beginning {
  readonly held: Uint8Array[] = [];
  readonly #decoder = new TextDecoder();
  #text = "";
  #looks = 0;

  /** `enough`: its first event is not known yet, and is not looked for any longer. */
  add(came: Uint8Array): FirstEvent | "enough" {
    this.held.push(came);
    this.#text += this.#decoder.decode(came, { stream: true });
    const mayEnd = ENDS.some((byte) => came.includes(byte));
    this.#looks += mayEnd ? 1 : 0;
    const first = mayEnd ? readFirstEvent(this.#text) : "open";
    return first === "open" && (this.#text.length > HELD_BYTES || this.#looks > MOST_LOOKS)
      ? "enough"
      : first;
  }
}

function knownOf(first: FirstEvent | "enough"): FirstEvent {
  return first === "enough" ? "open" : first;
}

/** It may fail before anyone waits for it. */
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

  takeRest(): Uint8Array | null {
    return this.#held.length > 0 || this.#pending !== null ? null : this.#response.takeRest();
  }

  cancel(): void {
    this.#response.cancel();
  }
}

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
