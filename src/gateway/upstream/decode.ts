// The gateway asks upstreams for uncompressed responses. Some compress anyway. Their responses are decoded here, so that
// they can be metered and redacted, and no client gets bytes that it cannot read. Decoded bytes are passed on at once.

import type { Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { getErrorMessage } from "../../lib/errors.ts";
import { MAX_CODINGS, readCodings } from "../../lib/http/encoding.ts";
import { type Answer, type Body, UpstreamFault, UpstreamResponse } from "../../lib/http/upstream.ts";

/** With Z_SYNC_FLUSH, decoded bytes come out at once, and a missing end is still an error. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH };

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ["gzip", () => createGunzip(ZLIB)],
  ["x-gzip", () => createGunzip(ZLIB)],
  ["deflate", () => createInflate(ZLIB)],
  ["br", () => createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH })],
  ["zstd", () => createZstdDecompress()],
]);

/** The same answer, with a body that has no content coding. Throws UpstreamFault if a coding is unknown. */
export function decodeAnswer(answer: Answer): Answer {
  const { head } = answer;
  const codings = readCodings(head.field("content-encoding"));
  if (codings.length === 0 || head.length === 0) return answer;
  let pieces: AsyncIterable<Buffer> = readPieces(answer);
  for (const decoder of openDecoders(codings)) pieces = decode(pieces, decoder, () => answer.cancel());
  const decoded = pieces[Symbol.asyncIterator]();
  // One decoder does not notice a missing end.
  const closeDelimited = head.closeDelimited || codings.includes("zstd");
  return {
    head: new UpstreamResponse(head.status, head.fields.without(OF_CODED_BYTES), null, closeDelimited),
    read: async () => {
      const { done, value } = await decoded.next();
      return done === true ? null : value;
    },
    cancel: () => answer.cancel(),
  };
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

async function* readPieces(body: Body): AsyncGenerator<Buffer> {
  for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) yield chunk;
}

/** What has come before a fault is decoded first. */
async function* decode(
  coded: AsyncIterable<Buffer>,
  decoder: Transform,
  cancel: () => void,
): AsyncGenerator<Buffer> {
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
    cancel();
    if (fault instanceof UpstreamFault) throw fault;
    const text = `its compressed response cannot be read: ${getErrorMessage(error)}`;
    throw new UpstreamFault("cut", text, true, error);
  }
  if (fault !== null) throw fault;
}
