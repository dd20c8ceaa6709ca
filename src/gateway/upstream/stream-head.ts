// The beginning of a streamed answer, looked at while another channel could still
// be tried. Held until its first real event is known, for a moment at most.

import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { type FirstEvent, readFirstEvent } from "./stream-head-verdict.ts";

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
