// Upstreams are asked for uncompressed answers. Some compress all the same: they
// are read as plain bytes, so that answers can be metered, credentials found in
// them, and no client gets what it can't read. Nothing is held back for it.

import { pipeline, Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { MOST_CODINGS, readCodings } from "../lib/encoding.ts";
import { type Inbound, UpstreamFault } from "../lib/http1/types.ts";

/** What has come is given out at once; that the end is missing is a fault. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", () => createGunzip(ZLIB)],
  ["x-gzip", () => createGunzip(ZLIB)],
  ["deflate", () => createInflate(ZLIB)],
  ["br", () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  ["zstd", () => createZstdDecompress()],
]);

/** The answer without its content codings. Throws UpstreamFault for codings that nobody asked for and nobody knows. */
export function decodeInbound(inbound: Inbound): Inbound {
  const codings = readCodings(inbound.field("content-encoding"));
  const plain = codings.length === 0 || inbound.length === 0;
  return plain
    ? inbound
    : new DecodedInbound(inbound, openDecoders(inbound, codings), codings.includes("zstd"));
}

/** Names of codings are short. So little of a credential that stands in their place does not give it away. */
const LONGEST_CODING = 11;

function openDecoders(inbound: Inbound, codings: readonly string[]): Transform[] {
  // A decoder takes tens of kilobytes, and its name five bytes of a head.
  if (codings.length > MOST_CODINGS) throw refuse(inbound, `${codings.length} times`);
  return codings.toReversed().map((coding) => {
    const open = DECODERS.get(coding);
    if (open === undefined) throw refuse(inbound, `as "${coding.slice(0, LONGEST_CODING)}"`);
    return open();
  });
}

function refuse(inbound: Inbound, how: string): UpstreamFault {
  inbound.cancel();
  return new UpstreamFault("malformed", `its answer is encoded ${how}`, true);
}

class DecodedInbound implements Inbound {
  readonly status: number;
  readonly fields: Inbound["fields"];
  readonly length = null;
  readonly closeDelimited: boolean;
  readonly buffered = false;
  readonly reused: boolean;
  finished = false;
  readonly #inbound: Inbound;
  readonly #pieces: AsyncIterator<Uint8Array>;

  /** `endless`: a decoder that does not miss the end. */
  constructor(inbound: Inbound, decoders: readonly Transform[], endless: boolean) {
    this.status = inbound.status;
    this.fields = inbound.fields.filter(([name]) => name !== "content-encoding" && name !== "content-length");
    this.closeDelimited = inbound.closeDelimited || endless;
    this.reused = inbound.reused;
    this.#inbound = inbound;
    const source = Readable.from(pull(inbound), { highWaterMark: 1 });
    const [last = source] = decoders.toReversed();
    // A fault comes out of the last one's iterator, where it is caught.
    pipeline([source, ...decoders], () => {});
    this.#pieces = last[Symbol.asyncIterator]();
  }

  field(name: string): string | undefined {
    return this.fields.find(([other]) => other === name)?.[1];
  }

  async read(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await this.#pieces.next();
      this.finished = done === true;
      return done === true ? null : value;
    } catch (error) {
      if (error instanceof UpstreamFault) throw error;
      this.#inbound.cancel();
      const told = error instanceof Error ? error.message : String(error);
      throw new UpstreamFault("cut", `its compressed answer cannot be read: ${told}`, true, error);
    }
  }

  takeRest(): null {
    return null;
  }

  cancel(): void {
    this.#inbound.cancel();
  }
}

async function* pull(inbound: Inbound): AsyncGenerator<Uint8Array> {
  for (let chunk = await inbound.read(); chunk !== null; chunk = await inbound.read()) yield chunk;
}
