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
import { MOST_CODINGS, readCodings } from "../../lib/encoding.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";

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
export function decodeResponse(response: UpstreamResponse): UpstreamResponse {
  const codings = readCodings(response.field("content-encoding"));
  const plain = codings.length === 0 || response.length === 0;
  return plain
    ? response
    : new DecodedInbound(response, openDecoders(response, codings), codings.includes("zstd"));
}

/** Names of codings are short. So little of a credential that stands in their place does not give it away. */
const LONGEST_CODING = 11;

function openDecoders(response: UpstreamResponse, codings: readonly string[]): Transform[] {
  // A decoder takes tens of kilobytes, and its name five bytes of a head.
  if (codings.length > MOST_CODINGS) throw refuse(response, `${codings.length} times`);
  return codings.toReversed().map((coding) => {
    const open = DECODERS.get(coding);
    if (open === undefined) throw refuse(response, `as "${coding.slice(0, LONGEST_CODING)}"`);
    return open();
  });
}

function refuse(response: UpstreamResponse, how: string): UpstreamFault {
  response.cancel();
  return new UpstreamFault("malformed", `its answer is encoded ${how}`, true);
}

class DecodedInbound implements UpstreamResponse {
  readonly status: number;
  readonly fields: UpstreamResponse["fields"];
  readonly length = null;
  readonly closeDelimited: boolean;
  readonly buffered = false;
  readonly reused: boolean;
  finished = false;
  readonly #response: UpstreamResponse;
  readonly #pieces: AsyncIterator<Uint8Array>;

  /** `endless`: a decoder that does not miss the end. */
  constructor(response: UpstreamResponse, decoders: readonly Transform[], endless: boolean) {
    this.status = response.status;
    this.fields = response.fields.filter(
      ([name]) => name !== "content-encoding" && name !== "content-length",
    );
    this.closeDelimited = response.closeDelimited || endless;
    this.reused = response.reused;
    this.#response = response;
    const source = Readable.from(pull(response), { highWaterMark: 1 });
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
      this.#response.cancel();
      const told = error instanceof Error ? error.message : String(error);
      throw new UpstreamFault("cut", `its compressed answer cannot be read: ${told}`, true, error);
    }
  }

  takeRest(): null {
    return null;
  }

  cancel(): void {
    this.#response.cancel();
  }
}

async function* pull(response: UpstreamResponse): AsyncGenerator<Uint8Array> {
  for (let chunk = await response.read(); chunk !== null; chunk = await response.read()) yield chunk;
}
