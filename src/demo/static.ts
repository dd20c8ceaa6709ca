// The fast side of the simulated upstream, for the benchmark: every answer's
// bytes are made beforehand, so that it is never the bottleneck. It answers any
// request at once, looking no further into it than for `"stream":true`.

import type { Socket } from "bun";
import { answerJson, answerStream, type Answer } from "./answer.ts";
import { chat } from "./chat.ts";
import { content } from "./content.ts";
import type { Family, FamilyName } from "./family.ts";
import { messages } from "./messages.ts";
import { responses } from "./responses.ts";
import { listSteps, writeScript } from "./script.ts";
import { composeTurn, type Ask } from "./turn.ts";

export interface StaticOptions {
  readonly port?: number;
  readonly family?: FamilyName;
  /** Words of a streamed answer, an event of about 150 bytes each. */
  readonly words?: number;
  /** Between two events, on a schedule that does not drift; 0: all at once. */
  readonly paceMs?: number;
  /** Each paced event says when it was sent: 16 digits, the machine's monotonic clock in microseconds
   *  (`process.hrtime`, the same for all processes), so that its delay can be measured. */
  readonly stamps?: boolean;
  /** Bytes of the text in an answer that isn't streamed. */
  readonly textBytes?: number;
}

export interface StaticUpstream {
  readonly port: number;
  readonly url: string;
  /** Bytes of one whole answer on the wire, head included. */
  readonly jsonBytes: number;
  readonly streamBytes: number;
  stop(): void;
}

const FAMILIES: Readonly<Record<FamilyName, Family>> = { messages, responses, chat, content };
const NO_STAMP = "0".repeat(16);
const HEAD_END = Buffer.from("\r\n\r\n");
const LENGTH = /\r\ncontent-length: *(\d+)/i;
const STREAM_MARKS = [Buffer.from('"stream":true'), Buffer.from("alt=sse")];

interface Peer {
  received: Buffer;
  /** What the kernel has not taken yet. */
  unsent: Uint8Array[];
  timer: Timer | null;
}

export function startStaticUpstream(options: StaticOptions = {}): StaticUpstream {
  const { json, stream } = precompute(options);
  const pace = options.paceMs ?? 0;
  const whole = Buffer.concat(stream);
  const sockets = new Set<Socket<Peer>>();
  const answer = (socket: Socket<Peer>, request: Buffer): void => {
    const streamed = STREAM_MARKS.some((mark) => request.includes(mark));
    if (!streamed) send(socket, json);
    else if (pace === 0) send(socket, whole);
    else sendPaced(socket, stream, pace);
  };
  const forget = (socket: Socket<Peer>): void => {
    sockets.delete(socket);
    clearTimeout(socket.data.timer ?? undefined);
  };
  const listener = Bun.listen<Peer>({
    hostname: "127.0.0.1",
    port: options.port ?? 0,
    socket: {
      open(socket) {
        socket.data = { received: Buffer.alloc(0), unsent: [], timer: null };
        sockets.add(socket);
      },
      data(socket, bytes) {
        const peer = socket.data;
        const all = peer.received.length === 0 ? Buffer.from(bytes) : Buffer.concat([peer.received, bytes]);
        peer.received = takeRequests(all, (request) => answer(socket, request));
      },
      drain: (socket) => send(socket),
      close: forget,
      error: forget,
    },
  });
  return {
    port: listener.port,
    url: `http://127.0.0.1:${listener.port}`,
    jsonBytes: json.length,
    streamBytes: whole.length,
    stop() {
      listener.stop(true);
      for (const socket of sockets) socket.terminate();
    },
  };
}

function precompute({ family = "messages", words = 100, textBytes = 700, stamps = false }: StaticOptions) {
  const speaker = FAMILIES[family];
  const write = (answer: Answer): Uint8Array[] =>
    listSteps(writeScript(answer, {})).filter((step) => step instanceof Uint8Array);
  const memory = { next: () => 1, cached: new Set<string>() };
  const body = { model: "demo", stream_options: { include_usage: true } };
  const short = { ...composeTurn(ASK, memory, 1), text: ["x".repeat(textBytes)] };
  const composed = composeTurn(ASK, memory, words);
  const long = stamps ? { ...composed, text: composed.text.map(() => NO_STAMP) } : composed;
  return {
    json: Buffer.concat(write(answerJson(family, speaker.writeReply(short, body)))),
    stream: write(answerStream(family, speaker.writeEvents(long, body))),
  };
}

const ASK: Ask = {
  model: "demo",
  stream: true,
  prompt: "Measure",
  toolResult: null,
  tools: [],
  choice: "none",
  schema: undefined,
  thinks: false,
  maxTokens: Infinity,
  inputTokens: 100,
  cachePoints: [],
};

/** Calls `each` for every whole request, and gives back what is left. */
function takeRequests(all: Buffer, each: (request: Buffer) => void): Buffer {
  let rest = all;
  while (rest.length > 0) {
    const end = rest.indexOf(HEAD_END);
    if (end < 0) return rest;
    const length = Number(LENGTH.exec(rest.toString("latin1", 0, end))?.[1] ?? 0);
    const total = end + HEAD_END.length + length;
    if (rest.length < total) return rest;
    each(rest.subarray(0, total));
    rest = rest.subarray(total);
  }
  return rest;
}

function send(socket: Socket<Peer>, bytes?: Uint8Array): void {
  const { unsent } = socket.data;
  if (bytes !== undefined) unsent.push(bytes);
  for (let first = unsent[0]; first !== undefined; first = unsent[0]) {
    const taken = Math.max(0, socket.write(first));
    if (taken < first.length) {
      unsent[0] = first.subarray(taken);
      return;
    }
    unsent.shift();
  }
}

function sendPaced(socket: Socket<Peer>, pieces: readonly Uint8Array[], paceMs: number): void {
  const start = performance.now();
  const sendNext = (index: number): void => {
    const piece = pieces[index];
    if (piece === undefined) return;
    send(socket, stampPiece(piece));
    const due = start + (index + 1) * paceMs - performance.now();
    socket.data.timer = setTimeout(() => sendNext(index + 1), Math.max(0, due));
  };
  sendNext(0);
}

function stampPiece(piece: Uint8Array): Uint8Array {
  const at = Buffer.from(piece.buffer, piece.byteOffset, piece.length).indexOf(NO_STAMP);
  if (at < 0) return piece;
  const stamped = Buffer.from(piece);
  stamped.write(String(process.hrtime.bigint() / 1000n).padStart(NO_STAMP.length, "0"), at);
  return stamped;
}
