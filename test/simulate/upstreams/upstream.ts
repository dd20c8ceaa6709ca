// An upstream answers each request as the plan says, and records the request and the answer.

import type { Field } from "../../../src/lib/http/fields.ts";
import { mutatePieces } from "../../harness/upstreams/mutate.ts";
import { modelOf, SECRET, writeBody } from "../clients/requests.ts";
import type { AnswerPlan, ChannelPlan, Dialect } from "../plan/plan.ts";
import type { World } from "../run.ts";
import { NATURE, type Owner } from "../world/scheduler.ts";
import type { Arriving } from "../world/upstream-side.ts";
import { type AnswerText, type Counts, writeAnswer, writeError } from "./answers.ts";

/** A request as an upstream saw it. */
export interface Arrival {
  /** Client, request and send: `c3r2s0`. */
  readonly send: string;
  readonly attempt: number;
  readonly channel: string;
  readonly at: number;
  /** The gateway that sent the request. It may be dead: an upstream may read late. */
  readonly sender: Owner;
  /** Virtual time at which the answer's last byte was sent, or the connection was lost. */
  endedAt: number;
  /** The time from the sending of the request's last byte to the beginning of the answer. */
  waited: number;
  readonly plan: AnswerPlan;
  status: number;
  /** The body of a successful answer. */
  body: Buffer | null;
  readonly counts: Counts;
  /** Whether the whole answer was sent, up to its last byte. */
  sent: boolean;
  readonly stream: boolean;
  /** The tokens of the request's prompt. */
  readonly estimated: number;
  /** How much of the answer the gateway has read. */
  readonly bytesRead: () => number;
  /** When the gateway wrote the request. On a slow connection, a request may arrive after a later one. */
  readonly sentAt: number;
}

export const GOOD_ANSWER: AnswerPlan = {
  kind: "answer",
  status: 200,
  output: 5,
  cacheRead: 0,
  delayMs: 1,
  paceMs: 0,
  framing: "chunked",
  cut: null,
};

export const credentialOf = (channel: string): string => `cred-${channel}-4fJ7qLx2VbN8sKw3`;

export function answerRequest(world: World, channel: ChannelPlan, arriving: Arriving): void {
  const { body, fields, target, name } = arriving;
  const send = /sim\/(c\d+r\d+s\d+)/.exec(fields.get("user-agent") ?? "")?.[1] ?? "";
  const arrival = arrive(world, channel.name, send, arriving);
  const text = `${target} ${[...fields].join(" ")} ${body.toString("latin1")}`;
  if (text.includes(SECRET)) world.accuse("secrets", `A client's key went to the upstream ${name}.`);
  const shown = [fields.get("x-api-key"), fields.get("x-goog-api-key")].join(" ");
  if (!shown.includes(credentialOf(channel.name)))
    world.accuse("secrets", `The upstream ${channel.name} did not get its own credential, but: ${shown}`);
  const asked = world.sendsByName.get(send);
  if (asked?.request.bad === null && body.toString() !== writeBody(asked))
    world.accuse("bytes", `The body of ${send} was changed on its way: ${body.toString().slice(0, 200)}`);
  new Answering(world, arriving, arrival).start();
}

function arrive(world: World, channel: string, send: string, arriving: Arriving): Arrival {
  const { sender, sentAt, target, body, reply, method } = arriving;
  const own = world.bySend.get(send) ?? [];
  const id = send.replace(/s\d+$/, "");
  const before = world.byRequest.get(id) ?? [];
  // A request's plan has answers for all its sends and attempts. Each arrival gets the next of them.
  const planned = world.isHealed ? undefined : world.requests.get(id)?.answers[before.length];
  const plan = planned ?? { ...GOOD_ANSWER, output: 3 + (before.length % 5) };
  const text = body.toString();
  const estimated = Math.ceil(body.length / 4);
  const cacheRead = Math.min(plan.cacheRead, estimated);
  const arrival: Arrival = {
    send,
    attempt: own.length,
    channel,
    at: world.scheduler.now,
    sender,
    endedAt: Number.POSITIVE_INFINITY,
    waited: 0,
    plan,
    status: 0,
    body: null,
    counts: { input: estimated - cacheRead, cacheRead, output: plan.output },
    sent: false,
    stream: target.includes(":streamGenerateContent") || /"stream": ?true/.test(text),
    estimated,
    bytesRead: () => reply.bytesRead,
    sentAt,
  };
  world.scheduler.note(`${channel} gets ${method} ${target} of ${send}, attempt ${own.length}`);
  world.arrivals.push(arrival);
  world.bySend.set(send, [...own, arrival]);
  world.byRequest.set(id, [...before, arrival]);
  return arrival;
}

/** Returns the mark of an arrival, such as `c3r2s0a1`. */
export function markOf({ send, attempt }: Arrival): string {
  return `${send}a${attempt}`;
}

class Answering {
  readonly #world: World;
  readonly #request: Arriving;
  readonly #arrival: Arrival;

  constructor(world: World, request: Arriving, arrival: Arrival) {
    this.#world = world;
    this.#request = request;
    this.#arrival = arrival;
    request.reply.onLost = () => void (arrival.endedAt = Math.min(arrival.endedAt, world.scheduler.now));
  }

  start(): void {
    const { scheduler } = this.#world;
    const arrival = this.#arrival;
    const { kind, status, cut, delayMs } = arrival.plan;
    const how = cut === null ? "" : `, ${cut.how} at ${cut.atPerMille} per mille`;
    scheduler.note(`${arrival.channel} answers ${markOf(arrival)} with ${kind} ${status}${how}`);
    if (kind === "silence") return void (arrival.endedAt = scheduler.now);
    this.#after(delayMs, () => {
      arrival.waited = scheduler.now - arrival.sentAt;
      if (kind === "close at once") this.#request.reply.fail("reset", cut?.how === "rst");
      else this.#respond();
    });
  }

  #after(ms: number, run: () => void): void {
    this.#world.scheduler.after(ms * 1000, NATURE, `${this.#arrival.channel} goes on`, () => {
      if (!this.#request.reply.isGone) run();
    });
  }

  #respond(): void {
    const arrival = this.#arrival;
    const { reply } = this.#request;
    const { status, framing, cut } = arrival.plan;
    arrival.status = status;
    const { pieces, type } = this.#write();
    const bytes = pieces.map((piece) => Buffer.from(piece));
    const total = bytes.reduce((sum, piece) => sum + piece.length, 0);
    const cutAt = cut === null ? Number.POSITIVE_INFINITY : Math.floor((total * cut.atPerMille) / 1000);
    if (cutAt === 0) return this.#cut("reset");
    const fields: Field[] = [
      ["content-type", type],
      ["set-cookie", "a=b"],
      ["anthropic-organization-id", "org-private"],
    ];
    reply.begin(status, fields, framing === "length" ? total : null, framing === "close");
    this.#sendPieces(bytes, cutAt);
  }

  #write(): AnswerText {
    const arrival = this.#arrival;
    const { counts, stream, plan, channel } = arrival;
    const { kind, status, output } = plan;
    const wire: Dialect = this.#request.target.includes("/v1beta/") ? "content" : "messages";
    const model = modelOf(wire, this.#world.sendsByName.get(arrival.send)?.request.number ?? 0);
    const mark = markOf(arrival);
    if (kind === "error status")
      return writeError(wire, status, mark, status === 400 ? "nothing" : credentialOf(channel));
    const failsAfter = kind === "error event" && stream ? Math.floor(output / 2) : null;
    const text = writeAnswer({ wire, stream, mark, model, counts, failsAfter });
    const pieces =
      kind === "odd answer" ? mutatePieces(text.pieces, this.#world.plan.seed, mark) : text.pieces;
    arrival.body = Buffer.from(pieces.join(""));
    return { ...text, pieces };
  }

  #sendPieces(pieces: readonly Buffer[], cutAt: number): void {
    const { reply } = this.#request;
    let sent = 0;
    let index = 0;
    const next = (): void => {
      for (;;) {
        const piece = pieces[index++];
        if (piece === undefined) return this.#finish();
        const hasRoom = reply.write(piece.subarray(0, Math.max(0, cutAt - sent)));
        sent += piece.length;
        if (sent > cutAt) return this.#cut("cut");
        if (!hasRoom) return void (reply.onDrained = next);
        if (this.#arrival.plan.paceMs > 0) return this.#after(this.#arrival.plan.paceMs, next);
      }
    };
    next();
  }

  #cut(kind: "cut" | "reset"): void {
    const { cut, framing } = this.#arrival.plan;
    this.#arrival.endedAt = this.#world.scheduler.now;
    if (cut?.how === "stall") return;
    // A body with `close` framing ends with its connection, so this cut looks like the body's end.
    if (cut?.how === "fin" && kind === "cut" && framing === "close") this.#request.reply.end();
    else this.#request.reply.fail(kind, cut?.how === "rst");
  }

  #finish(): void {
    this.#arrival.endedAt = this.#world.scheduler.now;
    this.#arrival.sent = true;
    this.#request.reply.end();
  }
}
