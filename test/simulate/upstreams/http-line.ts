// One HTTP connection from the gateway to an upstream: reads requests as they come, and answers each as the plan says.

import {
  brotliCompressSync,
  constants,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
  zstdDecompressSync,
} from "node:zlib";
import type { AnswerPlan, ChannelPlan, UpgradePlan } from "../plan/plan.ts";
import { bodyAtUpstream } from "../clients/requests.ts";
import { acceptKey } from "../world/frames.ts";
import type { End } from "../world/network.ts";
import { Pile } from "../pile.ts";
import {
  type AnswerText,
  maskSecret,
  type Question,
  type Wire,
  writeAnswer,
  writeError,
  writeUnfinished,
} from "./answers.ts";
import { Outlet } from "./outlet.ts";
import { findRecording } from "./recordings.ts";
import { SocketLine } from "./socket-line.ts";
import {
  type Arrival,
  extrasOf,
  failsAfter,
  GOOD_ANSWER,
  isByChance,
  markOf,
  requestOf,
  type Upstream,
  useRecording,
} from "./upstream.ts";

const GOOD_UPGRADE: UpgradePlan = { kind: "accept", status: 101, delayMs: 1, early: false };
/** The beginning of a stream while another channel can be tried, and what one read brings. */
const MOST_HELD = 512 * 1024;
/** The gateway's clock has whole milliseconds, and the answer may have been read before its last byte came. */
const LATE_MS = 50;
const REVOKED: UpgradePlan = { kind: "refuse", status: 401, delayMs: 1, early: false };
const NO_SOCKET: UpgradePlan = { kind: "refuse", status: 426, delayMs: 1, early: false };

export class HttpLine {
  readonly #upstream: Upstream;
  readonly #end: End;
  readonly #outlet: Outlet;
  readonly #came = new Pile();
  /** There is nothing to do before this many bytes have come. */
  #needed = 0;
  #arrival: Arrival | null = null;
  #busy = false;
  #served = 0;
  /** How many bytes it had sent at the end of its last answer. */
  #answered = 0;
  #tainted = false;
  /** Of the last request. */
  #credential = "";
  #answering: Arrival | null = null;
  /** How long its last answer says that it keeps an idle connection; 0: it does not say. */
  #keepsMs = 0;
  /** The answer came before the whole request. */
  #early = false;

  constructor(upstream: Upstream, end: End) {
    this.#upstream = upstream;
    this.#end = end;
    this.#outlet = new Outlet(upstream, end, {
      data: (bytes) => this.#receive(bytes),
      drained: () => this.#checkHeld(),
      lost: () => void upstream.lines.delete(this),
    });
  }

  closeIfIdle(how: "fin" | "rst"): void {
    if (!this.#busy && !this.#outlet.isGone && this.#came.length === 0) this.#outlet.close(how);
  }

  #receive(bytes: Buffer): void {
    this.#came.add(bytes);
    if (!this.#busy) this.#read();
  }

  #read(): void {
    if (this.#came.length < this.#needed) return;
    const came = this.#came.bytes;
    const end = came.indexOf("\r\n\r\n");
    if (end < 0) return;
    const [first = "", ...fields] = came.toString("latin1", 0, end).split("\r\n");
    const field = (name: string): string | undefined =>
      fields.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const length = Number(field("content-length") ?? 0);
    const [method = "", target = ""] = first.split(" ");
    if (field("upgrade") === "websocket") {
      this.#came.take(end + 4);
      this.#upgrade(field);
      return;
    }
    this.#arrival ??= this.#arrive(field("user-agent") ?? "", method, target);
    this.#needed = end + 4 + length;
    if (came.length < this.#needed) {
      this.#answerEarly(this.#arrival, target, field);
      return;
    }
    const request = this.#came.take(this.#needed);
    this.#needed = 0;
    this.#upstream.checkSecrets(request.toString("latin1"), this.#end.name);
    if (this.#early) {
      this.#skip(this.#arrival, request.subarray(end + 4));
      return;
    }
    const body = request.subarray(end + 4);
    this.#busy = true;
    const arrival = this.#arrival;
    this.#arrival = null;
    arrival.whole = true;
    this.#credential = this.#upstream.checkCredential(field);
    this.#answer(arrival, { method, target, body: decode(body, field("content-encoding")) });
  }

  #answerEarly(arrival: Arrival, target: string, field: (name: string) => string | undefined): void {
    const answer = this.#upstream.choose(arrival);
    if (this.#early || answer.early !== true) return;
    this.#early = this.#busy = true;
    this.#credential = this.#upstream.checkCredential(field);
    arrival.plan = answer;
    this.#script(arrival, answer, wireOf(target), this.#credential);
  }

  /** What was left of a request after its answer. */
  #skip(arrival: Arrival, body: Buffer): void {
    this.#early = false;
    this.#arrival = null;
    if (body.includes(" HTTP/1.1\r\n"))
      this.#upstream.watch.accuse("reuse", `A request was sent inside the body of ${arrival.send}.`);
    this.#read();
  }

  #arrive(agent: string, method: string, target: string): Arrival {
    const { plan, scheduler } = this.#upstream;
    const send = /sim\/(c\d+r\d+s\d+)/.exec(agent)?.[1] ?? "";
    const fetches = method === "GET" ? (/^\/v1\/responses\/([^/?]+)/.exec(target)?.[1] ?? null) : null;
    const { peer } = this.#end;
    const before = this.#outlet.total;
    const arrival = this.#upstream.arrive(send, peer.owner, {
      tainted: this.#tainted,
      bytesRead: () => peer.bytesRead - before,
      sentAt: peer.wroteAt,
      fetches,
    });
    this.#checkReuse(arrival);
    scheduler.note(
      `${plan.name} gets ${method} ${target} of ${send || "nobody"}, attempt ${arrival.attempt}`,
    );
    return arrival;
  }

  /** Bytes that came before the request and are not of an answer show that this connection is not safe to use again. */
  #checkReuse({ send }: Arrival): void {
    const { plan, watch } = this.#upstream;
    const { idleMs } = this.#end.peer;
    if (this.#keepsMs > 0 && idleMs > this.#keepsMs + LATE_MS)
      watch.accuse(
        "reuse",
        `${send} was sent on ${this.#end.name} after ${idleMs} ms, but ${plan.name} keeps idle connections for ${this.#keepsMs} ms.`,
      );
    if (this.#end.peer.takeReadBefore() <= this.#answered) return;
    watch.accuse(
      "reuse",
      `The gateway had read bytes that it did not request from ${this.#end.name}, and sent ${send} on it.`,
    );
  }

  /** While a client reads slowly, the gateway must not read on. */
  #checkHeld(): void {
    const { watch } = this.#upstream;
    const send = watch.sends.get(this.#answering?.send ?? "");
    if (
      !this.#answering?.stream ||
      send?.end !== "open" ||
      send.client.dialect === "chat" ||
      send.client.pipelined
    )
      return;
    const held = this.#answering.bytesRead() - (send.reply?.body.length ?? 0) - watch.plan.weather.window;
    if (held > MOST_HELD)
      watch.accuse("memory", `The gateway holds ${held} bytes of a stream that ${send.name} reads slowly.`);
  }

  get #isRevoked(): boolean {
    return this.#credential !== this.#upstream.credential;
  }

  /** Nothing but an alias is changed on the way. */
  #checkBody({ send, tainted }: Arrival, body: Buffer): void {
    const { watch } = this.#upstream;
    const asked = watch.sends.get(send);
    const whole = asked && bodyAtUpstream(asked);
    if (typeof whole === "string" && !tainted && body.toString() !== whole)
      watch.accuse("bytes", `The body of ${send} was changed on its way: ${body.toString().slice(0, 200)}`);
  }

  /** A request for a WebSocket. */
  #upgrade(field: (name: string) => string | undefined): void {
    const upstream = this.#upstream;
    const { plan, watch, scheduler } = upstream;
    this.#credential = upstream.checkCredential(field);
    this.#busy = true;
    const planned = watch.healed() ? undefined : plan.sockets?.[upstream.upgrades++];
    const upgrade = this.#isRevoked
      ? REVOKED
      : (planned ?? (plan.sockets === undefined ? NO_SOCKET : GOOD_UPGRADE));
    scheduler.note(`${plan.name} gets a request for a WebSocket: ${upgrade.kind}`);
    this.#outlet.after(upgrade.delayMs, () => this.#answerUpgrade(upgrade, field("sec-websocket-key") ?? ""));
  }

  #answerUpgrade({ kind, status, early }: UpgradePlan, key: string): void {
    const { plan, watch } = this.#upstream;
    switch (kind) {
      case "silence":
        return;
      case "close at once":
        this.#outlet.close(status === 426 ? "fin" : "rst");
        return;
      case "refuse": {
        watch.noteRefused(plan.name);
        const { pieces } = writeError("responses", status, "nobody", this.#credential);
        const body = pieces.join("");
        this.#outlet.send(
          Buffer.from(`HTTP/1.1 ${status} No\r\ncontent-length: ${body.length}\r\n\r\n${body}`),
        );
        this.#outlet.whenSent(() => this.#outlet.close("fin"));
        return;
      }
      case "wrong key":
      case "accept":
        this.#accept(kind === "accept" ? acceptKey(key) : acceptKey(`not ${key}`), early, kind === "accept");
    }
  }

  #accept(accept: string, early: boolean, isValid: boolean): void {
    const fields = [
      "upgrade: websocket",
      "connection: Upgrade",
      `sec-websocket-accept: ${accept}`,
      "set-cookie: a=b",
      "openai-organization: org-private",
    ];
    this.#outlet.leave();
    const head = Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${fields.join("\r\n")}\r\n\r\n`);
    const line = new SocketLine(this.#upstream, this.#end, this.#credential);
    line.begin(head, early, isValid);
    if (this.#came.length > 0) line.receive(this.#came.bytes);
  }

  #answer(arrival: Arrival, request: { method: string; target: string; body: Buffer }): void {
    if (arrival.send === "" && !this.#isRevoked) {
      this.#answerList(arrival, request.target);
      return;
    }
    const planned = this.#upstream.choose(arrival);
    const answer: AnswerPlan = this.#isRevoked
      ? { ...GOOD_ANSWER, kind: "error status", status: 401 }
      : planned;
    arrival.plan = answer;
    const { target, body } = request;
    this.#checkBody(arrival, body);
    const text = body.toString();
    arrival.stream = target.includes(":streamGenerateContent") || /"stream": ?true/.test(text);
    arrival.model = /models\/([^:]+):/.exec(target)?.[1] ?? /"model": ?"([^"]+)"/.exec(text)?.[1] ?? "";
    arrival.estimated = Math.ceil(body.length / 4);
    const cached = Math.min(answer.cacheRead, arrival.estimated);
    arrival.counts = { input: arrival.estimated - cached, cacheRead: cached, output: answer.output };
    this.#script(arrival, answer, wireOf(target), this.#credential);
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
    this.#keepsMs = 0;
    this.#outlet.after(1, () => {
      this.#outlet.send(
        Buffer.from(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
        ),
      );
      this.#done(arrival, false);
    });
  }

  #script(arrival: Arrival, answer: AnswerPlan, wire: Wire, secret: string): void {
    const { scheduler } = this.#upstream;
    const mark = markOf(arrival);
    this.#answering = arrival;
    scheduler.note(
      `${arrival.channel} answers ${mark} with ${answer.kind} ${answer.status}${describeCut(answer)}`,
    );
    if (answer.kind === "garbage") arrival.status = -1;
    this.#outlet.begin(arrival, answer, () => {
      if (answer.kind !== "garbage") {
        this.#respond(arrival, answer, wire, { mark, secret });
        return;
      }
      this.#outlet.send(Buffer.from(`SSH-2.0-${mark}\r\n`));
      this.#done(arrival, true);
    });
  }

  #respond(
    arrival: Arrival,
    answer: AnswerPlan,
    wire: Wire,
    { mark, secret }: { mark: string; secret: string },
  ): void {
    const failed = answer.kind === "error status";
    this.#keepsMs = this.#upstream.plan.keepAliveSeconds * 1000;
    arrival.status = answer.status;
    const { model, counts, stream } = arrival;
    const question: Question = {
      wire,
      stream,
      mark,
      model,
      counts,
      failsAfter: failsAfter(arrival, answer),
      ...extrasOf(answer, secret),
    };
    const text = failed
      ? writeError(wire, answer.status, mark, answer.status === 400 ? "nothing" : secret)
      : answer.kind === "bodiless with body"
        ? writeSmuggled(mark)
        : answer.recorded !== undefined
          ? useRecording(arrival, findRecording(question, answer.recorded)).text
          : this.#writeSuccess(arrival, question);
    const whole = Buffer.from(text.pieces.join(""));
    if (!failed) {
      arrival.body = answer.echoes ? Buffer.from(maskSecret(whole.toString(), secret)) : whole;
      arrival.unmasked = answer.echoes ? whole : null;
    }
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
      // Another channel may be asked for it.
      watch.stored.set(`resp_${question.mark}`, { question: { ...question, secret: null }, readyAt });
      return writeUnfinished(question, "queued");
    }
    const stored = watch.stored.get(arrival.fetches);
    if (stored === undefined) {
      const own = `${requestOf(arrival.send)}s`;
      if (!isByChance(watch.arrivals, own, arrival.fetches.replace("resp_", "")))
        watch.accuse(
          "bytes",
          `${arrival.send} fetches ${arrival.fetches}, which the upstream never created.`,
        );
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
        this.#outlet.send(piece.length <= room ? piece : piece.subarray(0, Math.max(0, room)));
        sent += piece.length;
        if (sent > cutAt) {
          this.#cut(arrival, answer);
          return;
        }
        if (index === pieces.length) this.#outlet.noteLast(arrival);
        if (answer.paceMs > 0) {
          this.#outlet.after(answer.paceMs, next);
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
    if (how === "fin") this.#outlet.whenSent(() => this.#outlet.close("fin"));
    else this.#outlet.close("rst");
  }

  #finish(arrival: Arrival, answer: AnswerPlan): void {
    this.#outlet.whenSent(() => {
      if (answer.missing > 0) return;
      arrival.sent = true;
      const closes = answer.closes || answer.framing === "close";
      this.#done(arrival, closes);
      if (answer.unasked !== null && !closes) {
        this.#outlet.after(answer.unasked.delayMs, () => {
          if (this.#busy || this.#outlet.isGone || this.#upstream.watch.healed()) return;
          this.#tainted = true;
          this.#upstream.watch.noteUnasked();
          const text = `unasked of ${markOf(arrival)}`;
          this.#outlet.send(
            Buffer.from(
              `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
            ),
          );
        });
      }
    });
  }

  #done(arrival: Arrival, closes: boolean): void {
    this.#answered = this.#outlet.total;
    arrival.endedAt = Math.min(arrival.endedAt, this.#upstream.scheduler.now);
    if (closes) {
      this.#outlet.whenSent(() => this.#outlet.close("fin"));
      return;
    }
    this.#busy = false;
    const { idleCloseMs, idleClose } = this.#upstream.plan;
    const served = ++this.#served;
    // A request that meets such an end on its way fails, and must. So there are no such ends at the end of a run.
    if (idleCloseMs > 0 && !this.#upstream.watch.healed()) {
      this.#outlet.after(idleCloseMs, () => {
        if (served === this.#served) this.closeIfIdle(idleClose);
      });
    }
    this.#read();
  }
}

function decode(body: Buffer, coding: string | undefined): Buffer {
  if (coding === "gzip") return gunzipSync(body);
  return coding === "zstd" ? zstdDecompressSync(body) : body;
}

/** A forbidden body that looks like the answer to the next request. */
function writeSmuggled(mark: string): AnswerText {
  const body = JSON.stringify({ smuggled: mark });
  const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  return { type: "application/json", pieces: [head + body] };
}

function wireOf(target: string): Wire {
  if (target.includes("/v1beta/")) return "content";
  return target.startsWith("/v1/messages") ? "messages" : "responses";
}

function describeCut({ cut }: AnswerPlan): string {
  return cut === null ? "" : `, ${cut.how} at ${cut.atPerMille} per mille`;
}

// The best compression takes a hundred times as long.
const QUICK = { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } };
const ENCODE = {
  gzip: gzipSync,
  br: (bytes: Buffer) => brotliCompressSync(bytes, QUICK),
  zstd: zstdCompressSync,
};

function frame(type: string, body: readonly Buffer[], answer: AnswerPlan, plan: ChannelPlan): Buffer[] {
  const { coding, status, interim } = answer;
  const pieces = coding === null ? body : [ENCODE[coding](Buffer.concat([...body]))];
  // A response without a body has one anyway, and announces its length.
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
