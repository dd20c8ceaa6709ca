// A client and an upstream that take turns: an event is sent when the one before has arrived. So the gateway between them
// reads the same pieces in each run, however busy the machine is.

import type { Socket } from "bun";
import { writeJsonAnswer, writeStreamAnswer } from "../wire/answers.ts";
import { findShape } from "../wire/requests.ts";

const HEAD_END = "\r\n\r\n";
const CHUNKS_END = "\r\n0\r\n\r\n";

/** The number of a client is in its user agent, which reaches the upstream. */
export const USER_AGENT = "turns/";

interface Answer {
  readonly socket: Socket<Arrived>;
  readonly pieces: readonly Uint8Array[];
  next: number;
}

interface Arrived {
  text: string;
}

export class TurnsUpstream {
  readonly #answers = new Map<string, Answer>();
  readonly #streams = new Map<string, readonly Uint8Array[]>();
  readonly #json = writeJsonAnswer("messages");
  readonly #server = Bun.listen<Arrived>({
    hostname: "127.0.0.1",
    port: 0,
    socket: {
      open: (socket) => {
        socket.data = { text: "" };
      },
      data: (socket, bytes) => this.#receive(socket, bytes),
    },
  });

  get port(): number {
    return this.#server.port;
  }

  /** The next event of the client's stream. */
  sendNext(client: number): void {
    const answer = this.#answers.get(String(client));
    const piece = answer?.pieces[answer.next];
    if (answer === undefined || piece === undefined) return;
    answer.next += 1;
    answer.socket.write(piece);
  }

  stop(): void {
    this.#server.stop(true);
  }

  #receive(socket: Socket<Arrived>, bytes: Buffer): void {
    const text = socket.data.text + bytes.toString("latin1");
    socket.data.text = isComplete(text) ? "" : text;
    if (!isComplete(text)) return;
    const client = /user-agent: turns\/(\d+)/i.exec(text)?.[1] ?? "";
    const words = text.includes('"stream":true') ? /\bwords: (\d+)/.exec(text)?.[1] : undefined;
    const path = text.split(" ")[1] ?? "";
    const pieces = words === undefined ? [this.#json] : this.#findStream(path, Number(words));
    this.#answers.set(client, { socket, pieces, next: 0 });
    this.sendNext(Number(client));
  }

  #findStream(path: string, words: number): readonly Uint8Array[] {
    const key = `${path} ${words}`;
    const found = this.#streams.get(key) ?? writeTurns(path, words);
    this.#streams.set(key, found);
    return found;
  }
}

/** A piece for each event with text. The others are sent with one of these: converted, they may be nothing, and then the
 *  client would wait. */
function writeTurns(path: string, words: number): Uint8Array[] {
  const pieces = writeStreamAnswer(findShape(path), words, false);
  const hasText = (piece: Uint8Array): boolean =>
    /text_delta|output_text\.delta/.test(Buffer.from(piece).toString("latin1"));
  const [first, last] = [pieces.findIndex(hasText), pieces.findLastIndex(hasText)];
  const begin = Buffer.concat(pieces.slice(0, first + 1));
  return [begin, ...pieces.slice(first + 1, last + 1), Buffer.concat(pieces.slice(last + 1))];
}

/** Sends one request after another on one connection. */
export class TurnsClient {
  readonly #socket: Socket;
  readonly #arrived: () => void;
  #text = "";
  #isClosed = false;
  #end: PromiseWithResolvers<void> | null = null;

  constructor(socket: Socket, arrived: () => void) {
    this.#socket = socket;
    this.#arrived = arrived;
  }

  /** Resolves when the response is complete. */
  ask(request: Uint8Array): Promise<void> {
    this.#text = "";
    this.#end = Promise.withResolvers();
    if (this.#isClosed) this.closed();
    else this.#socket.write(request);
    return this.#end.promise;
  }

  receive(bytes: Buffer): void {
    this.#text += bytes.toString("latin1");
    if (!this.#text.startsWith("HTTP/1.1 200")) this.#end?.reject(new Error(this.#text.slice(0, 400)));
    else if (isComplete(this.#text)) this.#end?.resolve();
    else this.#arrived();
  }

  /** The gateway closes a connection that it does not need. */
  closed(): void {
    this.#isClosed = true;
    this.#end?.reject(new Error("the gateway has closed the connection"));
  }
}

/** A request or a response. */
function isComplete(text: string): boolean {
  const end = text.indexOf(HEAD_END);
  if (end < 0) return false;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end))?.[1];
  return length === undefined
    ? text.endsWith(CHUNKS_END)
    : text.length >= end + HEAD_END.length + Number(length);
}

export async function openClient(port: number, arrived: () => void): Promise<TurnsClient> {
  let client: TurnsClient | null = null;
  const socket = await Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: { data: (_, bytes) => client?.receive(bytes), close: () => client?.closed() },
  });
  client = new TurnsClient(socket, arrived);
  return client;
}
