// A client and an upstream that speak HTTP/1.1 on bare sockets. They note byte for byte what they got, and how it ended.

import { connect, createServer, type Server, type Socket } from "node:net";

export type Fields = readonly (readonly [name: string, value: string])[];
/** How an answer ended. `whole`: at its announced end. `cut`: before it. `none`: nothing came. `left`: the client went away. */
export type End = "whole" | "cut" | "none" | "left";

interface Head {
  /** The words of the first line. */
  readonly start: readonly string[];
  readonly fields: Fields;
}

export function fieldOf(fields: Fields, name: string): string | undefined {
  return fields.find(([each]) => each.toLowerCase() === name)?.[1];
}

/** The bytes that a socket has received and nobody has read. */
class Inlet {
  #bytes = Buffer.alloc(0);
  #parts: Buffer[] = [];
  #ended = false;
  #wake: () => void = () => {};

  constructor(socket: Socket) {
    const end = (): void => {
      this.#ended = true;
      this.#wake();
    };
    socket.on("data", (bytes) => {
      this.#parts.push(Buffer.from(bytes));
      this.#wake();
    });
    socket.on("end", end);
    socket.on("error", end);
    socket.on("close", end);
  }

  /** Waits for more bytes. False: no more will come. */
  async #more(): Promise<boolean> {
    while (this.#parts.length === 0 && !this.#ended) await new Promise<void>((wake) => (this.#wake = wake));
    if (this.#parts.length === 0) return false;
    this.#bytes = Buffer.concat([this.#bytes, ...this.#parts]);
    this.#parts = [];
    return true;
  }

  /** The next chunk, at most `limit` bytes of it. Null: the end. */
  async chunk(limit = Infinity): Promise<Buffer | null> {
    if (this.#bytes.length === 0 && !(await this.#more())) return null;
    const found = this.#bytes.subarray(0, Math.min(limit, this.#bytes.length));
    this.#bytes = this.#bytes.subarray(found.length);
    return found;
  }

  /** Takes everything up to the end of this text, and returns what is before it. Null: the text never came. */
  async before(text: string): Promise<string | null> {
    for (;;) {
      const at = this.#bytes.indexOf(text);
      if (at >= 0) {
        const found = this.#bytes.subarray(0, at).toString("latin1");
        this.#bytes = this.#bytes.subarray(at + text.length);
        return found;
      }
      if (!(await this.#more())) return null;
    }
  }

  async head(): Promise<Head | null> {
    const text = await this.before("\r\n\r\n");
    if (text === null) return null;
    const [first = "", ...rest] = text.split("\r\n");
    const fields = rest.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()] as const;
    });
    return { start: first.split(" "), fields };
  }

  /** Calls `see` with each piece. `untilClose`: a body of unknown length lasts until the connection ends. */
  async body(fields: Fields, untilClose: boolean, see: (piece: Buffer) => void): Promise<"whole" | "cut"> {
    if (/chunked/i.test(fieldOf(fields, "transfer-encoding") ?? "")) return this.#chunked(see);
    const length = fieldOf(fields, "content-length");
    const left = length === undefined ? (untilClose ? Infinity : 0) : Number(length);
    return (await this.#pass(left, see)) || left === Infinity ? "whole" : "cut";
  }

  async #pass(left: number, see: (piece: Buffer) => void): Promise<boolean> {
    while (left > 0) {
      const piece = await this.chunk(left);
      if (piece === null) return false;
      left -= piece.length;
      see(piece);
    }
    return true;
  }

  async #chunked(see: (piece: Buffer) => void): Promise<"whole" | "cut"> {
    for (;;) {
      const size = await this.before("\r\n");
      if (size === null) return "cut";
      const length = Number.parseInt(size, 16);
      if (!(await this.#pass(length, see)) || (await this.before("\r\n")) === null) return "cut";
      if (length === 0) return "whole";
    }
  }
}

export interface Ask {
  readonly method: string;
  readonly target: string;
  readonly fields: Fields;
  readonly body: Buffer;
  /** The client leaves when it has received this text, or when this promise resolves. */
  readonly leave?: string | Promise<void> | undefined;
}

export interface Got {
  readonly status: number;
  readonly fields: Fields;
  readonly body: Buffer;
  readonly end: End;
}

const PATIENCE_MS = 20_000;

/** Sends a request on a connection of its own. */
export async function ask(port: number, { method, target, fields, body, leave }: Ask): Promise<Got> {
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.setTimeout(PATIENCE_MS, () => socket.destroy());
  const inlet = new Inlet(socket);
  const ours = [
    ["host", `127.0.0.1:${port}`],
    ["connection", "close"],
    ...(body.length > 0 || method === "POST" ? [["content-length", String(body.length)]] : []),
  ];
  const sent = [...ours.filter(([name = ""]) => fieldOf(fields, name) === undefined), ...fields];
  const head = `${method} ${target} HTTP/1.1\r\n${sent.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  socket.write(Buffer.concat([Buffer.from(head, "latin1"), body]));
  let left = false;
  const go = (): void => {
    left = true;
    socket.destroy();
  };
  if (leave instanceof Promise) void leave.then(go);
  const answer = await inlet.head();
  if (answer === null) return { status: 0, fields: [], body: Buffer.alloc(0), end: left ? "left" : "none" };
  const status = Number(answer.start[1]);
  const pieces: Buffer[] = [];
  const hasBody = method !== "HEAD" && status !== 204 && status !== 304;
  const end = await inlet.body(hasBody ? answer.fields : [], hasBody, (piece) => {
    pieces.push(piece);
    if (typeof leave === "string" && Buffer.concat(pieces).includes(leave)) go();
  });
  socket.destroy();
  return { status, fields: answer.fields, body: Buffer.concat(pieces), end: left ? "left" : end };
}

/** The upstream's answer to one request. A script without members answers 200 with an empty body. */
export interface Script {
  readonly status?: number;
  readonly fields?: Fields;
  readonly pieces?: readonly (string | Buffer)[];
  /** How the end of the body is announced. */
  readonly framing?: "chunked" | "length" | "close";
  /** `cut` sends the pieces and closes before the announced end. `hold` sends them and waits until the
   *  gateway leaves. Without any answer, `close` closes, and `silence` waits until the gateway leaves. */
  readonly ending?: "cut" | "hold" | "close" | "silence";
  /** Bytes in place of an answer. */
  readonly raw?: string;
}

export interface Received {
  readonly method: string;
  readonly target: string;
  readonly fields: Fields;
  readonly body: Buffer;
  /** Whether the gateway left before the end of the answer. */
  left: boolean;
}

export interface Upstream {
  readonly port: number;
  stop(): void;
}

type Choose = (received: Received) => { readonly script: Script; readonly done: () => void };

/** Starts an upstream. `choose` names the answer when a request has arrived. */
export async function startUpstream(choose: Choose): Promise<Upstream> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("close", () => sockets.delete(socket));
    void serve(socket, choose);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    stop: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function serve(socket: Socket, choose: Choose): Promise<void> {
  const inlet = new Inlet(socket);
  const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  // A gateway that leaves ends its side of the connection. After that, the upstream sends it nothing more.
  socket.on("end", () => socket.destroy());
  for (let head = await inlet.head(); head !== null; head = await inlet.head()) {
    const pieces: Buffer[] = [];
    if ((await inlet.body(head.fields, false, (piece) => void pieces.push(piece))) === "cut") return;
    const [method = "", target = ""] = head.start;
    const received = { method, target, fields: head.fields, body: Buffer.concat(pieces), left: false };
    const { script, done } = choose(received);
    const stays = await answer(socket, script, closed, received);
    done();
    if (!stays) return void socket.end();
  }
}

/** Answers one request. True: the connection can have another request. */
async function answer(
  socket: Socket,
  script: Script,
  closed: Promise<void>,
  received: Received,
): Promise<boolean> {
  const { framing = "chunked", ending, raw } = script;
  if (raw !== undefined) socket.write(raw);
  if (raw !== undefined || ending === "close") return false;
  if (ending !== "silence") await writeAnswer(socket, script);
  if (ending === "hold" || ending === "silence") {
    await closed;
    received.left = true;
  }
  if (ending !== undefined) return false;
  if (framing === "chunked") socket.write("0\r\n\r\n");
  return framing !== "close";
}

async function writeAnswer(socket: Socket, script: Script): Promise<void> {
  const { status = 200, fields = [], pieces = [], framing = "chunked", ending } = script;
  const bytes = pieces.map((piece) => Buffer.from(piece));
  const length = String(bytes.reduce((sum, piece) => sum + piece.length, ending === "cut" ? 1 : 0));
  const frames = {
    chunked: ["transfer-encoding", "chunked"],
    length: ["content-length", length],
    close: ["connection", "close"],
  } as const;
  const head = [...fields, frames[framing]].map(([name, value]) => `${name}: ${value}\r\n`).join("");
  socket.write(Buffer.from(`HTTP/1.1 ${status} Scripted\r\n${head}\r\n`, "latin1"));
  for (const piece of bytes) {
    const size = Buffer.from(`${piece.length.toString(16)}\r\n`);
    const framed = framing === "chunked" ? Buffer.concat([size, piece, Buffer.from("\r\n")]) : piece;
    if (piece.length > 0) socket.write(framed);
    // Each piece is a packet of its own.
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}
