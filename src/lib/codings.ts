// Decodes compressed bodies, whole or piece by piece.

import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { messageOf } from "./errors.ts";
import { BodyTooLarge } from "./http/exchange.ts";
import { asBuffer, joinChunks } from "./memory/bytes.ts";

const STEP = { chunkSize: 256 * 1024 };
/** Bytes come out at once, and a missing end is an error. */
const ZLIB = { ...STEP, flush: constants.Z_SYNC_FLUSH };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", () => createGunzip(ZLIB)],
  ["x-gzip", () => createGunzip(ZLIB)],
  ["deflate", () => createInflate(ZLIB)],
  ["br", () => createBrotliDecompress({ ...STEP, flush: constants.BROTLI_OPERATION_FLUSH })],
  // This decoder does not notice a missing end.
  ["zstd", () => createZstdDecompress(STEP)],
]);

/** Only attackers use more. A decoder takes tens of kilobytes. */
const MAX_CODINGS = 3;
/** The header may hold a credential by mistake: this much of it reveals none. */
const MAX_NAME_LENGTH = 11;

/** `isKnown`: the coding is known, but the body is not in it. */
export class CodingError extends Error {
  override readonly name = "CodingError";
  readonly isKnown: boolean;

  constructor(isKnown: boolean, message: string, cause?: unknown) {
    super(message, { cause });
    this.isKnown = isKnown;
  }
}

/** In the order in which they were applied. */
export function readCodings(contentEncoding = ""): string[] {
  if (contentEncoding === "") return [];
  const codings = contentEncoding.split(",").map((coding) => coding.trim().toLowerCase());
  return codings.filter((coding) => coding !== "" && coding !== "identity");
}

type Pieces = AsyncIterable<Buffer> | Iterable<Buffer>;

/** Throws at once, so it is no generator. */
export function decodePieces(coded: Pieces, codings: readonly string[]): Pieces {
  if (codings.length > MAX_CODINGS)
    throw new CodingError(false, `it is encoded more than ${MAX_CODINGS} times`);
  let pieces = coded;
  for (const coding of codings.toReversed()) {
    const open = DECODERS.get(coding);
    if (open === undefined)
      throw new CodingError(false, `it is encoded as "${coding.slice(0, MAX_NAME_LENGTH)}"`);
    pieces = decode(pieces, open());
  }
  return pieces;
}

/** Bytes before a fault are decoded first. */
async function* decode(coded: Pieces, decoder: Transform): AsyncGenerator<Buffer> {
  let fault: unknown = null;
  const feed = async (): Promise<void> => {
    try {
      for await (const chunk of coded)
        if (!decoder.write(chunk)) await new Promise((resolve) => decoder.once("drain", resolve));
    } catch (thrown) {
      fault = thrown;
    }
    decoder.end();
  };
  void feed();
  try {
    for await (const piece of decoder) yield piece;
  } catch (error) {
    throw fault ?? new CodingError(true, messageOf(error), error);
  }
  if (fault !== null) throw fault;
}

export async function decodeBody(
  bytes: Uint8Array,
  contentEncoding: string | undefined,
  limit: number,
): Promise<Uint8Array> {
  const codings = readCodings(contentEncoding);
  if (codings.length === 0) return bytes;
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of decodePieces([asBuffer(bytes)], codings)) {
    pieces.push(piece);
    size += piece.length;
    if (size > limit) throw new BodyTooLarge(`the body is more than ${limit} bytes when decompressed`);
  }
  return joinChunks(pieces);
}
