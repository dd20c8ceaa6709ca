// The gateway asks upstreams for uncompressed responses. Some compress anyway. Their responses are decoded here, so that
// they can be metered and redacted, and no client gets bytes that it cannot read. Decoded bytes are passed on at once.

import { getErrorMessage } from "../../lib/errors.ts";
import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { MAX_CODINGS, readCodings } from "../../lib/http/encoding.ts";
import { UpstreamFault } from "../../lib/http/faults.ts";
import { type BodyListener, type SentRequest, UpstreamResponse } from "../../lib/http/upstream.ts";

/** With Z_SYNC_FLUSH, decoded bytes come out at once, and a missing end is still an error. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", () => createGunzip(ZLIB)],
  ["x-gzip", () => createGunzip(ZLIB)],
  ["deflate", () => createInflate(ZLIB)],
  ["br", () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  ["zstd", () => createZstdDecompress()],
]);

/** Null if the response has no content codings. Throws UpstreamFault if a coding is unknown. */
export function openDecoder(response: UpstreamResponse): BodyDecoder | null {
  const codings = readCodings(response.field("content-encoding"));
  return codings.length === 0 || response.length === 0 ? null : new BodyDecoder(response, codings);
}

/** The header may hold a credential in place of a coding. So few characters of it do not give it away. */
const MAX_CODING_LENGTH = 11;

function openDecoders(codings: readonly string[]): Transform[] {
  // A decoder takes tens of kilobytes of memory, and its name only five bytes of a response head.
  if (codings.length > MAX_CODINGS) throw refuse(`${codings.length} times`);
  return codings.toReversed().map((coding) => {
    const open = DECODERS.get(coding);
    if (open === undefined) throw refuse(`as "${coding.slice(0, MAX_CODING_LENGTH)}"`);
    return open();
  });
}

function refuse(how: string): UpstreamFault {
  return new UpstreamFault("malformed", `its response is encoded ${how}`, true);
}

const OF_CODED_BYTES: ReadonlySet<string> = new Set(["content-encoding", "content-length"]);

/** Gets the body as it came, and passes it on decoded. It can be paused like the request that it reads from. */
export class BodyDecoder implements BodyListener {
  /** The head of the decoded response. */
  readonly response: UpstreamResponse;
  readonly #decoders: readonly Transform[];
  #sent: Pick<SentRequest, "pause" | "resume" | "cancel"> | null = null;
  #sink: BodyListener | null = null;

  constructor(response: UpstreamResponse, codings: readonly string[]) {
    this.#decoders = openDecoders(codings);
    // One decoder does not notice a missing end.
    const isEndless = codings.includes("zstd");
    const fields = response.fields.without(OF_CODED_BYTES);
    const closeDelimited = response.closeDelimited || isEndless;
    this.response = new UpstreamResponse(response.status, fields, null, closeDelimited);
  }

  /** `sent`: the request whose body comes. */
  start(sent: Pick<SentRequest, "pause" | "resume" | "cancel">, sink: BodyListener): void {
    this.#sent = sent;
    this.#sink = sink;
    const first = this.#decoders[0];
    const last = this.#decoders.at(-1);
    first?.on("drain", () => sent.resume());
    for (const [index, decoder] of this.#decoders.entries()) {
      decoder.on("error", (error) => this.#break(error));
      const next = this.#decoders[index + 1];
      if (next !== undefined) decoder.pipe(next);
    }
    last?.on("data", (bytes: Buffer) => this.#sink?.receive(bytes));
    last?.on("end", () => this.#take()?.end());
  }

  receive(bytes: Buffer): void {
    if (this.#decoders[0]?.write(bytes) === false) this.#sent?.pause();
  }

  end(): void {
    this.#decoders[0]?.end();
  }

  /** What has come before is decoded first. */
  fail(fault: UpstreamFault): void {
    this.#decoders[0]?.write(Buffer.alloc(0), () => setImmediate(() => this.#close()?.fail(fault)));
  }

  pause(): void {
    this.#decoders.at(-1)?.pause();
  }

  resume(): void {
    this.#decoders.at(-1)?.resume();
  }

  cancel(): void {
    this.#sent?.cancel();
  }

  #break(error: Error): void {
    const sink = this.#close();
    this.#sent?.cancel();
    const reason = getErrorMessage(error);
    const text = `its compressed response cannot be read: ${reason}`;
    sink?.fail(new UpstreamFault("cut", text, true, error));
  }

  #take(): BodyListener | null {
    const sink = this.#sink;
    this.#sink = null;
    return sink;
  }

  /** Returns the sink if it has got neither an end nor a fault. */
  #close(): BodyListener | null {
    for (const decoder of this.#decoders) decoder.destroy();
    return this.#take();
  }
}
