// Decodes responses: some upstreams compress unasked.

import { CodingError, decodePieces, readCodings } from "../../lib/codings.ts";
import { type Answer, type Body, UpstreamFault } from "../../lib/http/upstream.ts";

const OF_CODED_BYTES: ReadonlySet<string> = new Set(["content-encoding", "content-length"]);

export function decodeAnswer(answer: Answer): Answer {
  const { head } = answer;
  const coding = head.fields.get("content-encoding");
  if (coding === undefined || head.length === 0) return answer;
  const codings = readCodings(coding);
  if (codings.length === 0) return answer;
  const decoded = pass(open(answer, codings), answer);
  // The decoder of zstd does not notice a missing end.
  const closeDelimited = head.closeDelimited || codings.includes("zstd");
  return {
    head: {
      ...head,
      fields: head.fields.without(OF_CODED_BYTES),
      length: null,
      closeDelimited,
    },
    read: async () => {
      const { done, value } = await decoded.next();
      return done === true ? null : value;
    },
    cancel: () => answer.cancel(),
  };
}

function open(body: Body, codings: readonly string[]): ReturnType<typeof decodePieces> {
  try {
    return decodePieces(readPieces(body), codings);
  } catch (error) {
    throw toFault(error);
  }
}

async function* readPieces(body: Body): AsyncGenerator<Buffer> {
  for (let chunk = await body.read(); chunk !== null; chunk = await body.read()) yield chunk;
}

async function* pass(pieces: ReturnType<typeof decodePieces>, body: Body): AsyncGenerator<Buffer> {
  try {
    yield* pieces;
  } catch (error) {
    body.cancel();
    throw toFault(error);
  }
}

function toFault(error: unknown): unknown {
  if (!(error instanceof CodingError)) return error;
  const text = `its compressed response cannot be read: ${error.message}`;
  return new UpstreamFault(error.isKnown ? "cut" : "malformed", text, error);
}
