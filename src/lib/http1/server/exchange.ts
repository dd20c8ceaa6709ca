// One request of a client, and the framing of the reply to it.

import { writeFields, type Field, type Fields, type SentFields } from "../../http/fields.ts";
import { writeStatusLine, type RequestHead } from "../head.ts";
import type { IncomingBody } from "./request-body.ts";
import { ClientGone, type Exchange } from "../../http/exchange.ts";
import type { MessageLimits, OpenPeer } from "../../http/web-socket.ts";
import { acceptHandshake } from "../websocket/handshake.ts";
import { FramedPeer } from "../websocket/peer.ts";
import type { Wire, WireListener } from "../wire.ts";

/** What an exchange requests from its connection. */
export interface ReplyConnection {
  /** Whether another request may follow on the connection. */
  readonly mayStayOpen: boolean;
  send(head: string, payload: Uint8Array, tail: string): boolean;
  /** Only the last listener is called. */
  onceSent(listener: () => void): void;
  awaitBody(): void;
  /** The reply ends with this packet. */
  endReply(stayOpen: boolean, head: string, payload: Uint8Array, tail: string): void;
  resetReply(): void;
  /** The connection belongs to another protocol from now on. */
  upgrade(listen: (wire: Wire) => WireListener): void;
}

const EMPTY = new Uint8Array(0);
const LAST_CHUNK = "0\r\n\r\n";

/** How the client finds the end of the reply. `none`: the reply has no body, whatever is written. */
type ReplyFraming = "none yet" | "none" | "length" | "chunked" | "close";

/** Most events are as long as others before them. */
const chunkSizes: string[] = [];
const MAX_KEPT_SIZE = 4096;

function writeChunkSize(bytes: number): string {
  if (bytes >= MAX_KEPT_SIZE) return `${bytes.toString(16)}\r\n`;
  return (chunkSizes[bytes] ??= `${bytes.toString(16)}\r\n`);
}

function writeFraming(framing: ReplyFraming, length: number): string {
  if (framing === "length") return `content-length: ${length}\r\n`;
  return framing === "chunked" ? "transfer-encoding: chunked\r\n" : "";
}

export class ServerExchange implements Exchange {
  readonly method: string;
  readonly target: string;
  readonly fields: Fields;
  readonly body: IncomingBody;
  gone = false;
  readonly #connection: ReplyConnection;
  readonly #minor: 0 | 1;
  #expectsContinue: boolean;
  #framing: ReplyFraming = "none yet";
  #heldHead = "";
  #left = 0;
  #staysOpen = false;
  #ended = false;
  #goneListeners: (() => void)[] = [];
  #replyFields: readonly Field[] = [];

  constructor(connection: ReplyConnection, head: RequestHead, body: IncomingBody) {
    this.method = head.method;
    this.target = head.target;
    this.fields = head.fields;
    this.body = body;
    this.#connection = connection;
    this.#minor = head.minor;
    this.#expectsContinue = head.minor === 1 && this.field("expect")?.toLowerCase() === "100-continue";
  }

  field(name: string): string | undefined {
    return this.fields.get(name);
  }

  /** The head as it arrived, for another reply to it. */
  get head(): RequestHead {
    const { method, target, fields } = this;
    return { method, target, minor: this.#minor, fields };
  }

  get begun(): boolean {
    return this.#framing !== "none yet";
  }

  readBody(limit: number): Uint8Array | Promise<Uint8Array> {
    if (this.gone) return Promise.reject(new ClientGone("the client has left"));
    const whole = this.body.read(limit);
    if (this.body.awaited) {
      if (this.#expectsContinue && this.body.untouched) {
        this.#expectsContinue = false;
        this.#connection.send("HTTP/1.1 100 Continue\r\n\r\n", EMPTY, "");
      }
      this.#connection.awaitBody();
    }
    return whole;
  }

  addReplyFields(fields: readonly Field[]): void {
    this.#replyFields = [...this.#replyFields, ...fields];
  }

  answer(status: number, fields: SentFields, body: Uint8Array | string): void {
    const payload = typeof body === "string" ? Buffer.from(body) : body;
    this.begin(status, fields, payload.length);
    this.end(payload);
  }

  begin(status: number, fields: SentFields, length?: number): void {
    if (this.begun) throw new Error("the reply has already begun");
    const head = writeStatusLine(status) + writeFields(fields) + writeFields(this.#replyFields);
    const framing = this.#chooseFraming(status, length);
    this.#staysOpen = this.#connection.mayStayOpen && this.body.done && framing !== "close";
    this.#left = length ?? 0;
    this.#framing = this.method === "HEAD" ? "none" : framing;
    this.#heldHead =
      head + writeFraming(framing, this.#left) + (this.#staysOpen ? "\r\n" : "connection: close\r\n\r\n");
  }

  write(chunk: Uint8Array): boolean {
    if (this.gone || this.#ended || this.#framing === "none" || chunk.length === 0) return true;
    if (this.#framing === "chunked") {
      return this.#connection.send(this.#takeHead() + writeChunkSize(chunk.length), chunk, "\r\n");
    }
    if (!this.#fits(chunk.length)) return true;
    return this.#connection.send(this.#takeHead(), chunk, "");
  }

  flush(): void {
    if (this.gone || this.#ended || this.#heldHead === "") return;
    this.#connection.send(this.#takeHead(), EMPTY, "");
  }

  onceSent(listener: () => void): void {
    if (this.gone) listener();
    else this.#connection.onceSent(listener);
  }

  end(last: Uint8Array = EMPTY): void {
    if (this.gone || this.#ended) return;
    if (this.#framing === "none yet") throw new Error("a reply without a head");
    if (this.#framing === "chunked") {
      if (last.length === 0) return this.#endWith(LAST_CHUNK, EMPTY, "");
      return this.#endWith(writeChunkSize(last.length), last, `\r\n${LAST_CHUNK}`);
    }
    if (this.#framing === "length") {
      if (!this.#fits(last.length)) return;
      // Fewer bytes than announced: the client must neither wait for more nor accept the reply as whole.
      if (this.#left > 0) return this.reset();
    }
    this.#endWith("", this.#framing === "none" ? EMPTY : last, "");
  }

  #endWith(framing: string, last: Uint8Array, tail: string): void {
    this.#ended = true;
    this.#connection.endReply(this.#staysOpen, this.#takeHead() + framing, last, tail);
  }

  reset(): void {
    if (this.gone || this.#ended) return;
    this.#ended = true;
    this.#connection.resetReply();
  }

  acceptWebSocket(fields: SentFields, limits: MessageLimits, open: OpenPeer): void {
    if (this.begun) throw new Error("the reply has already begun");
    if (this.gone) return;
    this.#framing = "none";
    this.#ended = true;
    const accepted =
      writeFields(acceptHandshake(this)) + writeFields(fields) + writeFields(this.#replyFields);
    this.#connection.send(`${writeStatusLine(101)}${accepted}connection: Upgrade\r\n\r\n`, EMPTY, "");
    this.#connection.upgrade((wire) => new FramedPeer(wire, { side: "server", ...limits }, open));
  }

  onGone(listener: () => void): void {
    if (this.gone) listener();
    else if (!this.#ended) this.#goneListeners.push(listener);
  }

  /** The client has left. Does nothing if the reply has ended. */
  leave(): void {
    if (this.gone || this.#ended) return;
    this.gone = true;
    this.body.fail(new ClientGone("the client has left"));
    const listeners = this.#goneListeners;
    this.#goneListeners = [];
    for (const listener of listeners) listener();
  }

  #chooseFraming(status: number, length: number | undefined): ReplyFraming {
    if (status === 204 || status === 304) return "none";
    if (length !== undefined) return "length";
    return this.#minor === 1 ? "chunked" : "close";
  }

  /** More bytes than announced break the reply, because the client would read them as the next one. */
  #fits(length: number): boolean {
    if (this.#framing !== "length") return true;
    this.#left -= length;
    if (this.#left >= 0) return true;
    this.reset();
    return false;
  }

  #takeHead(): string {
    const head = this.#heldHead;
    this.#heldHead = "";
    return head;
  }
}
