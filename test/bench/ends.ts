// Both ends of what is measured, in this process: the upstream, which answers with bytes made in advance, and the clients.
// They share a clock, so that an event of a stream can carry the time at which it was sent.

import type { Socket } from "bun";
import { TURNS, writeTurn } from "./conversation.ts";

/** The upstream's work: an answer in one piece, an agent's turn of 300 events at once, a stream
 *  with an event every 20 ms, or a long stream as fast as its reader takes it. */
export type Kind = "json" | "turn" | "paced" | "flood";
const KINDS: readonly Kind[] = ["json", "turn", "paced", "flood"];
/** The word in a prompt that tells the upstream what to do. */
const MARK = "bench:";
const MODEL = "claude-haiku-4-5";
const EVENTS = { turn: 300, paced: 25, flood: 20_000 };
const PACE_MS = 20;
const STAMP_DIGITS = 16;
const NO_STAMP = "0".repeat(STAMP_DIGITS);
const HEAD_END = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

const readMicros = (): number => performance.now() * 1000;

const event = (type: string, value: object): string => {
  const text = `event: ${type}\ndata: ${JSON.stringify({ type, ...value })}\n\n`;
  return `${text.length.toString(16)}\r\n${text}\r\n`;
};

function writeStream(events: number, text: string): string[] {
  const usage = { input_tokens: 100, cache_read_input_tokens: 41_000, output_tokens: 1 };
  const message = { id: "msg_bench", type: "message", role: "assistant", model: MODEL, content: [], usage };
  const delta = event("content_block_delta", { index: 0, delta: { type: "text_delta", text } });
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
  return [
    head + event("message_start", { message }),
    event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    ...Array.from({ length: events }, () => delta),
    event("content_block_stop", { index: 0 }),
    event("message_delta", { delta: { stop_reason: "end_turn" }, usage: { output_tokens: events } }),
    `${event("message_stop", {})}0\r\n\r\n`,
  ];
}

function writeWhole(): string {
  const body = JSON.stringify({
    id: "msg_bench",
    type: "message",
    role: "assistant",
    model: MODEL,
    content: [{ type: "text", text: "x".repeat(700) }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 100, cache_read_input_tokens: 0, output_tokens: 175 },
  });
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

const ANSWERS = {
  json: Buffer.from(writeWhole()),
  turn: Buffer.from(writeStream(EVENTS.turn, "a few words").join("")),
  flood: Buffer.from(writeStream(EVENTS.flood, "a few words").join("")),
};
const PACED = writeStream(EVENTS.paced, NO_STAMP);

interface Serving {
  held: Buffer;
  unsent: Buffer;
}

/** Starts the upstream, which runs as long as this process. Returns its port. */
export function openUpstream(): number {
  const drain = (socket: Socket<Serving>): void => {
    const { unsent } = socket.data;
    if (unsent.length > 0) socket.data.unsent = unsent.subarray(socket.write(unsent));
  };
  const listener = Bun.listen<Serving>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => void (socket.data = { held: Buffer.alloc(0), unsent: Buffer.alloc(0) }),
      drain,
      data: (socket, bytes) => {
        const { data } = socket;
        data.held = data.held.length === 0 ? bytes : Buffer.concat([data.held, bytes]);
        if (!isWhole(data.held)) return;
        const kind = findKind(data.held);
        data.held = Buffer.alloc(0);
        if (kind === "paced") return sendPaced(socket, 0);
        data.unsent = ANSWERS[kind];
        drain(socket);
      },
    },
  });
  return listener.port;
}

function isWhole(request: Buffer): boolean {
  const end = request.indexOf(HEAD_END);
  if (end < 0) return false;
  const [, length] = /content-length: *(\d+)/i.exec(request.toString("latin1", 0, end)) ?? [];
  if (length === undefined) return request.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
  return request.length >= end + HEAD_END.length + Number(length);
}

function findKind(request: Buffer): Kind {
  const at = request.indexOf(MARK) + MARK.length;
  const word = request.toString("latin1", at, at + 5);
  return KINDS.find((kind) => word.startsWith(kind)) ?? "json";
}

function sendPaced(socket: Socket<Serving>, at: number): void {
  const piece = PACED[at];
  if (piece === undefined || socket.readyState !== 1) return;
  socket.write(piece.replace(NO_STAMP, Math.round(readMicros()).toString().padStart(STAMP_DIGITS, "0")));
  setTimeout(sendPaced, PACE_MS, socket, at + 1);
}

/** Where requests go. */
export interface Address {
  readonly port: number;
  readonly key: string;
}

function frame({ port, key }: Address, body: string, more: Readonly<Record<string, string>>): Buffer {
  const fields = {
    host: `127.0.0.1:${port}`,
    "x-api-key": key,
    "anthropic-version": "2023-06-01",
    ...more,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`POST /v1/messages HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
}

/** Writes the requests of one client: always the same, or the turns of an agent's session one after the other. */
function writeRequests(address: Address, kind: Kind): readonly Buffer[] {
  if (kind === "turn") {
    const session = crypto.randomUUID();
    const own = {
      "user-agent": "claude-cli/2.1.332 (external, cli)",
      "x-claude-code-session-id": session,
      "x-app": "cli",
      "anthropic-beta": "claude-code-20250219,interleaved-thinking-2025-05-14",
      "accept-encoding": "gzip, deflate, br, zstd",
    };
    return Array.from({ length: TURNS }, (_, turn) => frame(address, writeTurn(MODEL, session, turn), own));
  }
  const text = `${MARK}${kind} ${"all work and no play makes jack a dull boy ".repeat(20)}`;
  const messages = [{ role: "user", content: [{ type: "text", text }] }];
  const body = JSON.stringify({ model: MODEL, stream: kind !== "json", max_tokens: 1024, messages });
  return [frame(address, body, { "user-agent": "bench/1" })];
}

export interface Load {
  readonly address: Address;
  readonly kind: Kind;
  readonly clients: number;
  readonly ms: number;
  /** The pause between an answer and the client's next request. */
  readonly pauseMs?: number;
}

/** Times in microseconds. */
export interface Outcome {
  readonly answers: number;
  readonly errors: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly whole: readonly number[];
  readonly first: readonly number[];
  /** The time from an event's sending to its arrival. */
  readonly delay: readonly number[];
}

interface Client {
  readonly requests: readonly Buffer[];
  next: number;
  unsent: Buffer;
  began: number;
  isFirst: boolean;
  /** The last bytes of the answer. */
  tail: Buffer;
  missing: number;
}

const NO_ANSWER = { unsent: Buffer.alloc(0), isFirst: true, tail: Buffer.alloc(0), missing: -1 };
const STAMP = new RegExp(`[0-9]{${STAMP_DIGITS}}`, "g");

/** Each client sends its next request when it has the whole answer, until the time is over. */
export async function runLoad({ address, kind, clients, ms, pauseMs = 0 }: Load): Promise<Outcome> {
  const seen = { answers: 0, errors: 0, bytes: 0 };
  const times = { whole: [] as number[], first: [] as number[], delay: [] as number[] };
  const began = performance.now();
  const open: Promise<void>[] = [];
  for (let count = 0; count < clients; count += 1) {
    const { promise, resolve } = Promise.withResolvers<void>();
    open.push(promise);
    const drain = (socket: Socket<Client>): void => {
      const { unsent } = socket.data;
      if (unsent.length > 0) socket.data.unsent = unsent.subarray(Math.max(0, socket.write(unsent)));
    };
    const ask = (socket: Socket<Client>): void => {
      if (performance.now() - began > ms) return void socket.end();
      const { data } = socket;
      Object.assign(data, NO_ANSWER, { unsent: data.requests[data.next], began: readMicros() });
      data.next = (data.next + 1) % data.requests.length;
      drain(socket);
    };
    const read = (socket: Socket<Client>, bytes: Buffer): void => {
      const { data } = socket;
      const now = readMicros();
      seen.bytes += bytes.length;
      if (data.isFirst) {
        data.isFirst = false;
        times.first.push(now - data.began);
        if (bytes.toString("latin1", 9, 12) !== "200") seen.errors += 1;
        const end = bytes.indexOf(HEAD_END);
        const [, length] = /content-length: *(\d+)/i.exec(bytes.toString("latin1", 0, end)) ?? [];
        data.missing = length === undefined ? -1 : end + HEAD_END.length + Number(length);
      }
      if (kind === "paced")
        for (const [stamp] of bytes.toString("latin1").matchAll(STAMP))
          if (stamp !== NO_STAMP) times.delay.push(now - Number(stamp));
      data.missing -= data.missing < 0 ? 0 : bytes.length;
      data.tail = Buffer.concat([data.tail, bytes.subarray(-LAST_CHUNK.length)]).subarray(-LAST_CHUNK.length);
      if (data.missing !== 0 && !data.tail.equals(LAST_CHUNK)) return;
      times.whole.push(now - data.began);
      seen.answers += 1;
      if (pauseMs === 0) ask(socket);
      else setTimeout(ask, pauseMs, socket);
    };
    const fail = (): void => void (seen.errors += 1);
    const data = { ...NO_ANSWER, requests: writeRequests(address, kind), next: 0, began: 0 };
    const socket = { open: ask, drain, data: read, error: fail, connectError: fail, close: () => resolve() };
    await Bun.connect<Client>({ hostname: "127.0.0.1", port: address.port, data, socket });
  }
  await Promise.all(open);
  return { ...seen, ...times, seconds: (performance.now() - began) / 1000 };
}
