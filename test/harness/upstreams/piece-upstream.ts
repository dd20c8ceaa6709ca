// An upstream whose JSON answer comes in the pieces that a test gives, each in a write of its own.

import { onTestFinished } from "bun:test";

export interface PieceAnswer {
  readonly status?: number;
  readonly fields?: Readonly<Record<string, string>>;
  readonly pieces: readonly string[];
}

export interface PieceUpstream {
  readonly url: string;
  /** The bodies of the requests that the upstream got. */
  readonly bodies: readonly string[];
}

/** Starts an upstream that stops when the test has finished. */
export function startPieceUpstream(answer: () => PieceAnswer): PieceUpstream {
  const bodies: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      bodies.push(await request.text());
      const { status = 200, fields = {}, pieces } = answer();
      const headers = { "content-type": "application/json", ...fields };
      return new Response(pieces.length === 1 ? pieces[0] : stream(pieces), { status, headers });
    },
  });
  onTestFinished(() => server.stop(true));
  return { url: `http://127.0.0.1:${server.port}`, bodies };
}

function stream(pieces: readonly string[]): ReadableStream<Uint8Array> {
  const left = pieces.map((piece) => Buffer.from(piece));
  return new ReadableStream({
    async pull(controller) {
      const piece = left.shift();
      if (piece === undefined) return controller.close();
      controller.enqueue(piece);
      await new Promise(setImmediate);
    },
  });
}
