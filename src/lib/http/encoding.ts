// Decodes the content codings of a request body, up to a size limit. The codings of a response, which arrives in pieces,
// are decoded in gateway.

import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate, zstdDecompress } from "node:zlib";
import { getErrorCode, getErrorMessage } from "../errors.ts";
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
  ["deflate", inflate],
  ["br", brotliDecompress],
  ["zstd", zstdDecompress],
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
    const decompress = DECOMPRESSORS.get(coding);
    if (decompress === undefined) throw new UnsupportedEncoding(`content-encoding "${coding.slice(0, 40)}"`);
    try {
      plain = await promisify(decompress)(plain, { maxOutputLength: limit });
    } catch (error) {
      if (getErrorCode(error) === "ERR_BUFFER_TOO_LARGE")
        throw new BodyTooLarge(`the body is more than ${limit} bytes when decompressed`);
      throw new InvalidEncoding(getErrorMessage(error), { cause: error });
    }
  }
  return plain;
}

/** The codings in the order in which they were applied. */
export function readCodings(contentEncoding = ""): string[] {
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase());
  return codings.filter((coding) => coding !== "" && coding !== "identity");
}
