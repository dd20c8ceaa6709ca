// WebSockets for tests, on the runtime's own implementation: an upstream that follows a script, and a client that
// remembers what it got.

import type { ServerWebSocket } from "bun";

type Event = Record<string, unknown>;

function readEvent(text: string): Event {
  return JSON.parse(text);
}

export interface SocketUpstream {
  readonly url: string;
  /** Messages that clients sent, in order. */
  readonly received: Event[];
  /** The fields of each handshake. */
  readonly handshakes: Headers[];
  /** Open connections. */
  readonly open: Set<ServerWebSocket>;
  /** Resolves when this many messages have arrived. */
  arrived(count: number): Promise<void>;
  stop(): void;
}

type Reply = (event: Event, socket: ServerWebSocket, text: string) => void | Promise<void>;

export interface UpstreamScript {
  /** Called for each message. The default answers a whole response. */
  readonly reply?: Reply;
  /** The response to the handshake, instead of a WebSocket. */
  readonly refuse?: (request: Request) => Response | null;
  readonly closed?: (code: number, reason: string) => void;
}

export function startSocketUpstream(script: UpstreamScript = {}): SocketUpstream {
  const received: Event[] = [];
  const handshakes: Headers[] = [];
  const open = new Set<ServerWebSocket>();
  const waiting: { count: number; resolve: () => void }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request, self) {
      handshakes.push(request.headers);
      const refusal = script.refuse?.(request) ?? null;
      if (refusal !== null) return refusal;
      return self.upgrade(request) ? undefined : new Response("no upgrade", { status: 400 });
    },
    websocket: {
      maxPayloadLength: 64 * 1024 * 1024,
      idleTimeout: 900,
      open: (socket) => void open.add(socket),
      message: (socket, text) => {
        const event = readEvent(String(text));
        received.push(event);
        for (const each of waiting) if (received.length >= each.count) each.resolve();
        void (script.reply ?? answerWhole)(event, socket, String(text));
      },
      close: (socket, code, reason) => {
        open.delete(socket);
        script.closed?.(code, reason);
      },
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    received,
    handshakes,
    open,
    arrived: (count) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      if (received.length >= count) resolve();
      else waiting.push({ count, resolve });
      return promise;
    },
    stop: () => void server.stop(true),
  };
}

let made = 0;

/** Returns the events of a response with a few words, as the provider sends them. */
export function responseEvents(request: Event, words: readonly string[] = ["Hello", " world"]): Event[] {
  const id = `resp_${(made += 1)}`;
  const stream = request["stream_id"] === undefined ? {} : { stream_id: request["stream_id"] };
  const base = { id, object: "response", model: request["model"], output: [] };
  const usage = {
    input_tokens: 100,
    input_tokens_details: { cached_tokens: 40 },
    output_tokens: words.length,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 100 + words.length,
  };
  return [
    { type: "response.created", response: { ...base, status: "in_progress" } },
    ...words.map((delta) => ({
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      delta,
    })),
    { type: "response.completed", response: { ...base, status: "completed", usage } },
  ].map((event, sequence_number) => ({ ...event, ...stream, sequence_number }));
}

const answerWhole: Reply = (event, socket) => {
  if (event["type"] !== "response.create") return;
  for (const each of responseEvents(event)) socket.send(JSON.stringify(each));
};

export interface SocketClient {
  readonly messages: Event[];
  /** Each message as it came; `binary: …` if it was not a text. */
  readonly texts: string[];
  readonly closing: Promise<{ code: number; reason: string }>;
  send(event: Event | string): void;
  /** How many bytes have been written and have not left yet. */
  unsent(): number;
  /** Resolves with the first message of this type, from the message with the index `from` on. Rejects if the connection ends. */
  next(type: string, from?: number): Promise<Event>;
  close(code?: number, reason?: string): void;
  /** Ends the connection without a close frame. */
  terminate(): void;
}

/** Resolves when the connection is open. Rejects if the handshake fails. */
export async function openSocket(port: number, key: string, fields = {}): Promise<SocketClient> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/responses`, {
    headers: { authorization: `Bearer ${key}`, "openai-beta": "responses_websockets=2026-02-06", ...fields },
  });
  const messages: Event[] = [];
  const texts: string[] = [];
  const waiting = new Set<() => void>();
  const opened = Promise.withResolvers<void>();
  const closing = Promise.withResolvers<{ code: number; reason: string }>();
  let closed = false;
  socket.addEventListener("open", () => opened.resolve());
  socket.addEventListener("message", ({ data }) => {
    texts.push(typeof data === "string" ? data : `binary: ${data}`);
    messages.push(readEvent(String(data)));
    for (const check of waiting) check();
  });
  socket.addEventListener("close", ({ code, reason }) => {
    closed = true;
    opened.reject(new Error(`the handshake failed: ${code} ${reason}`));
    closing.resolve({ code, reason });
    for (const check of waiting) check();
  });
  await opened.promise;
  return {
    messages,
    texts,
    closing: closing.promise,
    send: (event) => socket.send(typeof event === "string" ? event : JSON.stringify(event)),
    unsent: () => socket.bufferedAmount,
    next: (type, from = 0) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          const found = messages.slice(from).find((message) => message["type"] === type);
          if (found === undefined && !closed) return;
          waiting.delete(check);
          if (found === undefined) reject(new Error(`the connection closed before ${type}`));
          else resolve(found);
        };
        waiting.add(check);
        check();
      }),
    close: (code, reason) => socket.close(code, reason),
    terminate: () => socket.terminate(),
  };
}
