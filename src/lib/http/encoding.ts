// Decodes the content codings of a request body, up to a size limit. The codings of a response, which arrives in pieces,
// are decoded in gateway/upstream/decode.ts.

import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import { BodyTooLarge } from "./exchange.ts";

/** The gateway does not support this content coding, so it cannot read the model from the body. */
export class UnsupportedEncoding extends Error {
  override readonly name = "EncodingUnsupported";
}

/** The body is not encoded as its content-encoding says. */
export class InvalidEncoding extends Error {
  override readonly name = "EncodingBroken";
}

type Decompress = (
  bytes: Uint8Array,
  options: { maxOutputLength: number },
  done: (error: Error | null, plain: Buffer) => void,
) => void;

const DECOMPRESSORS: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ["gzip", gunzip],
  ["x-gzip", gunzip],
  ["zstd", zstdDecompress],
  ["br", brotliDecompress],
  ["deflate", (bytes, options, done) => (hasZlibHeader(bytes) ? inflate : inflateRaw)(bytes, options, done)],
]);

/** No client uses more codings than this on one body, but attackers do. */
export const MAX_CODINGS = 3;

/** Returns the decoded body, or the same bytes if it has no coding. Rejects with BodyTooLarge beyond `limit`. */
export async function decodeBody(
  bytes: Uint8Array,
  contentEncoding: string | undefined,
  limit: number,
): Promise<Uint8Array> {
  const codings = readCodings(contentEncoding);
  if (codings.length > MAX_CODINGS)
    throw new UnsupportedEncoding(`more than ${MAX_CODINGS} content codings at once`);
  let plain = bytes;
  for (const coding of codings.toReversed()) {
    const undo = DECOMPRESSORS.get(coding);
    if (undo === undefined) throw new UnsupportedEncoding(`content-encoding "${coding.slice(0, 40)}"`);
    plain = await removeCoding(undo, plain, limit);
  }
  return plain;
}

/** The codings in the order in which they were applied. */
export function readCodings(contentEncoding: string | undefined): string[] {
  if (contentEncoding === undefined) return [];
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase());
  return codings.filter((coding) => coding !== "" && coding !== "identity");
}

/** Some clients send `deflate` without the zlib header that the standard requires. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

function removeCoding(undo: Decompress, bytes: Uint8Array, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    undo(bytes, { maxOutputLength: limit }, (error, plain) => {
      if (error === null) resolve(plain);
      else if ("code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
        reject(new BodyTooLarge(`the body is more than ${limit} bytes when decompressed`));
      } else reject(new InvalidEncoding(error.message, { cause: error }));
    });
  });
}
