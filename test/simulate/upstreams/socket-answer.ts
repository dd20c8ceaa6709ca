// A WebSocket from the gateway to an upstream. On each stream, one response follows another, as the plan says.

import type { PeerListener } from "../../../src/lib/http/web-socket.ts";
import type { AnswerPlan, UpgradePlan } from "../plan/plan.ts";
import type { SimPeer } from "../world/peers.ts";
import type { Owner } from "../world/scheduler.ts";
import type { Arriving } from "../world/upstream-side.ts";
import { listEvents, writeError, writeErrorEvent } from "./answers.ts";
import { type Arrival, failsAfter, markOf, type Upstream } from "./upstream.ts";

const GOOD_UPGRADE: UpgradePlan = { kind: "accept", status: 101, delayMs: 1, early: false };
const NO_SOCKET: UpgradePlan = { kind: "refuse", status: 426, delayMs: 1, early: false };
/** The code of the close frame for each status of an answer; 1005: none. */
const CODES = [1000, 1001, 1005, 1008, 1011, 1012, 4000];

/** A request for a WebSocket. */
export function answerUpgrade(upstream: Upstream, arriving: Arriving): void {
  const { plan, watch, scheduler } = upstream;
  const { reply, sender } = arriving;
  upstream.checkRequest(arriving);
  const { credential } = upstream;
  const planned = watch.healed() ? undefined : plan.sockets?.[upstream.upgrades++];
  const offered = planned ?? (plan.sockets === undefined ? NO_SOCKET : GOOD_UPGRADE);
  const { kind, status, delayMs, early } = offered;
  scheduler.note(`${plan.name} gets a request for a WebSocket: ${kind}`);
  scheduler.after(delayMs * 1000, upstream.owner, `${plan.name} answers the upgrade`, () => {
    if (reply.isGone || kind === "silence") return;
    if (kind === "close at once") return reply.fail("reset", status !== 426);
    if (kind === "wrong key") return reply.fail("malformed", false);
    if (kind === "refuse") {
      watch.noteRefused(plan.name);
      const body = Buffer.from(writeError("responses", status, "nobody", credential).pieces.join(""));
      reply.begin(status, [["content-type", "application/json"]], body.length, false);
      reply.write(body);
      return reply.end();
    }
    const fields = [
      ["set-cookie", "a=b"],
      ["openai-organization", "org-private"],
    ] as const;
    reply.accept(fields, (peer) => new SocketAnswers(upstream, peer, { sender, credential, early }).listener);
  });
}

interface Opened {
  readonly sender: Owner;
  /** That of its upgrade. */
  readonly credential: string;
  /** Its first message comes with the 101. */
  readonly early: boolean;
}

interface Job {
  readonly arrival: Arrival;
  readonly stream: string | null;
}

class SocketAnswers {
  readonly #upstream: Upstream;
  readonly #peer: SimPeer;
  readonly #opened: Opened;
  readonly #waiting: Job[] = [];
  readonly #running = new Map<string | null, Job>();
  #afterSent: (() => void)[] = [];
  /** It stopped inside a message: other streams can send nothing. */
  #isMute = false;

  constructor(upstream: Upstream, peer: SimPeer, opened: Opened) {
    this.#upstream = upstream;
    this.#peer = peer;
    this.#opened = opened;
    if (opened.early) this.#send(JSON.stringify({ type: "codex.rate_limits", plan_type: "free" }));
  }

  readonly listener: PeerListener = {
    message: ({ bytes }) => this.#take(Buffer.from(bytes).toString()),
    drained: () => {
      for (const run of this.#afterSent.splice(0)) run();
    },
    closed: () => this.#lose(),
    stopping: () => {},
  };

  #checkMessage(send: string, text: string): void {
    const { watch, plan } = this.#upstream;
    this.#upstream.checkSecrets(text, plan.name);
    // A message that names its type twice is still a request.
    const message = watch.sends.get(send)?.message;
    if (message !== text && !text.startsWith('{"Type"'))
      watch.accuse("bytes", `A message of ${send || "nobody"} was changed on its way: ${text.slice(0, 200)}`);
  }

  #take(text: string): void {
    const { scheduler, plan } = this.#upstream;
    const send = /"send":"sim\/(c\d+r\d+s\d+)"/.exec(text)?.[1] ?? "";
    this.#checkMessage(send, text);
    const arrival = this.#upstream.arrive(send, this.#opened.sender, {
      sentAt: scheduler.now,
      stream: true,
      events: [],
      model: /"model":"([^"]+)"/.exec(text)?.[1] ?? "",
    });
    arrival.estimated = Math.ceil(text.length / 4);
    scheduler.note(`${plan.name} gets a message of ${send || "nobody"}, attempt ${arrival.attempt}`);
    const stream = /"stream_id":"([^"]+)"/.exec(text)?.[1] ?? null;
    const job = { arrival, stream };
    // A refusal does not wait for the response that runs on its stream.
    const isRefused = this.#running.has(stream) && this.#upstream.choose(arrival).kind === "error status";
    if (isRefused) this.#script(job);
    else this.#waiting.push(job);
    this.#next(stream);
  }

  #next(stream: string | null): void {
    if (this.#running.has(stream) || !this.#peer.open) return;
    const at = this.#waiting.findIndex((job) => job.stream === stream);
    const [job] = at === -1 ? [] : this.#waiting.splice(at, 1);
    if (job === undefined) return;
    this.#running.set(stream, job);
    this.#script(job);
  }

  #script(job: Job): void {
    const { scheduler, plan } = this.#upstream;
    const { arrival } = job;
    const answer = this.#upstream.choose(arrival);
    const { kind, status, cut, delayMs } = answer;
    arrival.plan = answer;
    this.#upstream.estimate(arrival, arrival.estimated * 4, answer);
    scheduler.note(
      `${plan.name} answers ${markOf(arrival)} with ${kind} ${status}${cut === null ? "" : `, ${cut.how}`} on its WebSocket`,
    );
    if (kind === "silence") return void (arrival.endedAt = scheduler.now);
    this.#after(delayMs, () => {
      arrival.waited = scheduler.now - arrival.sentAt;
      if (kind === "close at once") this.#end(cut?.how === "rst" ? "rst" : "fin");
      else if (kind === "garbage") this.#peer.breakProtocol();
      else if (kind === "bodiless") this.#closeWithCode(job);
      else this.#respond(job, answer);
    });
  }

  #closeWithCode({ arrival }: Job): void {
    const code = CODES[arrival.counts.output % CODES.length] ?? 1005;
    this.#peer.close({ code, reason: code === 1005 ? "" : `Bye ${this.#opened.credential}` });
  }

  #respond(job: Job, answer: AnswerPlan): void {
    const { arrival, stream } = job;
    const { model, counts } = arrival;
    const mark = markOf(arrival);
    const isRefusal = answer.kind === "error status";
    arrival.status = isRefusal ? answer.status : 200;
    const secret = answer.status === 400 ? "nothing" : this.#opened.credential;
    const fails = failsAfter(arrival, answer);
    const question = { wire: "responses", stream: true, mark, model, counts, failsAfter: fails } as const;
    const texts = isRefusal
      ? [writeErrorEvent(answer.status, { mark, secret }, stream)]
      : listEvents(question, stream);
    this.#sendAll(job, answer, texts);
  }

  #sendAll(job: Job, answer: AnswerPlan, texts: readonly string[]): void {
    const total = texts.reduce((sum, { length }) => sum + length, 0);
    const { cut, missing } = answer;
    const isCut = cut !== null || missing > 0;
    const cutAt = !isCut
      ? Number.POSITIVE_INFINITY
      : cut === null
        ? total - missing
        : (total * cut.atPerMille) / 1000;
    let sent = 0;
    let index = 0;
    const next = (): void => {
      for (;;) {
        const text = texts[index++];
        if (text === undefined) return this.#finish(job, answer);
        sent += text.length;
        job.arrival.events?.push(text);
        if (sent > cutAt) return this.#cut(job, cut?.how ?? "stall");
        const hasRoom = this.#send(text);
        if (index === texts.length) job.arrival.endedAt = this.#upstream.scheduler.now;
        if (!hasRoom) return void this.#afterSent.push(next);
        if (answer.paceMs > 0) return this.#after(answer.paceMs, next);
      }
    };
    next();
  }

  #cut({ arrival }: Job, how: "fin" | "rst" | "stall"): void {
    arrival.endedAt = this.#upstream.scheduler.now;
    this.#isMute = true;
    if (how !== "stall") this.#end(how);
  }

  #end(how: "fin" | "rst"): void {
    if (how === "rst") this.#peer.reset();
    else this.#peer.leave();
  }

  #finish(job: Job, answer: AnswerPlan): void {
    const { arrival, stream } = job;
    // After a close frame, nothing has left.
    arrival.sent = !this.#isMute && this.#peer.open;
    if (this.#running.get(stream) === job) this.#running.delete(stream);
    if (answer.closes) this.#peer.close({ code: 1000, reason: "enough" });
    else if (answer.framing === "close") this.#peer.close({ code: 1001, reason: "enough" });
    else this.#next(stream);
  }

  #send(text: string): boolean {
    return this.#isMute || this.#peer.send({ kind: "text", bytes: Buffer.from(text) });
  }

  /** Only if the connection is open then. */
  #after(ms: number, run: () => void): void {
    const { scheduler, plan, owner } = this.#upstream;
    scheduler.after(ms * 1000, owner, `${plan.name} goes on`, () => {
      if (this.#peer.open) run();
    });
  }

  #lose(): void {
    const { now } = this.#upstream.scheduler;
    for (const { arrival } of [...this.#running.values(), ...this.#waiting])
      arrival.endedAt = Math.min(arrival.endedAt, now);
  }
}
