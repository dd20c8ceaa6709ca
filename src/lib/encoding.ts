// Content codings of a request body, undone within a bound. Those of an answer, which
// is undone as it comes, are gateway/upstream/decode.ts.

import { brotliDecompress, gunzip, inflate, inflateRaw, zstdDecompress } from "node:zlib";
import { BodyTooLarge } from "./http1/types.ts";

/** A content coding that the gateway does not know: the body can't be read for its model. */
export class EncodingUnsupported extends Error {
  override readonly name = "EncodingUnsupported";
}

/** The body is not what its content-encoding says. */
export class EncodingBroken extends Error {
  override readonly name = "EncodingBroken";
}

type Undo = (
  bytes: Uint8Array,
  options: { maxOutputLength: number },
  done: (error: Error | null, plain: Buffer) => void,
) => void;

const UNDO: ReadonlyMap<string, Undo> = new Map<string, Undo>([
  ["gzip", gunzip],
  ["x-gzip", gunzip],
  ["zstd", zstdDecompress],
  ["br", brotliDecompress],
  ["deflate", (bytes, options, done) => (hasZlibHeader(bytes) ? inflate : inflateRaw)(bytes, options, done)],
]);

/** More codings than this on one body are an attack, not a client. */
export const MOST_CODINGS = 3;

/** The body as it was before its codings; the same bytes when it has none. Rejects with BodyTooLarge beyond `limit`. */
export async function decodeBody(
  bytes: Uint8Array,
  contentEncoding: string | undefined,
  limit: number,
): Promise<Uint8Array> {
  const codings = readCodings(contentEncoding);
  if (codings.length > MOST_CODINGS)
    throw new EncodingUnsupported(`more than ${MOST_CODINGS} content codings at once`);
  let plain = bytes;
  for (const coding of codings.toReversed()) {
    const undo = UNDO.get(coding);
    if (undo === undefined) throw new EncodingUnsupported(`content-encoding "${coding.slice(0, 40)}"`);
    plain = await undoCoding(undo, plain, limit);
  }
  return plain;
}

/** In the order in which they were put on. */
export function readCodings(contentEncoding: string | undefined): string[] {
  if (contentEncoding === undefined) return [];
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase());
  return codings.filter((coding) => coding !== "" && coding !== "identity");
}

/** Some clients send `deflate` without the zlib header that the standard asks for. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  const [first = 0, second = 0] = bytes;
  return (first & 0x0f) === 8 && ((first << 8) | second) % 31 === 0;
}

function undoCoding(undo: Undo, bytes: Uint8Array, limit: number): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    undo(bytes, { maxOutputLength: limit }, (error, plain) => {
      if (error === null) resolve(plain);
      else if ("code" in error && error.code === "ERR_BUFFER_TOO_LARGE") {
        reject(new BodyTooLarge(`the body is more than ${limit} bytes when decompressed`));
      } else reject(new EncodingBroken(error.message, { cause: error }));
    });
  });
}
