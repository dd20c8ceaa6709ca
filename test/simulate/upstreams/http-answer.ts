// An upstream answers one request over HTTP, as the plan says.

import type { Field } from "../../../src/lib/http/fields.ts";
import { bodyAtUpstream } from "../clients/requests.ts";
import type { AnswerPlan, Dialect } from "../plan/plan.ts";
import type { Arriving, Reply } from "../world/upstream-side.ts";
import { type AnswerText, writeAnswer, writeError } from "./answers.ts";
import { type Arrival, failsAfter, markOf, type Upstream } from "./upstream.ts";

export function answerOverHttp(upstream: Upstream, arriving: Arriving): void {
  new HttpAnswer(upstream, arriving).start();
}

class HttpAnswer {
  readonly #upstream: Upstream;
  readonly #request: Arriving;
  readonly #reply: Reply;
  readonly #arrival: Arrival;

  constructor(upstream: Upstream, request: Arriving) {
    this.#upstream = upstream;
    this.#request = request;
    this.#reply = request.reply;
    const { method, target, fields, sender, sentAt } = request;
    const send = /sim\/(c\d+r\d+s\d+)/.exec(fields.get("user-agent") ?? "")?.[1] ?? "";
    this.#arrival = upstream.arrive(send, sender, {
      bytesRead: () => this.#reply.bytesRead,
      sentAt,
    });
    const { scheduler, plan } = upstream;
    scheduler.note(
      `${plan.name} gets ${method} ${target} of ${send || "nobody"}, attempt ${this.#arrival.attempt}`,
    );
    upstream.checkRequest(request);
    this.#reply.onLost = () => void (this.#arrival.endedAt = Math.min(this.#arrival.endedAt, scheduler.now));
  }

  start(): void {
    const arrival = this.#arrival;
    if (arrival.send === "") return this.#answerList();
    const answer = this.#upstream.choose(arrival);
    arrival.plan = answer;
    const { target, body } = this.#request;
    this.#checkBody(body);
    const text = body.toString();
    arrival.stream = target.includes(":streamGenerateContent") || /"stream": ?true/.test(text);
    arrival.model = /models\/([^:]+):/.exec(target)?.[1] ?? /"model": ?"([^"]+)"/.exec(text)?.[1] ?? "";
    this.#upstream.estimate(arrival, body.length, answer);
    this.#script(answer, wireOf(target));
  }

  #after(ms: number, run: () => void): void {
    const { scheduler, plan } = this.#upstream;
    scheduler.after(ms * 1000, this.#upstream.owner, `${plan.name} goes on`, () => {
      if (!this.#reply.isGone) run();
    });
  }

  /** Nothing is changed on the way. */
  #checkBody(body: Buffer): void {
    const { watch } = this.#upstream;
    const { send } = this.#arrival;
    const asked = watch.sends.get(send);
    const whole = asked && bodyAtUpstream(asked);
    if (typeof whole === "string" && body.toString() !== whole)
      watch.accuse("bytes", `The body of ${send} was changed on its way: ${body.toString().slice(0, 200)}`);
  }

  #answerList(): void {
    const body = this.#request.target.includes("v1beta")
      ? { models: [{ name: "models/gemini-2.5-flash", supportedGenerationMethods: ["generateContent"] }] }
      : {
          object: "list",
          data: [{ id: "claude-sonnet-4-5", object: "model", type: "model" }],
          has_more: false,
        };
    const text = Buffer.from(JSON.stringify(body));
    this.#arrival.status = 200;
    this.#after(1, () => {
      this.#reply.begin(200, [["content-type", "application/json"]], text.length, false);
      this.#reply.write(text);
      this.#reply.end();
      this.#arrival.endedAt = this.#upstream.scheduler.now;
    });
  }

  #script(answer: AnswerPlan, wire: Dialect): void {
    const { scheduler } = this.#upstream;
    const arrival = this.#arrival;
    const { kind, cut, delayMs } = answer;
    scheduler.note(
      `${arrival.channel} answers ${markOf(arrival)} with ${kind} ${answer.status}${describeCut(answer)}`,
    );
    if (kind === "garbage") arrival.status = -1;
    if (kind === "silence") return void (arrival.endedAt = scheduler.now);
    this.#after(delayMs, () => {
      arrival.waited = scheduler.now - this.#request.sentAt;
      if (kind === "close at once") this.#reply.fail("reset", cut?.how === "rst");
      else if (kind === "garbage") this.#reply.fail("malformed", false);
      else this.#respond(answer, wire);
    });
  }

  #respond(answer: AnswerPlan, wire: Dialect): void {
    const arrival = this.#arrival;
    arrival.status = answer.status;
    if (answer.kind === "bodiless") {
      this.#reply.begin(answer.status, [], null, false);
      this.#reply.end();
      return void (arrival.endedAt = this.#upstream.scheduler.now);
    }
    const { pieces, type } = this.#write(answer, wire);
    const { framing, cut } = answer;
    const bytes = pieces.map((piece) => Buffer.from(piece));
    const total = bytes.reduce((sum, piece) => sum + piece.length, 0);
    const cutAt = cut === null ? Number.POSITIVE_INFINITY : Math.floor((total * cut.atPerMille) / 1000);
    if (cutAt === 0) return this.#cut(answer, "reset");
    const fields: Field[] = [
      ["content-type", type],
      ["set-cookie", "a=b"],
      ["anthropic-organization-id", "org-private"],
    ];
    const length = framing === "length" ? total + answer.missing : null;
    this.#reply.begin(answer.status, fields, length, framing === "close");
    this.#sendPieces(answer, bytes, cutAt);
  }

  #write(answer: AnswerPlan, wire: Dialect): AnswerText {
    const arrival = this.#arrival;
    const { model, counts, stream } = arrival;
    const mark = markOf(arrival);
    const secret = this.#upstream.credential;
    if (answer.kind === "error status")
      return writeError(wire, answer.status, mark, answer.status === 400 ? "nothing" : secret);
    const text = writeAnswer({ wire, stream, mark, model, counts, failsAfter: failsAfter(arrival, answer) });
    arrival.body = Buffer.from(text.pieces.join(""));
    return text;
  }

  #sendPieces(answer: AnswerPlan, pieces: readonly Buffer[], cutAt: number): void {
    let sent = 0;
    let index = 0;
    const next = (): void => {
      for (;;) {
        const piece = pieces[index++];
        if (piece === undefined) return this.#finish(answer);
        const room = cutAt - sent;
        const hasRoom = this.#reply.write(
          piece.length <= room ? piece : piece.subarray(0, Math.max(0, room)),
        );
        sent += piece.length;
        if (sent > cutAt) return this.#cut(answer, "cut");
        if (!hasRoom) return void (this.#reply.onDrained = next);
        if (answer.paceMs > 0) return this.#after(answer.paceMs, next);
      }
    };
    next();
  }

  #cut({ cut, framing }: AnswerPlan, kind: "cut" | "reset"): void {
    this.#arrival.endedAt = this.#upstream.scheduler.now;
    if (cut?.how === "stall") return;
    // Where the end of the connection ends a body, nobody can tell a cut from an end.
    if (cut?.how === "fin" && kind === "cut" && framing === "close") this.#reply.end();
    else this.#reply.fail(kind, cut?.how === "rst");
  }

  #finish(answer: AnswerPlan): void {
    this.#arrival.endedAt = this.#upstream.scheduler.now;
    if (answer.missing > 0) return;
    this.#arrival.sent = true;
    this.#reply.end();
  }
}

function wireOf(target: string): Dialect {
  if (target.includes("/v1beta/")) return "content";
  return target.startsWith("/v1/messages") ? "messages" : "responses";
}

function describeCut({ cut }: AnswerPlan): string {
  return cut === null ? "" : `, ${cut.how} at ${cut.atPerMille} per mille`;
}
