// Reads the beginning of a streamed response while another channel can still be tried. A stream that was announced with
// 200 may begin with an error. The beginning is held until the first real event is known, for a short time at most.

import { asBuffer } from "../../lib/memory/bytes.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { type FirstEvent, FirstEventSearch } from "../../dialects/first-event.ts";
import { joinChunks } from "./answer.ts";
import { blamesChannel } from "./failure-rules.ts";

/** Stop holding a stream of which nothing has come after this. */
const MAX_WAIT_MS = 5000;
/** How much longer to hold a stream once a prelude event has come: clients show that event. */
const MAX_PRELUDE_WAIT_MS = 1000;
const MAX_HELD_BYTES = 256 * 1024;

export interface StreamHead {
  /** The same response. Reading it gives the held bytes first. */
  readonly response: UpstreamResponse;
  readonly first: FirstEvent;
  readonly start: BodyStart;
}

export async function readStreamHead(response: UpstreamResponse, dialect: Dialect): Promise<StreamHead> {
  const beginning = new HeldBeginning(dialect);
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
      text = extendStart(text, chunk);
    }
    const start = judgeBodyStart(text, chunk === null);
    if (start !== "unknown" || heldBytes > MAX_BLANK_BYTES)
      return { response: new PeekedResponse(response, held, null), start };
  }
}

export function judgeWhole(body: Uint8Array): BodyStart {
  const isObject = body[0] === OPEN_BRACE;
  return isObject ? "response" : judgeBodyStart(extendStart("", body), true);
}

const OPEN_BRACE = 0x7b;
const MAX_START_BYTES = 64;
/** A body with more blanks before its beginning is passed on. */
const MAX_BLANK_BYTES = 64 * 1024;
/** A byte order mark, as latin-1. */
const BYTE_ORDER_MARK = /^\u00ef\u00bb\u00bf/;
/** JSON begins with a bracket, and an event stream with a field or a comment. */
const STARTS = ["{", "[", "data:", "event:", "id:", "retry:", ":"];

/** The first characters that are not blank. They stay few, so that each chunk costs the same. */
function extendStart(before: string, chunk: Uint8Array): string {
  if (before.length >= MAX_START_BYTES) return before;
  const text = before + asBuffer(chunk).toString("latin1", 0, MAX_START_BYTES);
  return text.trimStart().replace(BYTE_ORDER_MARK, "").trimStart();
}

/** `isAll`: the body has ended. */
function judgeBodyStart(text: string, isAll: boolean): BodyStart {
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
  readonly #search: FirstEventSearch;
  #start = "";
  #heldBytes = 0;

  constructor(dialect: Dialect) {
    this.#search = new FirstEventSearch(dialect.upstreamErrors);
  }

  /** `enough`: the first event is not known, and the search ends. */
  add(chunk: Uint8Array): FirstEvent | "enough" {
    this.held.push(chunk);
    this.#heldBytes += chunk.length;
    this.#start = extendStart(this.#start, chunk);
    const first = this.#search.add(chunk);
    if (first === "open") return this.#heldBytes > MAX_HELD_BYTES ? "enough" : first;
    return first === "good" || blamesChannel(first.status) ? first : "good";
  }

  finish(
    response: UpstreamResponse,
    first: FirstEvent | "enough",
    pending: Promise<Uint8Array | null> | null,
  ): StreamHead {
    return {
      response: new PeekedResponse(response, this.held, pending),
      first: first === "enough" ? "open" : first,
      start: judgeBodyStart(this.#start, this.hasEnded),
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
