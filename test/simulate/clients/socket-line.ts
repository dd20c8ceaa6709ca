// A client's WebSocket: it sends `response.create` messages and receives events. Several responses may run at once, each on
// its own stream.

import type { RequestPlan, SocketPlan } from "../plan/plan.ts";
import {
  acceptKey,
  type Heard,
  Hearing,
  writeClose,
  writeFrame,
  PING,
  writePong,
  writeText,
} from "../world/frames.ts";
import { listMarks } from "../upstreams/answers.ts";
import { NATURE } from "../world/scheduler.ts";
import { Line, type Send } from "./line.ts";
import { ReplyReader } from "./reply.ts";
import { writeCreate, writeUpgrade } from "./requests.ts";

const KEY = Buffer.from("simulated client").toString("base64");
const ENDS = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

interface Event {
  readonly type?: string;
  readonly stream_id?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export class SocketLine extends Line {
  /** The reply to a refused handshake. */
  readonly #refusal = new ReplyReader();
  readonly #hearing = new Hearing(false);
  #head: Buffer = Buffer.alloc(0);
  /** The fields of the 101. */
  #fields = new Map<string, string>();
  #opened = false;
  #handshakeSent = false;
  #sent = 0;
  /** Requests that wait for the handshake. */
  #later: Send[] = [];

  get #socket(): SocketPlan {
    if (!this.plan.socket) throw new Error("a WebSocket that is not planned");
    return this.plan.socket;
  }

  override get usable(): boolean {
    return super.usable && this.#sent < this.#socket.renewAfter;
  }

  /** On one stream, responses come one after another. An error that names no response belongs to the one that has not begun. */
  mayFollow(request: RequestPlan): boolean {
    const stream = this.#streamOf(request);
    const busy = this.waiting.some(
      (send) => send.events?.length === 0 && this.#streamOf(send.request) === stream,
    );
    return this.#opened && !busy && this.waiting.length <= 3 && request.bad === null;
  }

  override close(): void {
    this.closing = true;
    if (this.#opened && this.#socket.closes && !this.gone) this.put(writeClose(1000, "done", true));
    else this.end?.fin();
  }

  protected write(send: Send): Buffer {
    if (this.#opened) return this.#writeMessage(send);
    this.#later.push(send);
    if (this.#handshakeSent) return Buffer.alloc(0);
    this.#handshakeSent = true;
    return writeUpgrade(this.plan, send.request, KEY);
  }

  #streamOf({ number }: RequestPlan): string | null {
    const { streams } = this.#socket;
    return streams === 0 ? null : `st${number % streams}`;
  }

  #writeMessage(send: Send): Buffer {
    this.#sent++;
    const { fragment, pings } = this.#socket;
    const ping = pings ? writeFrame(PING, Buffer.from("are you there"), true) : Buffer.alloc(0);
    send.message = writeCreate(send, this.#streamOf(send.request));
    return Buffer.concat([ping, this.#shape(send, send.message, fragment)]);
  }

  /** Some messages are invalid. */
  #shape(send: Send, text: string, fragment: number): Buffer {
    const whole = writeText(text, { masked: true, fragment });
    switch (send.request.bad) {
      case "bad json":
        return writeText("{not json", { masked: true, fragment });
      case "two lengths":
        return writeText(text.replace("{", '{"Type":"session.update",'), { masked: true, fragment });
      case "broken chunk":
        return writeFrame(1, Buffer.from(text), false);
      case "half a body":
        this.scheduler.after(1000, NATURE, `${send.name} breaks off`, () => this.end?.fin());
        return whole.subarray(0, whole.length >> 1);
      case "no host":
      case "unknown key":
      case "unknown path":
        return writeFrame(2, Buffer.from(text), true);
      case "expect":
      case null:
        return whole;
    }
  }

  protected read(bytes: Buffer): void {
    if (this.#opened) {
      this.#hear(bytes);
      return;
    }
    this.#head = this.#head.length === 0 ? bytes : Buffer.concat([this.#head, bytes]);
    const end = this.#head.indexOf("\r\n\r\n");
    if (end < 0) return;
    const text = this.#head.toString("latin1", 0, end);
    if (text.startsWith("HTTP/1.1 101 ")) this.#open(text, this.#head.subarray(end + 4));
    else this.#beRefused(this.#refusal.read(this.#refusal.current === null ? this.#head : bytes));
  }

  #beRefused(reply: ReturnType<ReplyReader["read"]>): void {
    this.closing = true;
    const [send] = this.waiting;
    if (reply === null || send === undefined) return;
    send.reply = reply;
    this.endSend(send, "reply");
    this.end?.fin();
  }

  #open(head: string, early: Buffer): void {
    this.#opened = true;
    for (const line of head.split("\r\n").slice(1))
      this.#fields.set(line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2));
    if (this.#fields.get("sec-websocket-accept") !== acceptKey(KEY))
      this.watch.broken("was accepted with a key that is not its own");
    // This is the id of the connection. Its responses have other ids.
    this.#fields.delete("x-request-id");
    for (const send of this.#later) this.put(this.#writeMessage(send));
    if (early.length > 0) this.#hear(early);
  }

  #hear(bytes: Buffer): void {
    for (const heard of this.#hearing.hear(Buffer.from(bytes))) this.#take(heard);
    if (this.#hearing.broken === null) return;
    this.watch.broken(`received ${this.#hearing.broken} on its WebSocket`);
    this.end?.reset();
    this.lose("lost");
  }

  #take(heard: Heard): void {
    if (this.gone) return;
    if (heard.kind === "ping") this.put(writePong(heard.payload, true));
    else if (heard.kind === "close") this.#beClosed(heard);
    else this.#takeEvent(heard.text);
  }

  #beClosed({ code, reason }: Extract<Heard, { kind: "close" }>): void {
    this.scheduler.note(`${this.plan.name} is closed with ${code} ${reason}`);
    const [send] = this.waiting;
    send?.events?.push(JSON.stringify({ closed: reason }));
    if (!this.closing) this.put(writeClose(code, "", true));
    this.end?.fin();
    this.lose("lost");
  }

  #takeEvent(text: string): void {
    const event = readEvent(text);
    if (event === null) {
      this.watch.broken(`got a message that is no JSON: ${text.slice(0, 200)}`);
      return;
    }
    const { type = "" } = event;
    // Events of providers about the connection itself.
    if (type !== "error" && !type.startsWith("response.")) return;
    const send = this.#find(event, text);
    if (send === undefined) {
      if (!text.includes("unasked"))
        this.watch.broken(`received an event that it did not request: ${text.slice(0, 200)}`);
      return;
    }
    const isFirst = send.events?.length === 0;
    send.events?.push(text);
    if (ENDS.has(type)) {
      this.#keepAs(send, type === "error" ? event : null);
      this.endSend(send, "reply");
    } else if (isFirst) {
      this.watch.follow();
    }
  }

  /** Messages of an upstream have a mark. A message of the gateway belongs to the request that has no answer yet. */
  #find({ type, stream_id: stream }: Event, text: string): Send | undefined {
    const own = this.waiting.filter((send) => (this.#streamOf(send.request) ?? undefined) === stream);
    if (type !== "error") return own[0];
    const [mark] = listMarks(text);
    if (mark !== undefined) return own.find(({ name }) => mark.startsWith(`${name}a`)) ?? own[0];
    const isUnanswered = (send: Send): boolean => send.events?.length === 0;
    return own.find(isUnanswered) ?? this.waiting.find(isUnanswered);
  }

  protected keep(send: Send): void {
    if (send.events !== null && send.events.length > 0) this.#keepAs(send, null);
  }

  #keepAs(send: Send, error: Event | null): void {
    const fields = new Map(this.#fields);
    const wait = error?.headers?.["retry-after"];
    if (wait !== undefined) fields.set("retry-after", wait);
    const body = Buffer.from((send.events ?? []).join("\n"));
    send.reply = {
      status: error === null ? 200 : (error.status ?? 500),
      fields,
      body,
      framing: "none",
      ended: true,
    };
  }

  protected finish(): void {
    if (this.#hearing.isInside && this.#opened)
      this.scheduler.note(`${this.plan.name} received half a message`);
  }
}

function readEvent(text: string): Event | null {
  try {
    const event: Event = JSON.parse(text);
    return event;
  } catch {
    return null;
  }
}
