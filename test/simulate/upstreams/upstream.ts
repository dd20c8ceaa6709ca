// One upstream: reads requests as they come, answers each as the plan has it, and remembers
// what it was sent and what it sent.

import { brotliCompressSync, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import type { AnswerPlan, ChannelPlan, Plan, RequestPlan } from "../plan/plan.ts";
import type { End, Network } from "../world/network.ts";
import { NATURE, type Owner, type Scheduler } from "../world/scheduler.ts";
import {
  type AnswerText,
  type Counts,
  type Question,
  type Wire,
  writeAnswer,
  writeError,
  writeUnfinished,
} from "./answers.ts";

/** A request as an upstream saw it. */
export interface Arrival {
  /** Client, request and send: `c3r2s0`; empty for what no client asked for (lists of models). */
  readonly send: string;
  readonly attempt: number;
  readonly channel: string;
  readonly at: number;
  /** It may have died long before: an upstream may read late. */
  readonly sender: Owner;
  /** Virtual time at which its last byte was sent, or its connection was lost. */
  endedAt: number;
  /** The whole request has come. */
  whole: boolean;
  /** Null while it is not known how it is answered. */
  plan: AnswerPlan | null;
  status: number;
  /** Of an answer that is a success: its body, without codings. */
  body: Buffer | null;
  counts: Counts;
  model: string;
  /** The last byte of a whole answer was handed to the network. */
  sent: boolean;
  stream: boolean;
  estimated: number;
  /** It came behind an answer that nobody asked for, on the same connection: who gets which answer is chance. */
  tainted: boolean;
  /** The id of the response that it fetches; null: it asks for a new one. */
  readonly fetches: string | null;
  /** The upstream goes on with it after its answer. */
  goesOn: boolean;
}

/** A response that an upstream works on in the background. */
export interface Stored {
  readonly question: Question;
  readonly readyAt: number;
}

/** What upstreams learn and report. */
export interface UpstreamWatch {
  readonly requests: ReadonlyMap<string, RequestPlan>;
  readonly plan: Plan;
  readonly arrivals: Arrival[];
  /** Secrets of clients: none of them may be seen here. */
  readonly secrets: readonly string[];
  readonly stored: Map<string, Stored>;
  readonly healed: () => boolean;
  /** An upstream has sent an answer that nobody asked for. */
  noteUnasked(): void;
  accuse(check: string, text: string): void;
}

export const GOOD_ANSWER: AnswerPlan = {
  kind: "answer",
  status: 200,
  output: 5,
  cacheRead: 0,
  delayMs: 1,
  paceMs: 0,
  framing: "chunked",
  coding: null,
  cut: null,
  interim: 0,
  unasked: null,
  closes: false,
  missing: 0,
  slowReadMs: 0,
};

export function credentialOf(channel: string): string {
  return `cred-${channel}-4fJ7qLx2VbN8sKw3`;
}

export class Upstream {
  readonly plan: ChannelPlan;
  readonly network: Network;
  readonly scheduler: Scheduler;
  readonly watch: UpstreamWatch;
  readonly lines = new Set<Line>();

  constructor(plan: ChannelPlan, network: Network, watch: UpstreamWatch) {
    this.plan = plan;
    this.network = network;
    this.scheduler = network.scheduler;
    this.watch = watch;
    network.listen(`${plan.name}.test:80`, NATURE, (end) => void this.lines.add(new Line(this, end)));
  }

  closeIdle(how: "fin" | "rst"): void {
    for (const line of this.lines) line.closeIfIdle(how);
  }
}

/** One connection of the gateway. */
class Line {
  readonly #upstream: Upstream;
  readonly #end: End;
  #came: Buffer = Buffer.alloc(0);
  #arrival: Arrival | null = null;
  #busy = false;
  #gone = false;
  #out: Buffer[] = [];
  #afterSent: (() => void) | null = null;
  #served = 0;
  #tainted = false;

  constructor(upstream: Upstream, end: End) {
    this.#upstream = upstream;
    this.#end = end;
    end.ears = {
      data: (bytes) => this.#receive(bytes),
      drain: () => this.#flush(),
      finished: () => {
        end.fin();
        this.#lose();
      },
      lost: () => this.#lose(),
    };
  }

  closeIfIdle(how: "fin" | "rst"): void {
    if (!this.#busy && !this.#gone && this.#came.length === 0) this.#close(how);
  }

  #receive(bytes: Buffer): void {
    const { watch } = this.#upstream;
    const text = bytes.toString("latin1");
    for (const secret of watch.secrets) {
      if (text.includes(secret))
        watch.accuse("secrets", `A client's key went to the upstream ${this.#end.name}.`);
    }
    this.#came = this.#came.length === 0 ? bytes : Buffer.concat([this.#came, bytes]);
    if (!this.#busy) this.#read();
  }

  #read(): void {
    const end = this.#came.indexOf("\r\n\r\n");
    if (end < 0) return;
    const [first = "", ...fields] = this.#came.toString("latin1", 0, end).split("\r\n");
    const field = (name: string): string | undefined =>
      fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const length = Number(field("content-length") ?? 0);
    const [method = "", target = ""] = first.split(" ");
    this.#arrival ??= this.#arrive(field("user-agent") ?? "", method, target);
    if (this.#came.length < end + 4 + length) return;
    const body = this.#came.subarray(end + 4, end + 4 + length);
    this.#came = this.#came.subarray(end + 4 + length);
    this.#busy = true;
    const arrival = this.#arrival;
    this.#arrival = null;
    arrival.whole = true;
    this.#checkCredential(field);
    this.#answer(arrival, { method, target, body: decode(body, field("content-encoding")) });
  }

  #arrive(agent: string, method: string, target: string): Arrival {
    const { watch, plan, scheduler } = this.#upstream;
    const send = /sim\/(c\d+r\d+s\d+)/.exec(agent)?.[1] ?? "";
    const attempt = send === "" ? 0 : watch.arrivals.filter((other) => other.send === send).length;
    const arrival: Arrival = {
      send,
      attempt,
      channel: plan.name,
      at: scheduler.now,
      sender: this.#end.peer.owner,
      endedAt: Number.POSITIVE_INFINITY,
      whole: false,
      plan: null,
      status: 0,
      body: null,
      counts: { input: 0, cacheRead: 0, output: 0 },
      model: "",
      sent: false,
      stream: false,
      estimated: 0,
      tainted: this.#tainted,
      fetches: method === "GET" ? (/^\/v1\/responses\/([^/?]+)/.exec(target)?.[1] ?? null) : null,
      goesOn: false,
    };
    scheduler.note(`${plan.name} gets ${method} ${target} of ${send || "nobody"}, attempt ${attempt}`);
    watch.arrivals.push(arrival);
    return arrival;
  }

  #checkCredential(field: (name: string) => string | undefined): void {
    const { plan, watch } = this.#upstream;
    const own = credentialOf(plan.name);
    const shown = [field("authorization"), field("x-api-key"), field("x-goog-api-key")].join(" ");
    if (!shown.includes(own))
      watch.accuse("secrets", `The upstream ${plan.name} was not shown its own credential, but: ${shown}`);
  }

  #answer(arrival: Arrival, request: { method: string; target: string; body: Buffer }): void {
    const { plan } = this.#upstream;
    if (arrival.send === "") {
      this.#answerList(arrival, request.target);
      return;
    }
    const answer = this.#choose(arrival);
    arrival.plan = answer;
    const { target, body } = request;
    const text = body.toString();
    arrival.stream = target.includes(":streamGenerateContent") || /"stream": ?true/.test(text);
    arrival.model = /models\/([^:]+):/.exec(target)?.[1] ?? /"model": ?"([^"]+)"/.exec(text)?.[1] ?? "";
    arrival.estimated = Math.ceil(body.length / 4);
    const cached = Math.min(answer.cacheRead, arrival.estimated);
    arrival.counts = { input: arrival.estimated - cached, cacheRead: cached, output: answer.output };
    this.#script(arrival, answer, wireOf(target), credentialOf(plan.name));
  }

  /** The answers of a plan are for all sends of a request, one after another. */
  #choose(arrival: Arrival): AnswerPlan {
    const { watch } = this.#upstream;
    const id = requestOf(arrival.send);
    const before = watch.arrivals.filter(
      (other) => other !== arrival && other.send.startsWith(`${id}s`),
    ).length;
    const planned = watch.healed() ? undefined : watch.requests.get(id)?.answers[before];
    return planned ?? { ...GOOD_ANSWER, output: 3 + (before % 5) };
  }

  #answerList(arrival: Arrival, target: string): void {
    const body = target.includes("v1beta")
      ? {
          models: [
            {
              name: "models/gemini-2.5-flash",
              displayName: "x",
              supportedGenerationMethods: ["generateContent"],
            },
          ],
        }
      : {
          object: "list",
          data: [
            {
              id: "claude-sonnet-4-5",
              object: "model",
              type: "model",
              created_at: "2025-01-01T00:00:00Z",
              display_name: "x",
            },
          ],
          has_more: false,
        };
    const text = JSON.stringify(body);
    arrival.status = 200;
    this.#after(1, () => {
      this.#send(
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        ),
      );
      this.#done(arrival, false);
    });
  }

  #script(arrival: Arrival, answer: AnswerPlan, wire: Wire, secret: string): void {
    const { scheduler } = this.#upstream;
    const mark = `${arrival.send}a${arrival.attempt}`;
    scheduler.note(
      `${arrival.channel} answers ${mark} with ${answer.kind} ${answer.status}${describeCut(answer)}`,
    );
    if (answer.slowReadMs > 0) {
      this.#end.setReading(false);
      this.#after(answer.slowReadMs, () => this.#end.setReading(true));
    }
    switch (answer.kind) {
      case "silence":
        arrival.endedAt = scheduler.now;
        return;
      case "close at once":
        this.#after(answer.delayMs, () => this.#close(answer.cut?.how === "rst" ? "rst" : "fin"));
        return;
      case "garbage":
        arrival.status = -1;
        this.#after(answer.delayMs, () => {
          this.#send(Buffer.from(`SSH-2.0-${mark}\r\n`));
          this.#done(arrival, true);
        });
        return;
      case "answer":
      case "bodiless with body":
      case "error event":
      case "error status":
        this.#after(answer.delayMs, () => this.#respond(arrival, answer, wire, { mark, secret }));
    }
  }

  #respond(
    arrival: Arrival,
    answer: AnswerPlan,
    wire: Wire,
    { mark, secret }: { mark: string; secret: string },
  ): void {
    const failed = answer.kind === "error status";
    arrival.status = answer.status;
    const { model, counts, stream } = arrival;
    const question = { wire, stream, mark, model, counts, failsAfter: failsAfter(arrival, answer) };
    const text = failed
      ? writeError(wire, answer.status, mark, answer.status === 400 ? "nothing" : secret)
      : answer.kind === "bodiless with body"
        ? writeSmuggled(mark)
        : this.#writeSuccess(arrival, question);
    const whole = Buffer.from(text.pieces.join(""));
    if (!failed) arrival.body = whole;
    const pieces = frame(
      text.type,
      text.pieces.map((piece) => Buffer.from(piece)),
      answer,
      this.#upstream.plan,
    );
    const total = pieces.reduce((sum, piece) => sum + piece.length, 0);
    const cutAt =
      answer.cut === null ? Number.POSITIVE_INFINITY : Math.floor((total * answer.cut.atPerMille) / 1000);
    this.#sendPieces(arrival, answer, pieces, cutAt);
  }

  #writeSuccess(arrival: Arrival, question: Question): AnswerText {
    const { watch, scheduler } = this.#upstream;
    const background = watch.requests.get(requestOf(arrival.send))?.background ?? null;
    if (background === null) return writeAnswer(question);
    const { now } = scheduler;
    if (arrival.fetches === null) {
      arrival.goesOn = true;
      const readyAt = now + background.readyMs * 1000;
      watch.stored.set(`resp_${question.mark}`, { question, readyAt });
      return writeUnfinished(question, "queued");
    }
    const stored = watch.stored.get(arrival.fetches);
    if (stored === undefined) {
      watch.accuse("bytes", `${arrival.send} fetches ${arrival.fetches}, which the upstream never made.`);
      return writeAnswer(question);
    }
    arrival.goesOn = stored.readyAt > now;
    arrival.counts = stored.question.counts;
    return arrival.goesOn ? writeUnfinished(stored.question, "in_progress") : writeAnswer(stored.question);
  }

  #sendPieces(arrival: Arrival, answer: AnswerPlan, pieces: readonly Buffer[], cutAt: number): void {
    let sent = 0;
    let index = 0;
    const next = (): void => {
      for (;;) {
        const piece = pieces[index++];
        if (piece === undefined) {
          this.#finish(arrival, answer);
          return;
        }
        const room = cutAt - sent;
        this.#send(piece.length <= room ? piece : piece.subarray(0, Math.max(0, room)));
        sent += piece.length;
        if (sent > cutAt) {
          this.#cut(arrival, answer);
          return;
        }
        if (answer.paceMs > 0) {
          this.#after(answer.paceMs, next);
          return;
        }
      }
    };
    next();
  }

  #cut(arrival: Arrival, answer: AnswerPlan): void {
    const how = answer.cut?.how ?? "fin";
    arrival.endedAt = this.#upstream.scheduler.now;
    if (how === "stall") return;
    if (how === "fin") this.#whenSent(() => this.#close("fin"));
    else this.#close("rst");
  }

  #finish(arrival: Arrival, answer: AnswerPlan): void {
    this.#whenSent(() => {
      if (answer.missing > 0) return;
      arrival.sent = true;
      const closes = answer.closes || answer.framing === "close";
      this.#done(arrival, closes);
      if (answer.unasked !== null && !closes) {
        this.#after(answer.unasked.delayMs, () => {
          if (this.#busy || this.#gone || this.#upstream.watch.healed()) return;
          this.#tainted = true;
          this.#upstream.watch.noteUnasked();
          const text = `unasked of ${arrival.send}a${arrival.attempt}`;
          this.#send(
            Buffer.from(
              `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
            ),
          );
        });
      }
    });
  }

  #done(arrival: Arrival, closes: boolean): void {
    arrival.endedAt = this.#upstream.scheduler.now;
    if (closes) {
      this.#whenSent(() => this.#close("fin"));
      return;
    }
    this.#busy = false;
    const { idleCloseMs, idleClose } = this.#upstream.plan;
    const served = ++this.#served;
    // A request that crosses such an end on its way fails, and rightly: no faults at the end of a run.
    if (idleCloseMs > 0 && !this.#upstream.watch.healed()) {
      this.#after(idleCloseMs, () => {
        if (served === this.#served) this.closeIfIdle(idleClose);
      });
    }
    this.#read();
  }

  #after(ms: number, run: () => void): void {
    const { scheduler, plan } = this.#upstream;
    scheduler.after(ms * 1000, NATURE, `${plan.name} goes on`, () => {
      if (!this.#gone) run();
    });
  }

  #send(bytes: Buffer): void {
    if (bytes.length > 0) this.#out.push(bytes);
    this.#flush();
  }

  #flush(): void {
    while (this.#out.length > 0) {
      const bytes = this.#out[0]!;
      const taken = this.#end.write(bytes);
      if (taken < 0) return;
      if (taken < bytes.length) {
        this.#out[0] = bytes.subarray(taken);
        return;
      }
      this.#out.shift();
    }
    const then = this.#afterSent;
    this.#afterSent = null;
    then?.();
  }

  #whenSent(run: () => void): void {
    this.#afterSent = run;
    this.#flush();
  }

  #close(how: "fin" | "rst"): void {
    if (how === "fin") this.#end.fin();
    else this.#end.reset();
    this.#lose();
  }

  #lose(): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#upstream.lines.delete(this);
  }
}

/** `c3r2` of `c3r2s0` */
export function requestOf(send: string): string {
  return send.replace(/s\d+$/, "");
}

function decode(body: Buffer, coding: string | undefined): Buffer {
  if (coding === "gzip") return gunzipSync(body);
  return coding === "zstd" ? zstdDecompressSync(body) : body;
}

/** A body where there must be none, that looks like the answer to the next request. */
function writeSmuggled(mark: string): AnswerText {
  const body = JSON.stringify({ smuggled: mark });
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return { type: "application/json", pieces: [head + body] };
}

function failsAfter({ stream }: Arrival, { kind, output }: AnswerPlan): number | null {
  return kind === "error event" && stream ? Math.floor(output / 2) : null;
}

function wireOf(target: string): Wire {
  if (target.includes("/v1beta/")) return "content";
  return target.startsWith("/v1/messages") ? "messages" : "responses";
}

function describeCut({ cut }: AnswerPlan): string {
  return cut === null ? "" : `, ${cut.how} at ${cut.atPerMille} per mille`;
}

const ENCODE = { gzip: gzipSync, br: brotliCompressSync, zstd: zstdCompressSync };

function frame(type: string, body: readonly Buffer[], answer: AnswerPlan, plan: ChannelPlan): Buffer[] {
  const { coding, status, interim } = answer;
  const pieces = coding === null ? body : [ENCODE[coding](Buffer.concat([...body]))];
  // What must have no body has one all the same, and says how long it is.
  const framing = answer.kind === "bodiless with body" ? "length" : answer.framing;
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0) + answer.missing;
  const fields = [`content-type: ${type}`, "set-cookie: a=b", "anthropic-organization-id: org-private"];
  if (coding !== null) fields.push(`content-encoding: ${coding}`);
  if (framing === "length") fields.push(`content-length: ${length}`);
  if (framing === "chunked") fields.push("transfer-encoding: chunked");
  if (answer.closes || framing === "close") fields.push("connection: close");
  if (plan.keepAliveSeconds > 0) fields.push(`keep-alive: timeout=${plan.keepAliveSeconds}`);
  const early = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(interim);
  const head = Buffer.from(`${early}HTTP/1.1 ${status} Status\r\n${fields.join("\r\n")}\r\n\r\n`);
  if (framing !== "chunked") return [head, ...pieces];
  const chunks = pieces.map((piece) =>
    Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from("\r\n")]),
  );
  return [head, ...chunks, Buffer.from(answer.missing > 0 ? "5\r\n" : "0\r\n\r\n")];
}
