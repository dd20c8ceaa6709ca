// The ways in which an upstream can fail, by name. A fault changes either the answer before it is framed, or the steps on
// the wire.

import { encode, type Answer } from "../model/answers/answer.ts";
import { isObject, parseJson } from "../../../src/lib/json/json.ts";
import type { Json } from "../model/json.ts";
import { writeError } from "../model/answers/errors.ts";
import { type FamilyName, writeNamedEvent } from "../model/answers/family.ts";
import { type Fault, readFault } from "../model/control.ts";
import { cutHalf, writeHead, type WirePlan, type Step } from "../model/script.ts";

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
  "error-event": (answer) => ({
    ...answer,
    pieces: [...answer.pieces.slice(0, half(answer.pieces)), ...BREAKS[answer.family].map(encode)],
  }),
  "no-usage": (answer) => mapUsage(answer, () => undefined),
  "zero-usage": (answer) => mapUsage(answer, zero),
} as const satisfies Readonly<Record<string, (answer: Answer) => Answer>>;

/** Faults on the wire. */
const WIRE_FAULTS = {
  "never-answer": () => ["stall"],
  "reset-mid-stream": ({ head, body }) => [head, ...cutHalf(body), "reset"],
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
