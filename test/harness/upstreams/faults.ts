// The ways in which an upstream can fail, by name. A fault changes either the answer before it is framed, or the steps on
// the wire.

import { gzipSync } from "node:zlib";
import { encode, replaceFields, type Answer } from "../model/answers/answer.ts";
import { isObject, parseJson } from "../../../src/lib/json/json.ts";
import type { Json } from "../model/json.ts";
import { writeError } from "../model/answers/errors.ts";
import { type FamilyName, writeNamedEvent } from "../model/answers/family.ts";
import { type Fault, readFault } from "../model/control.ts";
import { countBytes, cutHalf, listSteps, writeHead, type WirePlan, type Step } from "../model/script.ts";

const HUGE_BYTES = 64 * 1024 * 1024;
const HUGE_PIECE = 64 * 1024;

/** The events that end a broken stream of each family. */
const BREAKS: Readonly<Record<FamilyName, readonly string[]>> = {
  messages: [writeNamedEvent({ type: "error", ...writeError("messages", 529) })],
  chat: [`data: ${JSON.stringify(writeError("chat", 503))}\n\n`],
  content: [JSON.stringify(writeError("content", 503))],
  responses: [
    writeNamedEvent({ type: "error", sequence_number: 1000, ...writeError("responses", 503) }),
    writeNamedEvent({
      type: "response.failed",
      sequence_number: 1001,
      response: {
        id: "resp_demo",
        object: "response",
        status: "failed",
        error: { code: "server_error", message: "The model failed." },
        output: [],
        usage: null,
      },
    }),
  ],
};

/** Faults of the answer. The HTTP framing is correct. */
const ANSWER_FAULTS = {
  html: (answer) => ({
    ...replaceFields(answer, [["content-type", "text/html"]]),
    status: 502,
    framing: "length",
    pieces: [encode("<html><body><h1>502 Bad Gateway</h1></body></html>")],
  }),
  "not-json": (answer) => ({ ...answer, framing: "length", pieces: [encode("{ this is not JSON")] }),
  empty: (answer) => ({ ...answer, pieces: [] }),
  /** Status 200, but the first event is an error. */
  "error-first": (answer) => ({ ...answer, pieces: BREAKS[answer.family].map(encode) }),
  "error-event": (answer) => ({
    ...answer,
    pieces: [...answer.pieces.slice(0, half(answer.pieces)), ...BREAKS[answer.family].map(encode)],
  }),
  /** A clean end after half of the answer. */
  truncated: (answer) => ({ ...answer, pieces: answer.pieces.slice(0, half(answer.pieces)) }),
  /** A clean end, but without the terminal event. */
  "no-terminal": (answer) => ({ ...answer, pieces: answer.pieces.slice(0, -1) }),
  "no-usage": (answer) => mapUsage(answer, () => undefined),
  "zero-usage": (answer) => mapUsage(answer, zero),
  /** Compressed, although the request asked for identity. */
  gzip: (answer) => ({
    ...replaceFields(answer, [["content-encoding", "gzip"]]),
    pieces: [gzipSync(Buffer.concat(answer.pieces))],
  }),
  /** Complete, but only the end of the connection ends it. */
  "close-delimited": (answer) => ({ ...answer, framing: "close" }),
  redirect: (answer) => ({ ...replaceFields(answer, [["location", "https://example.com/"]]), status: 307 }),
} as const satisfies Readonly<Record<string, (answer: Answer) => Answer>>;

/** Faults on the wire. */
const WIRE_FAULTS = {
  "never-answer": () => ["stall"],
  "reset-before-head": () => ["reset"],
  "close-before-head": () => ["fin"],
  "reset-in-head": ({ head }) => [head.subarray(0, head.length >> 1), "reset"],
  "close-in-head": ({ head }) => [head.subarray(0, head.length >> 1), "fin"],
  "silent-after-head": ({ head }) => [head, "stall"],
  "reset-after-head": ({ head }) => [head, "reset"],
  "reset-mid-stream": ({ head, body }) => [head, ...cutHalf(body), "reset"],
  "reset-mid-chunk": ({ head, body }) => [head, ...insideChunk(body), "reset"],
  "close-mid-chunk": ({ head, body }) => [head, ...insideChunk(body), "fin"],
  /** The connection ends without the last chunk, or before the announced length. */
  "close-mid-stream": ({ head, body }) => [head, ...cutHalf(body), "fin"],
  /** An announced length that is never reached. */
  "short-length": ({ answer }) => [
    writeHead(answer, [["content-length", String(countBytes(answer) + 100)]]),
    ...answer.pieces,
    "fin",
  ],
  /** Half an answer that looks complete, because only the end of the connection ends it. */
  "close-delimited-cut": ({ answer }) => [
    writeHead(answer, [["connection", "close"]]),
    ...cutHalf(answer.pieces),
    "fin",
  ],
  dribble: (plan) => listSteps(plan).flatMap(dribble),
  "early-hints": (plan) => [
    encode("HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n"),
    ...listSteps(plan),
  ],
  /** Complete, but the connection ends right after it without an announcement. */
  "close-after": (plan) => [...listSteps(plan), "close"],
  "reset-after": (plan) => [...listSteps(plan), "reset"],
  "extra-bytes": (plan) => [...listSteps(plan), encode("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged")],
  garbage: () => [encode("SSH-2.0-OpenSSH_9.6\r\n\r\n"), "stall"],
  "bad-chunk": ({ head, body }) => [head, ...cutHalf(body), encode("zz\r\nnot a chunk\r\n"), "stall"],
  "bad-length": ({ answer }) => [writeHead(answer, [["content-length", "-1"]]), ...answer.pieces, "fin"],
  "two-framings": ({ answer, body, tail }) => [
    writeHead(answer, [
      ["content-length", "5"],
      ["transfer-encoding", "chunked"],
    ]),
    ...body,
    ...tail,
  ],
  "endless-head": () => [encode("HTTP/1.1 200 OK\r\n"), ...Array.from({ length: 64 }, endlessField), "stall"],
  /** 64 MB, as fast as the peer reads. */
  huge: ({ answer }) => writeHuge(answer),
} as const satisfies Readonly<Record<string, (plan: WirePlan) => Iterable<Step>>>;

export type FaultName = keyof typeof ANSWER_FAULTS | keyof typeof WIRE_FAULTS | "stall" | `status-${number}`;

const answerFaults: Readonly<Record<string, (answer: Answer) => Answer>> = ANSWER_FAULTS;
const wireFaults: Readonly<Record<string, (plan: WirePlan) => Iterable<Step>>> = WIRE_FAULTS;

export function faultOf(name: FaultName): Fault {
  const [alter, cut] = [answerFaults[name], wireFaults[name]];
  return readFault(name) ?? { ...(alter && { alter }), ...(cut && { cut }) };
}

function half(list: readonly unknown[]): number {
  return Math.ceil(list.length / 2);
}

function insideChunk(steps: readonly Step[]): readonly Step[] {
  const kept = steps.slice(0, half(steps));
  const last = kept.findLastIndex((step) => step instanceof Uint8Array);
  return kept.map((step, index) =>
    index === last && step instanceof Uint8Array ? step.subarray(0, step.length - 7) : step,
  );
}

function dribble(step: Step): Step[] {
  return step instanceof Uint8Array ? Array.from(step, (byte) => Uint8Array.of(byte)) : [step];
}

function endlessField(_: unknown, index: number): Uint8Array {
  return encode(`x-padding-${index}: ${"x".repeat(16 * 1024)}\r\n`);
}

function* writeHuge(answer: Answer): Generator<Step> {
  yield writeHead(answer, [["content-length", String(HUGE_BYTES)]]);
  const streamed = answer.framing === "chunked";
  const line = streamed ? `: ${"x".repeat(HUGE_PIECE - 4)}\n\n` : " ".repeat(HUGE_PIECE);
  const piece = encode(line);
  for (let sent = 0; sent < HUGE_BYTES; sent += HUGE_PIECE) yield piece;
}

function mapUsage(answer: Answer, change: (usage: Json) => unknown): Answer {
  const pieces = answer.pieces.map((piece) => {
    const text = new TextDecoder().decode(piece);
    const [, before = "", json = "", after = ""] = /^([^{]*)(\{.*\})(\s*)$/s.exec(text) ?? [];
    const value = parseJson(json);
    return isObject(value) ? encode(`${before}${JSON.stringify(changeUsage(value, change))}${after}`) : piece;
  });
  return { ...answer, pieces };
}

function changeUsage(value: Json, change: (usage: Json) => unknown): Json {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (!isObject(inner)) return [key, inner];
      return [key, key === "usage" || key === "usageMetadata" ? change(inner) : changeUsage(inner, change)];
    }),
  );
}

function zero(usage: Json): Json {
  return Object.fromEntries(
    Object.entries(usage).map(([key, value]) => [
      key,
      typeof value === "number" ? 0 : isObject(value) ? zero(value) : value,
    ]),
  );
}
