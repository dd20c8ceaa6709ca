// The beginning of a streamed answer, looked at while another channel could still
// be tried. Held until its first real event is known, for a moment at most.

import { type Inbound, UpstreamFault } from "../../lib/http1/types.ts";
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

export interface Peeked {
  /** The same answer, not read yet as far as anyone can tell. */
  readonly inbound: Inbound;
  readonly first: FirstEvent;
}

export async function peek(inbound: Inbound): Promise<Peeked> {
  const beginning = new Beginning();
  // Mostly the first event comes along with the head: then nothing is waited for.
  const along = inbound.buffered && !inbound.finished ? await inbound.read() : null;
  const first = along === null ? "open" : beginning.add(along);
  if (first === "open") return await awaitFirstEvent(inbound, beginning);
  return { inbound: new PeekedInbound(inbound, beginning.held, null), first: knownOf(first) };
}

async function awaitFirstEvent(inbound: Inbound, beginning: Beginning): Promise<Peeked> {
  const { held } = beginning;
  const late = Promise.withResolvers<"late">();
  const wait = (ms: number): Timer => setTimeout(late.resolve, ms, "late" as const);
  let timer = wait(held.length > 0 ? PRELUDE_MS : PATIENCE_MS);
  let pending = readQuietly(inbound);
  try {
    for (;;) {
      const came = await Promise.race([pending, late.promise]);
      if (came === "late" || came === null) break;
      const first = beginning.add(came);
      if (first !== "open") return { inbound: new PeekedInbound(inbound, held, null), first: knownOf(first) };
      if (held.length === 1) {
        clearTimeout(timer);
        timer = wait(PRELUDE_MS);
      }
      pending = readQuietly(inbound);
    }
  } catch (fault) {
    // Whoever reads on meets it again.
    if (!(fault instanceof UpstreamFault)) throw fault;
  } finally {
    clearTimeout(timer);
  }
  return { inbound: new PeekedInbound(inbound, held, pending), first: "open" };
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
function readQuietly(inbound: Inbound): Promise<Uint8Array | null> {
  const pending = inbound.read();
  pending.catch(() => {});
  return pending;
}

class PeekedInbound implements Inbound {
  readonly status: number;
  readonly fields: Inbound["fields"];
  readonly length: number | null;
  readonly closeDelimited: boolean;
  readonly reused: boolean;
  readonly #inbound: Inbound;
  readonly #held: Uint8Array[];
  #pending: Promise<Uint8Array | null> | null;

  constructor(inbound: Inbound, held: Uint8Array[], pending: Promise<Uint8Array | null> | null) {
    this.status = inbound.status;
    this.fields = inbound.fields;
    this.length = inbound.length;
    this.closeDelimited = inbound.closeDelimited;
    this.reused = inbound.reused;
    this.#inbound = inbound;
    this.#held = held;
    this.#pending = pending;
  }

  field(name: string): string | undefined {
    return this.#inbound.field(name);
  }

  get buffered(): boolean {
    return this.#held.length > 0 || (this.#pending === null && this.#inbound.buffered);
  }

  get finished(): boolean {
    return this.#held.length === 0 && this.#pending === null && this.#inbound.finished;
  }

  read(): Promise<Uint8Array | null> {
    const held = this.#held.shift();
    if (held !== undefined) return Promise.resolve(held);
    const pending = this.#pending;
    this.#pending = null;
    return pending ?? this.#inbound.read();
  }

  takeRest(): Uint8Array | null {
    return this.#held.length > 0 || this.#pending !== null ? null : this.#inbound.takeRest();
  }

  cancel(): void {
    this.#inbound.cancel();
  }
}
