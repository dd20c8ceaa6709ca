// The gateway asks upstreams for uncompressed responses. Some compress anyway. Their responses are decoded here, so that
// they can be metered and redacted, and no client gets bytes that it cannot read. Decoded bytes are passed on at once.

import { getErrorMessage } from "../../lib/errors.ts";
import { pipeline, Readable, type Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { MAX_CODINGS, readCodings } from "../../lib/http1/encoding.ts";
import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";

/** With Z_SYNC_FLUSH, decoded bytes come out at once, and a missing end is still an error. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", () => createGunzip(ZLIB)],
  ["x-gzip", () => createGunzip(ZLIB)],
  ["deflate", () => createInflate(ZLIB)],
  ["br", () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  ["zstd", () => createZstdDecompress()],
]);

/** The response without its content codings. Throws UpstreamFault if a coding is unknown. */
export function decodeResponse(response: UpstreamResponse): UpstreamResponse {
  const codings = readCodings(response.field("content-encoding"));
  const plain = codings.length === 0 || response.length === 0;
  return plain
    ? response
    : new DecodedResponse(response, openDecoders(response, codings), codings.includes("zstd"));
}

/** The header may hold a credential in place of a coding. So few characters of it do not give it away. */
const MAX_CODING_LENGTH = 11;

function openDecoders(response: UpstreamResponse, codings: readonly string[]): Transform[] {
  // A decoder takes tens of kilobytes of memory, and its name only five bytes of a response head.
  if (codings.length > MAX_CODINGS) throw refuse(response, `${codings.length} times`);
  return codings.toReversed().map((coding) => {
    const open = DECODERS.get(coding);
    if (open === undefined) throw refuse(response, `as "${coding.slice(0, MAX_CODING_LENGTH)}"`);
    return open();
  });
}

function refuse(response: UpstreamResponse, how: string): UpstreamFault {
  response.cancel();
  return new UpstreamFault("malformed", `its response is encoded ${how}`, true);
}

class DecodedResponse implements UpstreamResponse {
  readonly status: number;
  readonly fields: UpstreamResponse["fields"];
  readonly length = null;
  readonly closeDelimited: boolean;
  readonly buffered = false;
  readonly reused: boolean;
  finished = false;
  readonly #response: UpstreamResponse;
  readonly #chunks: AsyncIterator<Uint8Array>;

  /** `endless`: one of the decoders does not notice a missing end. */
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
    // An error of any stage comes out of the last stage's iterator and is caught in `read`.
    pipeline([source, ...decoders], () => {});
    this.#chunks = last[Symbol.asyncIterator]();
  }

  field(name: string): string | undefined {
    return this.fields.find(([other]) => other === name)?.[1];
  }

  async read(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await this.#chunks.next();
      this.finished = done === true;
      return done === true ? null : value;
    } catch (error) {
      if (error instanceof UpstreamFault) throw error;
      this.#response.cancel();
      const reason = getErrorMessage(error);
      throw new UpstreamFault("cut", `its compressed response cannot be read: ${reason}`, true, error);
    }
  }

  takeBuffered(): null {
    return null;
  }

  cancel(): void {
    this.#response.cancel();
  }
}

async function* pull(response: UpstreamResponse): AsyncGenerator<Uint8Array> {
  for (let chunk = await response.read(); chunk !== null; chunk = await response.read()) yield chunk;
}
