// A WebSocket from the gateway to an upstream. On each stream, one response follows another, as the plan says.

import type { AnswerPlan } from "../plan/plan.ts";
import { type Heard, Hearing, PING, writeClose, writeFrame, writePong, writeText } from "../world/frames.ts";
import type { End } from "../world/network.ts";
import { listEvents, maskSecret, type Question, writeErrorEvent } from "./answers.ts";
import { Outlet } from "./outlet.ts";
import { findRecording, listRecordedEvents } from "./recordings.ts";
import { type Arrival, extrasOf, failsAfter, markOf, type Upstream, useRecording } from "./upstream.ts";

/** The code of the close frame for each status of an answer. */
const CODES = [1000, 1001, null, 1008, 1011, 1012, 4000];

/** A piece of an answer: a message and its bytes, or bytes that are not a message. */
interface Piece {
  readonly text: string | null;
  readonly bytes: Buffer;
}

interface Job {
  readonly arrival: Arrival;
  readonly stream: string | null;
}

export class SocketLine {
  readonly #upstream: Upstream;
  readonly #end: End;
  readonly #outlet: Outlet;
  readonly #hearing = new Hearing(true);
  readonly #credential: string;
  readonly #waiting: Job[] = [];
  readonly #running = new Map<string | null, Job>();
  /** It sends nothing more: it has closed, or it stopped inside a frame. */
  #mute = false;
  #tainted = false;
  #isValid = true;

  /** `credential`: that of its upgrade. */
  constructor(upstream: Upstream, end: End, credential: string) {
    this.#upstream = upstream;
    this.#end = end;
    this.#credential = credential;
    this.#outlet = new Outlet(upstream, end, {
      data: (bytes) => this.receive(bytes),
      lost: () => this.#lose(),
    });
    upstream.lines.add(this);
  }

  /** `isValid`: the gateway may use it. */
  begin(head: Buffer, early: boolean, isValid: boolean): void {
    this.#isValid = isValid;
    const limits = JSON.stringify({ type: "codex.rate_limits", plan_type: "free" });
    this.#send(early ? Buffer.concat([head, writeText(limits, OWN)]) : head);
  }

  closeIfIdle(how: "fin" | "rst"): void {
    if (this.#running.size > 0 || this.#waiting.length > 0 || this.#outlet.isGone) return;
    if (how === "rst") this.#outlet.close("rst");
    else this.#close(1001, "idle");
  }

  receive(bytes: Buffer): void {
    for (const heard of this.#hearing.hear(bytes)) if (!this.#outlet.isGone) this.#take(heard);
    const { broken } = this.#hearing;
    if (broken === null || this.#outlet.isGone) return;
    this.#upstream.watch.accuse("bytes", `The gateway sent ${broken} to ${this.#end.name}.`);
    this.#outlet.close("rst");
  }

  #take(heard: Heard): void {
    if (heard.kind === "ping") this.#send(writePong(heard.payload, false));
    else if (heard.kind === "text") this.#takeMessage(heard.text);
    else {
      this.#send(writeClose(heard.code, "", false));
      this.#outlet.whenSent(() => this.#outlet.close("fin"));
    }
  }

  #checkMessage(send: string, text: string): void {
    const { watch, plan } = this.#upstream;
    this.#upstream.checkSecrets(text, this.#end.name);
    if (!this.#isValid)
      watch.accuse("bytes", `The gateway uses a WebSocket that ${plan.name} accepted with a wrong key.`);
    // A message that names its type twice is still a request.
    const message = watch.sends.get(send)?.message;
    if (message?.replace(/"easy-/, '"') !== text && !text.startsWith('{"Type"'))
      watch.accuse("bytes", `A message of ${send || "nobody"} was changed on its way: ${text.slice(0, 200)}`);
  }

  #takeMessage(text: string): void {
    const { scheduler, plan } = this.#upstream;
    const send = /"send":"sim\/(c\d+r\d+s\d+)"/.exec(text)?.[1] ?? "";
    this.#checkMessage(send, text);
    const arrival = this.#upstream.arrive(send, this.#end.peer.owner, {
      tainted: this.#tainted,
      whole: true,
      stream: true,
      events: [],
      estimated: Math.ceil(text.length / 4),
      model: /"model":"([^"]+)"/.exec(text)?.[1] ?? "",
    });
    scheduler.note(`${plan.name} gets a message of ${send || "nobody"}, attempt ${arrival.attempt}`);
    const stream = /"stream_id":"([^"]+)"/.exec(text)?.[1] ?? null;
    // A refusal does not wait for the response that runs on its stream.
    const isRefused = this.#running.has(stream) && this.#upstream.choose(arrival).kind === "error status";
    if (isRefused) this.#script({ arrival, stream });
    else this.#waiting.push({ arrival, stream });
    this.#next(stream);
  }

  #next(stream: string | null): void {
    if (this.#running.has(stream) || this.#outlet.isGone) return;
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
    arrival.plan = answer;
    const cached = Math.min(answer.cacheRead, arrival.estimated);
    arrival.counts = { input: arrival.estimated - cached, cacheRead: cached, output: answer.output };
    scheduler.note(
      `${plan.name} answers ${markOf(arrival)} with ${answer.kind} ${answer.status}${answer.cut === null ? "" : `, ${answer.cut.how}`} on its WebSocket`,
    );
    this.#outlet.begin(arrival, answer, () => {
      // A frame with a bit of an extension that was not negotiated.
      if (answer.kind === "garbage") this.#sendLast(Buffer.from([0xc1, 2, 123, 125]));
      else if (answer.kind === "bodiless with body") this.#closeWithCode(job);
      else this.#respond(job, answer);
    });
  }

  #closeWithCode({ arrival }: Job): void {
    const code = CODES[arrival.counts.output % CODES.length] ?? null;
    this.#close(code, code === null ? "" : `Bye ${this.#credential}`);
  }

  #respond(job: Job, answer: AnswerPlan): void {
    const { arrival, stream } = job;
    const { model, counts } = arrival;
    const mark = markOf(arrival);
    const isRefusal = answer.kind === "error status";
    arrival.status = isRefusal ? answer.status : 200;
    const secret = answer.status === 400 ? "nothing" : this.#credential;
    const fails = failsAfter(arrival, answer);
    const question: Question = {
      wire: "responses",
      stream: true,
      mark,
      model,
      counts,
      failsAfter: fails,
      ...extrasOf(answer, secret),
    };
    const texts = isRefusal
      ? [writeErrorEvent(answer.status, { mark, secret }, stream)]
      : answer.recorded !== undefined
        ? listRecordedEvents(useRecording(arrival, findRecording(question, answer.recorded)), stream)
        : listEvents(question, stream);
    const fragment = answer.framing === "chunked" ? 40 + answer.output + ((answer.padding ?? 0) >> 6) : 0;
    const pings = Array.from({ length: answer.interim }, (): Piece => ({ text: null, bytes: PING_FRAME }));
    const pieces = texts.map((text): Piece => ({
      text: answer.echoes ? maskSecret(text, secret) : text,
      bytes: writeText(text, { masked: false, fragment }),
    }));
    this.#sendPieces(job, answer, [...pings, ...pieces]);
  }

  #sendPieces(job: Job, answer: AnswerPlan, pieces: readonly Piece[]): void {
    const total = pieces.reduce((sum, { bytes }) => sum + bytes.length, 0);
    const { cut, missing } = answer;
    const cutAt =
      cut === null
        ? missing > 0
          ? total - missing
          : Number.POSITIVE_INFINITY
        : (total * cut.atPerMille) / 1000;
    let sent = 0;
    let index = 0;
    const next = (): void => {
      for (;;) {
        const piece = pieces[index++];
        if (piece === undefined) {
          this.#finish(job, answer);
          return;
        }
        const room = Math.floor(cutAt) - sent;
        sent += piece.bytes.length;
        if (piece.text !== null) job.arrival.events?.push(piece.text);
        this.#send(piece.bytes.length <= room ? piece.bytes : piece.bytes.subarray(0, Math.max(0, room)));
        if (sent > cutAt) {
          this.#cut(job, cut?.how ?? "stall");
          return;
        }
        if (index === pieces.length) this.#outlet.noteLast(job.arrival);
        if (answer.paceMs > 0) {
          this.#outlet.after(answer.paceMs, next);
          return;
        }
      }
    };
    next();
  }

  #cut({ arrival }: Job, how: "fin" | "rst" | "stall"): void {
    arrival.endedAt = this.#upstream.scheduler.now;
    // Inside a frame, other streams can send nothing.
    this.#mute = true;
    if (how === "rst") this.#outlet.close("rst");
    else if (how === "fin") this.#outlet.whenSent(() => this.#outlet.close("fin"));
  }

  #finish(job: Job, answer: AnswerPlan): void {
    this.#outlet.whenSent(() => {
      const { arrival, stream } = job;
      // After a close frame, nothing has left.
      arrival.sent = !this.#mute;
      if (this.#running.get(stream) === job) this.#running.delete(stream);
      if (answer.closes || answer.framing === "close") {
        this.#close(answer.closes ? 1000 : 1001, "enough");
        return;
      }
      if (answer.unasked !== null)
        this.#outlet.after(answer.unasked.delayMs, () => this.#sendUnasked(arrival));
      this.#next(stream);
    });
  }

  #sendUnasked(arrival: Arrival): void {
    if (this.#upstream.watch.healed()) return;
    this.#tainted = true;
    for (const job of [...this.#running.values(), ...this.#waiting]) job.arrival.tainted = true;
    this.#upstream.watch.noteUnasked();
    const response = { id: `resp_unasked_${markOf(arrival)}`, model: arrival.model, status: "in_progress" };
    this.#send(
      writeText(
        JSON.stringify({ type: "response.created", unasked: `unasked of ${markOf(arrival)}`, response }),
        OWN,
      ),
    );
  }

  #send(bytes: Buffer): void {
    if (!this.#mute) this.#outlet.send(bytes);
  }

  #sendLast(bytes: Buffer): void {
    this.#send(bytes);
    this.#mute = true;
  }

  /** Sends a close frame, and ends when the gateway has answered it. */
  #close(code: number | null, reason: string): void {
    this.#sendLast(writeClose(code, reason, false));
  }

  #lose(): void {
    this.#upstream.lines.delete(this);
    for (const { arrival } of [...this.#running.values(), ...this.#waiting])
      arrival.endedAt = Math.min(arrival.endedAt, this.#upstream.scheduler.now);
  }
}

const OWN = { masked: false, fragment: 0 };
const PING_FRAME = writeFrame(PING, Buffer.from("up"), false);
