// A client's connection that speaks HTTP/1.1: replies come in the order of the requests.

import { Line, type Send } from "./line.ts";
import { type Reply, ReplyReader } from "./reply.ts";
import { writeRequest } from "./requests.ts";

export class HttpLine extends Line {
  readonly #reader = new ReplyReader();

  mayFollow(): boolean {
    return this.waiting.length <= 3;
  }

  protected write(send: Send): Buffer {
    return writeRequest(this.plan, send);
  }

  protected read(bytes: Buffer): void {
    for (let reply = this.#reader.read(bytes); reply !== null; reply = this.#reader.next()) {
      const send = this.waiting[0];
      if (send === undefined) {
        this.watch.broken(`received a reply that it did not request (status ${reply.status})`);
        return;
      }
      this.#take(send, reply);
    }
    if (this.#reader.broken !== null) {
      this.watch.broken(`received bytes that are not HTTP: ${this.#reader.broken}`);
      this.end?.reset();
      this.lose("lost");
      return;
    }
    const send = this.waiting[0];
    if (send !== undefined) send.reply = this.#reader.current;
    else if (this.#reader.unread > 0) this.watch.broken("got bytes that it did not ask for");
  }

  #take(send: Send, reply: Reply): void {
    send.reply = reply;
    if (reply.fields.get("connection") === "close") this.closing = true;
    this.endSend(send, "reply");
    if (this.closing && this.waiting.length === 0) this.end?.fin();
  }

  protected keep(send: Send): void {
    if (send === this.waiting[0]) send.reply = this.#reader.current ?? send.reply;
  }

  protected finish(): void {
    const send = this.waiting[0];
    const reply = this.#reader.finish();
    if (send !== undefined && reply !== null) this.#take(send, reply);
  }
}
