// Serves clients over HTTP/1.1 and WebSocket with the runtime's server (decision 0029).

import type { Server as BunServer, ServerWebSocket } from "bun";
import type { Slices } from "../json/slices.ts";
import { asBuffer, NOTHING } from "../memory/bytes.ts";
import { Deadline } from "../time/deadline.ts";
import { nextTurn } from "../time/next-turn.ts";
import { BodyTooLarge, ClientGone, type Exchange, type Listen, type ListenOptions } from "./exchange.ts";
import { type Field, Fields, FRAMING_FIELDS, type SentFields } from "./fields.ts";
import {
  type ClientListener,
  type Closing,
  MAX_WAITING_BYTES,
  type Payload,
  type OpenPeer,
  type WebSocketPeer,
} from "./web-socket.ts";

/** `stallMs` is long, so that an agent can read on after its machine has slept. */
const DEFAULT_LIMITS = { bodyMs: 60_000, stallMs: 15 * 60_000, idleSeconds: 90 };
const SOCKET_IDLE_SECONDS = 960;
/** A body up to this length is read by one call, in half the time. */
const SHORT_BODY_BYTES = 1024 * 1024;
/** A longer reply is sent in pieces:
 *  the runtime would not say when a client has all of it. */
const PIECE_BYTES = 256 * 1024;
/** A reset discards what the client has not read in this time. */
const RESET_WAIT_MS = 1000;

const BODILESS: ReadonlySet<number> = new Set([204, 205, 304]);

interface Surroundings extends Required<ListenOptions> {
  readonly peers: Set<ServedPeer>;
  stopping: boolean;
}

export const listen: Listen = (options) => {
  const surroundings: Surroundings = { ...DEFAULT_LIMITS, ...options, peers: new Set(), stopping: false };
  const { onExchange, onError, idleSeconds } = surroundings;
  const server: BunServer<ServedPeer> = Bun.serve<ServedPeer>({
    hostname: options.hostname,
    port: options.port,
    // Otherwise the runtime prints lines of the source.
    development: false,
    // Outside of development, the runtime lets several processes share a port.
    reusePort: false,
    idleTimeout: idleSeconds,
    // `readBody` has a limit, whose error is in the client's dialect.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: (request) => {
      const exchange = new ServedExchange(request, server, surroundings);
      try {
        onExchange(exchange);
      } catch (error) {
        exchange.reset();
        onError(error);
      }
      return exchange.reply;
    },
    error: (error) => {
      onError(error);
      return new Response(null, { status: 500 });
    },
    websocket: {
      maxPayloadLength: options.maxMessageBytes,
      // `ServedPeer` has its own limit.
      backpressureLimit: 0,
      idleTimeout: SOCKET_IDLE_SECONDS,
      open: (socket) => socket.data.start(socket),
      message: (socket, data) => socket.data.receive(data),
      drain: (socket) => socket.data.drain(),
      close: (socket, code, reason) => socket.data.closed({ code, reason }),
    },
  });
  const stop = (isNow: boolean): Promise<void> => {
    surroundings.stopping = true;
    for (const peer of surroundings.peers) peer.stopping();
    return server.stop(isNow);
  };
  return { port: server.port ?? 0, stop: () => stop(false), stopNow: () => void stop(true) };
};

class ServedExchange implements Exchange {
  readonly method: string;
  readonly target: string;
  readonly fields = new Fields();
  replyFields: readonly Field[] = [];
  begun = false;
  gone = false;
  readonly #request: Request;
  readonly #server: BunServer<ServedPeer>;
  readonly #surroundings: Surroundings;
  #reply!: (response: Response | undefined) => void;
  readonly reply = new Promise<Response | undefined>((resolve) => (this.#reply = resolve));
  #sent!: () => void;
  readonly sent = new Promise<void>((resolve) => (this.#sent = resolve));
  /** Ends the exchange if its body stops arriving,
   *  or if nobody reads its reply. */
  readonly #deadline = new Deadline(() => {
    this.#leave();
    this.#break();
  });
  #head: { readonly status: number; readonly headers?: Headers } = { status: 502 };
  #isBodiless = false;
  #ended = false;
  #isBroken = false;
  #stream: ReadableStreamDirectController | null = null;
  /** What runs when the runtime asks for the stream. Null:
   *  no stream was offered. */
  #onStream: (() => unknown)[] | null = null;
  #unsent: Promise<void> | null = null;
  #goneListeners: (() => void)[] = [];

  constructor(request: Request, server: BunServer<ServedPeer>, surroundings: Surroundings) {
    this.method = request.method;
    this.target = readTarget(request.url);
    // `toJSON` takes half as long as iterating.
    // It makes repeated `set-cookie` an array.
    const all = request.headers.toJSON();
    for (const name in all) this.fields.push([name, String(all[name])]);
    this.#request = request;
    this.#server = server;
    this.#surroundings = surroundings;
    // The gateway decides how long a request may take.
    server.timeout(request, 0);
    request.signal.addEventListener("abort", () => this.#leave());
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }

  readBody(limit: number): Promise<Uint8Array> {
    // The runtime accepts a repeated length, and joins the two.
    const length = Number.parseInt(this.field("content-length") ?? "", 10);
    this.#deadline.arm(this.#surroundings.bodyMs * (Math.ceil(length / PIECE_BYTES) || 1));
    return new Promise((resolve, reject) => {
      const fail = (cause?: unknown): void => {
        this.#deadline.disarm();
        reject(cause instanceof BodyTooLarge ? cause : new ClientGone("the client has left", { cause }));
      };
      // The runtime may keep a body open after its client has left.
      this.onGone(fail);
      if (length > limit) return fail(tooLarge(limit));
      const isShort = length <= SHORT_BODY_BYTES;
      (isShort ? this.#request.arrayBuffer() : this.#receiveLong(limit, length)).then((body) => {
        this.#deadline.disarm();
        resolve(body instanceof ArrayBuffer ? Buffer.from(body) : body); // many need a Buffer
      }, fail);
    });
  }

  async #receiveLong(limit: number, length: number): Promise<Buffer> {
    let body = Buffer.allocUnsafe(length || 0);
    let size = 0;
    // If the loop ends early, the runtime cancels the body.
    for await (const piece of this.#request.body ?? []) {
      if (this.gone) break;
      this.#deadline.arm(this.#surroundings.bodyMs);
      const end = size + piece.length;
      if (end > limit) throw tooLarge(limit);
      if (end > body.length) body = Buffer.concat([body.subarray(0, size)], 2 * end);
      body.set(piece, size);
      size = end;
    }
    return body.subarray(0, size);
  }

  answer(status: number, fields: SentFields, body: Uint8Array | string): void {
    this.begin(status, fields);
    this.end(typeof body === "string" ? Buffer.from(body) : body);
  }

  begin(status: number, fields: SentFields): void {
    if (this.begun) throw new Error("the reply has already begun");
    this.begun = true;
    const sent = status < 200 || status > 599 ? 502 : status;
    this.#head = { status: sent, headers: this.#writeHead(fields) };
    this.#isBodiless = this.method === "HEAD" || BODILESS.has(status);
  }

  write(chunk: Uint8Array): Promise<void> | null {
    return this.gone || this.#ended ? null : this.#send(chunk);
  }

  end(rest: Uint8Array | Slices = NOTHING): void {
    if (this.gone || this.#ended) return;
    if (!this.begun) throw new Error("a reply without a head");
    this.#ended = true;
    const isShort = rest instanceof Uint8Array && (rest.length <= PIECE_BYTES || this.#isBodiless);
    if (this.#onStream !== null || !isShort) return this.#onceOpen(() => this.#sendLast(rest));
    this.#awaitNextRequest();
    this.#respond(rest);
    this.#sent();
  }

  /** The runtime copies all it gets, so a long rest is sent as fast as the client reads. */
  async #sendLast(rest: Uint8Array | Slices): Promise<void> {
    for (const piece of cutPieces(rest, this.#request.signal)) await (this.#send(piece) ?? nextTurn());
    await this.#unsent;
    this.#sent();
    if (this.#isBroken) return;
    this.#awaitNextRequest();
    await this.#stream?.end();
  }

  reset(): void {
    if (this.gone || this.#ended) return;
    this.begun = true;
    this.#ended = true;
    this.#break();
  }

  acceptWebSocket(fields: SentFields, open: OpenPeer): boolean {
    if (this.begun) throw new Error("the reply has already begun");
    const upgrade = { headers: this.#writeHead(fields), data: new ServedPeer(open, this.#surroundings) };
    if (!this.#server.upgrade(this.#request, upgrade)) return false;
    this.begun = true;
    this.#ended = true;
    this.#reply(undefined);
    return true;
  }

  onGone(listener: () => void): void {
    if (this.gone) listener();
    else if (!this.#ended) this.#goneListeners.push(listener);
  }

  #leave(): void {
    this.#sent();
    if (this.gone || this.#ended) return;
    this.gone = true;
    this.#deadline.disarm();
    for (const listener of this.#goneListeners) listener();
  }

  #writeHead(fields: SentFields): Headers {
    const head = new Headers();
    for (const field of fields) if (!FRAMING_FIELDS.has(field[0])) head.append(field[0], field[1]);
    for (const field of this.replyFields) head.append(field[0], field[1]);
    return head;
  }

  #respond(body: Uint8Array | ReadableStream): void {
    this.#reply(new Response(BODILESS.has(this.#head.status) ? null : body, this.#head));
  }

  #send(chunk: Uint8Array): Promise<void> | null {
    if (chunk.length === 0 || this.#isBodiless || this.#isBroken) return this.#unsent;
    if (this.#stream === null) {
      this.#onceOpen(() => this.#send(chunk));
      return null;
    }
    const taken = this.#stream.write(chunk);
    if (typeof taken === "number") return this.#unsent;
    this.#deadline.arm(this.#surroundings.stallMs);
    const done = (): void => {
      if (this.#unsent !== unsent) return;
      this.#unsent = null;
      this.#deadline.disarm();
    };
    const unsent = taken.then(done, done);
    this.#unsent = unsent;
    return unsent;
  }

  #onceOpen(act: () => unknown): void {
    if (this.#stream !== null) return void act();
    if (this.#onStream !== null) return void this.#onStream.push(act);
    this.#onStream = [act];
    const pull = (controller: ReadableStreamDirectController): void => {
      this.#stream = controller;
      for (const each of this.#onStream ?? []) each();
    };
    this.#respond(new ReadableStream({ type: "direct", pull }));
  }

  /** Bytes sent earlier arrive first, unless the client reads nothing. */
  #break(): void {
    const hasBegun = this.#onStream !== null;
    this.#awaitNextRequest(); // the runtime may never ask for the stream
    this.#onceOpen(async () => {
      await Promise.race([this.#unsent, Bun.sleep(RESET_WAIT_MS)]);
      await Bun.sleep(hasBegun ? RESET_WAIT_MS : 1);
      this.#isBroken = true;
      this.#stream?.close(new Error("broken off"));
    });
  }

  #awaitNextRequest(): void {
    this.#server.timeout(this.#request, this.#surroundings.idleSeconds);
  }
}

/** The runtime has normalised path and query. */
function readTarget(url: string): string {
  // Without a valid Host, the URL is what the client wrote.
  const raw = url.startsWith("/") ? url : url.slice(url.indexOf("/", "https://".length));
  if (!/[#\\]|\/\.|%2e/i.test(raw)) return raw;
  const { pathname, search } = new URL(`http://host${raw}`);
  return pathname + search;
}

function* cutPieces(rest: Uint8Array | Slices, signal: AbortSignal): Generator<Uint8Array> {
  for (const part of rest instanceof Uint8Array ? [rest] : rest) {
    if (signal.aborted) return;
    const bytes = typeof part === "string" ? Buffer.from(part) : part;
    for (let at = 0; at < bytes.length && !signal.aborted; at += PIECE_BYTES)
      yield bytes.subarray(at, at + PIECE_BYTES);
  }
}

const tooLarge = (limit: number) => new BodyTooLarge(`the body is larger than ${limit} bytes`);

/** A client's WebSocket cannot be paused: the runtime reads whatever comes. */
class ServedPeer implements WebSocketPeer {
  readonly #openPeer: OpenPeer;
  readonly #surroundings: Surroundings;
  readonly #deadline = new Deadline(() => this.reset());
  #socket: ServerWebSocket<ServedPeer> | null = null;
  #listener: ClientListener | null = null;
  #unsent: PromiseWithResolvers<void> | null = null;
  #closing: Closing | null = null;

  constructor(openPeer: OpenPeer, surroundings: Surroundings) {
    this.#openPeer = openPeer;
    this.#surroundings = surroundings;
  }

  get open(): boolean {
    return this.#closing === null && this.#socket?.readyState === WebSocket.OPEN;
  }

  get unsent(): Promise<void> | null {
    return this.#unsent?.promise ?? null;
  }

  send({ kind, bytes }: Payload): Promise<void> | null {
    const socket = this.#socket;
    if (socket === null || !this.open) return null;
    if (this.#unsent !== null && socket.getBufferedAmount() > MAX_WAITING_BYTES) this.reset();
    else if (
      (kind === "text" ? socket.sendText(asBuffer(bytes).toString()) : socket.sendBinary(bytes)) === -1
    ) {
      this.#unsent ??= Promise.withResolvers();
      this.#deadline.arm(this.#drainMs);
    }
    return this.unsent;
  }

  /** A client with 16 MB unread has a minute to read on. */
  get #drainMs(): number {
    const isMuch = (this.#socket?.getBufferedAmount() ?? 0) > MAX_WAITING_BYTES;
    return isMuch ? this.#surroundings.bodyMs : this.#surroundings.stallMs;
  }

  close(closing: Closing): void {
    if (!this.open) return;
    this.#closing = closing;
    if (this.#unsent === null) this.#socket?.close(closing.code, closing.reason);
  }

  reset(): void {
    this.#socket?.terminate();
  }

  start(socket: ServerWebSocket<ServedPeer>): void {
    this.#socket = socket;
    this.#listener = this.#openPeer(this);
    this.#surroundings.peers.add(this);
    if (this.#surroundings.stopping) this.stopping();
  }

  receive(data: string | Buffer): void {
    if (!this.open) return;
    const kind = typeof data === "string" ? "text" : "binary";
    this.#listener?.message({ kind, bytes: Buffer.from(data) });
  }

  drain(): void {
    if (this.#socket?.getBufferedAmount() !== 0) return this.#deadline.arm(this.#drainMs);
    this.#drained();
    if (this.#closing !== null) this.#socket.close(this.#closing.code, this.#closing.reason);
  }

  /** The runtime may call this while the gateway closes or sends. */
  closed(closing: Closing): void {
    this.#drained();
    this.#surroundings.peers.delete(this);
    queueMicrotask(() => this.#listener?.closed(closing));
  }

  stopping(): void {
    this.#listener?.stopping();
  }

  #drained(): void {
    this.#deadline.disarm();
    this.#unsent?.resolve();
    this.#unsent = null;
  }
}
