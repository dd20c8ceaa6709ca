// A client's WebSocket: it sends `response.create` messages and receives events. Several responses may run at once, each on
// its own stream.

import type { PeerListener } from "../../../src/lib/http/web-socket.ts";
import type { ClientPlan, RequestPlan, SocketPlan } from "../plan/plan.ts";
import { listMarks } from "../upstreams/answers.ts";
import type { ClientExchange } from "../world/client-side.ts";
import { PORT } from "../world/config.ts";
import type { Network } from "../world/network.ts";
import type { SimPeer } from "../world/peers.ts";
import { NATURE } from "../world/scheduler.ts";
import { writeCreate, writeUpgrade } from "./requests.ts";
import { Patience, type Send } from "./send.ts";

const ENDS = new Set(["response.completed", "response.incomplete", "response.failed", "error"]);

interface Event {
  readonly type?: string;
  readonly stream_id?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface LineWatch {
  ended(send: Send): void;
  broken(text: string): void;
  /** Another request may be sent after the open ones. */
  follow(): void;
}

export class SocketLine {
  readonly waiting: Send[] = [];
  readonly #plan: ClientPlan;
  readonly #network: Network;
  readonly #watch: LineWatch;
  #exchange: ClientExchange | null = null;
  #peer: SimPeer | null = null;
  /** The fields of the 101. */
  #fields = new Map<string, string>();
  #isClosing = false;
  /** Whatever still comes is ignored. */
  #isGone = false;
  #sent = 0;
  #patience: Patience | null = null;
  #got = 0;
  #sinceRest = 0;

  constructor(plan: ClientPlan, network: Network, watch: LineWatch) {
    this.#plan = plan;
    this.#network = network;
    this.#watch = watch;
  }

  get #socket(): SocketPlan {
    if (!this.#plan.socket) throw new Error("a WebSocket that is not planned");
    return this.#plan.socket;
  }

  get usable(): boolean {
    return this.#peer?.open === true && !this.#isClosing && this.#sent < this.#socket.renewAfter;
  }

  /** On one stream, responses come one after another. An error that names no response belongs to the one that has not begun. */
  mayFollow(request: RequestPlan): boolean {
    const stream = this.#streamOf(request);
    const isBusy = this.waiting.some(
      (send) => send.events?.length === 0 && this.#streamOf(send.request) === stream,
    );
    return this.#peer !== null && !isBusy && this.waiting.length <= 3 && request.bad === null;
  }

  send(send: Send): void {
    this.waiting.push(send);
    if (this.waiting.length === 1) this.#await(send);
    if (this.#peer === null) this.#open(send);
    else this.#sendMessage(this.#peer, send);
    this.#watch.follow();
  }

  close(): void {
    this.#isClosing = true;
    if (this.#socket.closes && !this.#isGone) this.#peer?.close({ code: 1000, reason: "done" });
    else this.#peer?.leave();
  }

  /** The first request opens it. */
  #open(send: Send): void {
    const chunks: Buffer[] = [];
    this.#network.request(
      PORT,
      writeUpgrade(this.#plan, send.request),
      {
        refused: () => this.#lose("refused"),
        begin: (status, fields) => void (send.reply = { status, fields, body: Buffer.alloc(0) }),
        data: (bytes) => void chunks.push(bytes),
        ended: () => {
          this.#isClosing = true;
          if (send.reply !== null) send.reply.body = Buffer.concat(chunks);
          this.#endSend(send, "reply");
        },
        lost: () => this.#lose("lost"),
        accepted: (fields, peer) => this.#accept(fields, peer),
      },
      (started) => {
        this.#exchange = started;
        if (this.#isGone) started.leave();
      },
    );
  }

  #accept(fields: Map<string, string>, peer: SimPeer): PeerListener {
    this.#peer = peer;
    this.#fields = new Map(fields);
    // This is the id of the connection. Its responses have other ids.
    this.#fields.delete("x-request-id");
    if (this.#isGone) peer.leave();
    else for (const send of this.waiting) this.#sendMessage(peer, send);
    return {
      message: ({ bytes }) => this.#receive(Buffer.from(bytes)),
      drained: () => {},
      closed: ({ code, reason }) => this.#beClosed(code, reason),
      stopping: () => {},
    };
  }

  #streamOf({ number }: RequestPlan): string | null {
    const { streams } = this.#socket;
    return streams === 0 ? null : `st${number % streams}`;
  }

  /** Some messages are invalid. */
  #sendMessage(peer: SimPeer, send: Send): void {
    this.#sent++;
    send.message = writeCreate(send, this.#streamOf(send.request));
    const put = (text: string, kind: "text" | "binary" = "text"): void =>
      void peer.send({ kind, bytes: Buffer.from(text) });
    switch (send.request.bad) {
      case "bad json":
        return put("{not json");
      case "two types":
        return put(send.message.replace("{", '{"Type":"session.update",'));
      case "broken body":
        return peer.breakProtocol();
      case "half a body":
        this.#network.scheduler.after(1_000_000, NATURE, `${send.name} breaks off`, () => peer.leave());
        return;
      case "not http":
      case "unknown key":
      case "unknown path":
        return put(send.message, "binary");
      case null:
        return put(send.message);
    }
  }

  /** The next reply belongs to it. */
  #await(send: Send): void {
    this.#got = 0;
    this.#sinceRest = 0;
    this.#patience = new Patience(this.#network.scheduler, send, (how) => this.#leave(how));
  }

  #leave(how: "left" | "gave up"): void {
    if (this.#peer === null) this.#exchange?.leave();
    if (how === "gave up" || this.waiting[0]?.request.leave?.how === "rst") this.#peer?.reset();
    else this.close();
    this.#lose(how);
  }

  #receive(bytes: Buffer): void {
    if (this.#isGone) return;
    this.#got += bytes.length;
    this.#takeEvent(bytes.toString());
    const [send] = this.waiting;
    if (send === undefined) return;
    const { slow, leave } = send.request;
    this.#sinceRest += bytes.length;
    if (slow !== null && this.#sinceRest >= slow.everyBytes) {
      this.#sinceRest = 0;
      this.#peer?.pause();
      this.#network.scheduler.after(slow.ms * 1000, NATURE, `${this.#plan.name} reads again`, () =>
        this.#peer?.resume(),
      );
    }
    if (leave !== null && this.#got >= leave.afterBytes) this.#leave("left");
  }

  #beClosed(code: number, reason: string): void {
    this.#network.scheduler.note(`${this.#plan.name} is closed with ${code} ${reason}`);
    const [send] = this.waiting;
    if (code !== 1006) send?.events?.push(JSON.stringify({ closed: reason }));
    this.#lose("lost");
  }

  #takeEvent(text: string): void {
    const event = readEvent(text);
    if (event === null) return this.#watch.broken(`got a message that is no JSON: ${text.slice(0, 200)}`);
    const { type = "" } = event;
    // Events of providers about the connection itself.
    if (type !== "error" && !type.startsWith("response.")) return;
    const send = this.#find(event, text);
    if (send === undefined)
      return this.#watch.broken(`received an event that it did not request: ${text.slice(0, 200)}`);
    const isFirst = send.events?.length === 0;
    send.events?.push(text);
    if (ENDS.has(type)) {
      this.#keepAs(send, type === "error" ? event : null);
      this.#endSend(send, "reply");
    } else if (isFirst) {
      this.#watch.follow();
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

  #keepAs(send: Send, error: Event | null): void {
    const fields = new Map(this.#fields);
    const wait = error?.headers?.["retry-after"];
    if (wait !== undefined) fields.set("retry-after", wait);
    const body = Buffer.from((send.events ?? []).join("\n"));
    send.reply = { status: error === null ? 200 : (error.status ?? 500), fields, body };
  }

  #endSend(send: Send, end: Send["end"]): void {
    const isFirst = send === this.waiting[0];
    this.waiting.splice(this.waiting.indexOf(send), 1);
    if (isFirst) this.#patience?.end();
    send.end = end;
    send.endedAt = this.#network.scheduler.now;
    const [next] = this.waiting;
    if (isFirst && next !== undefined && !this.#isGone) this.#await(next);
    this.#watch.ended(send);
  }

  #lose(how: Send["end"]): void {
    this.#isClosing = true;
    this.#isGone = true;
    const [first] = this.waiting;
    for (const send of this.waiting)
      if (send.events !== null && send.events.length > 0) this.#keepAs(send, null);
    // Only the first one left or gave up. The others lost their connection with it.
    for (const send of this.waiting.slice())
      this.#endSend(send, send === first || how === "refused" ? how : "lost");
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
