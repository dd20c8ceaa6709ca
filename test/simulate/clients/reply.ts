// Reads replies from a connection as a strict HTTP/1.1 client does.

import { Pile } from "../pile.ts";

export interface Reply {
  status: number;
  fields: Map<string, string>;
  /** Without its framing. */
  body: Buffer;
  framing: "length" | "chunked" | "close" | "none";
  /** The framing says that the body is complete. */
  ended: boolean;
}

/** The line end after a chunk's bytes. */
const AFTER_PAYLOAD = -1;

export class ReplyReader {
  readonly #came = new Pile();
  #body = new Pile();
  #reply: Reply | null = null;
  #left = 0;
  /** For bytes that have not come yet. */
  #waits = false;
  /** Why the bytes are invalid. No further reply can be read. */
  broken: string | null = null;

  get unread(): number {
    return this.#came.length;
  }

  /** The part of the current reply that has come. */
  get current(): Reply | null {
    return this.#reply;
  }

  /** Returns the reply when it has ended. */
  read(bytes: Buffer): Reply | null {
    this.#came.add(bytes);
    return this.next();
  }

  /** A reply without a length ends with the connection. */
  finish(): Reply | null {
    const reply = this.#reply;
    if (reply?.framing !== "close") return null;
    reply.ended = true;
    this.#reply = null;
    return reply;
  }

  next(): Reply | null {
    if (this.broken !== null) return null;
    if (this.#reply === null && !this.#readHead()) return null;
    const reply = this.#reply;
    if (reply === null) return null;
    if (reply.framing === "chunked") this.#readChunks(reply);
    else if (reply.framing !== "none") this.#readPlain(reply);
    if (!reply.ended) return null;
    this.#reply = null;
    return reply;
  }

  #readHead(): boolean {
    for (;;) {
      const came = this.#came.bytes;
      const end = came.indexOf("\r\n\r\n");
      if (end < 0) return false;
      const [first = "", ...lines] = came.toString("latin1", 0, end).split("\r\n");
      const match = /^HTTP\/1\.1 (\d{3}) /.exec(first);
      if (match === null) {
        this.broken = `not a status line: ${JSON.stringify(first.slice(0, 80))}`;
        return false;
      }
      this.#came.take(end + 4);
      const status = Number(match[1]);
      if (status < 200) continue;
      const fields = new Map(
        lines.map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      this.#begin(status, fields);
      return true;
    }
  }

  #begin(status: number, fields: Map<string, string>): void {
    const length = fields.get("content-length");
    const chunked = fields.get("transfer-encoding") === "chunked";
    const none = status === 204 || status === 304;
    const framing = none ? "none" : chunked ? "chunked" : length === undefined ? "close" : "length";
    this.#left = framing === "length" ? Number(length) : framing === "chunked" ? 0 : Number.POSITIVE_INFINITY;
    this.#body = new Pile();
    this.#reply = {
      status,
      fields,
      body: Buffer.alloc(0),
      framing,
      ended: none || (this.#left === 0 && framing === "length"),
    };
  }

  #readPlain(reply: Reply): void {
    this.#readBody(reply);
    if (this.#left === 0) reply.ended = true;
  }

  #readChunks(reply: Reply): void {
    while (this.broken === null && !reply.ended) {
      if (this.#left > 0) this.#readPayload(reply);
      else if (this.#left === AFTER_PAYLOAD) this.#readPayloadEnd();
      else this.#readSize(reply);
      if (this.#waits) break;
    }
    this.#waits = false;
  }

  #readPayload(reply: Reply): void {
    this.#readBody(reply);
    if (this.#left === 0) this.#left = AFTER_PAYLOAD;
    else this.#waits = true;
  }

  #readBody(reply: Reply): void {
    const piece = this.#came.take(this.#left);
    this.#left -= piece.length;
    this.#body.add(piece);
    reply.body = this.#body.bytes;
  }

  #readPayloadEnd(): void {
    if (this.#came.length < 2) {
      this.#waits = true;
      return;
    }
    if (this.#came.take(2).toString("latin1") !== "\r\n")
      this.broken = "a chunk does not end where it should";
    this.#left = 0;
  }

  #readSize(reply: Reply): void {
    const came = this.#came.bytes;
    const end = came.indexOf("\r\n");
    const size = came.toString("latin1", 0, Math.max(0, end));
    if (end < 0 || (size === "0" && came.length < end + 4)) {
      this.#waits = true;
      return;
    }
    if (!/^[0-9a-f]+$/.test(size)) {
      this.broken = `not a chunk size: ${JSON.stringify(size.slice(0, 40))}`;
      return;
    }
    this.#came.take(size === "0" ? end + 4 : end + 2);
    this.#left = Number.parseInt(size, 16);
    reply.ended = size === "0";
  }
}
