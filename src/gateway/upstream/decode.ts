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
import { Ahead, BodyQueue } from "../../lib/http/body-queue.ts";
import { MAX_CODINGS, readCodings } from "../../lib/http/encoding.ts";
import { UpstreamFault } from "../../lib/http/faults.ts";
import { type Answer, UpstreamResponse } from "../../lib/http/upstream.ts";

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
  const queue = decode(answer, openDecoders(codings));
  const ahead = new Ahead(() => queue.read());
  // One decoder does not notice a missing end.
  const closeDelimited = head.closeDelimited || codings.includes("zstd");
  return {
    head: new UpstreamResponse(head.status, head.fields.without(OF_CODED_BYTES), null, closeDelimited),
    read: () => ahead.read(),
    peek: (ms) => ahead.peek(ms),
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

/** What has come before a fault is decoded first. */
function decode(answer: Answer, decoders: readonly Transform[]): BodyQueue {
  const [first] = decoders;
  const last = decoders.at(-1);
  const queue = new BodyQueue({
    pause: () => last?.pause(),
    resume: () => last?.resume(),
    awaitBytes: () => {},
  });
  let fault: unknown = null;
  let goOn = (): void => {};
  first?.on("drain", () => goOn());
  const end = (problem: unknown): void => {
    for (const decoder of decoders) decoder.destroy();
    queue.end(problem);
  };
  for (const [index, decoder] of decoders.entries()) {
    decoder.on("error", (error) => {
      answer.cancel();
      const text = `its compressed response cannot be read: ${getErrorMessage(error)}`;
      end(fault ?? new UpstreamFault("cut", text, true, error));
    });
    const next = decoders[index + 1];
    if (next !== undefined) decoder.pipe(next);
  }
  last?.on("data", (bytes: Buffer) => queue.push(bytes));
  last?.on("end", () => end(fault));
  void (async () => {
    try {
      for (let chunk = await answer.read(); chunk !== null; chunk = await answer.read())
        if (first?.write(chunk) === false) await new Promise<void>((resolve) => (goOn = resolve));
    } catch (thrown) {
      fault = thrown;
    }
    first?.end();
  })();
  return queue;
}
