// The bytes that the benchmark sends: requests of a messages client, and the answers to them.

import { answerJson, answerStream, type Answer } from "../../src/demo/answer.ts";
import { messages } from "../../src/demo/messages.ts";
import { listSteps, writeScript } from "../../src/demo/script.ts";
import { composeTurn, type Ask } from "../../src/demo/turn.ts";

/** What the upstream is to do. It stands in the prompt, where every gateway passes it on. */
export const KINDS = ["json", "flood", "paced", "slow", "halves"] as const;
export type Kind = (typeof KINDS)[number];

export const MARK = "bench:";
/** Between two events of a stream. */
export const PACE_MS = { paced: 20, slow: 1000, halves: 2 } as const;
/** An event's time of sending in microseconds, by the machine's monotonic clock. */
export const STAMP_DIGITS = 16;
export const NO_STAMP = "0".repeat(STAMP_DIGITS);

export interface RequestOptions {
  readonly kind: Kind;
  readonly port: number;
  readonly path: string;
  readonly fields: Readonly<Record<string, string>>;
  readonly model: string;
  /** Of the body, about. */
  readonly bytes: number;
}

export function writeRequest({ kind, port, path, fields, model, bytes }: RequestOptions): Buffer {
  const prompt = `${MARK}${kind} ${"all work and no play makes jack a dull boy ".repeat(bytes / 43 + 1)}`;
  const body = JSON.stringify({
    model,
    max_tokens: 1024,
    stream: kind !== "json",
    messages: [
      { role: "user", content: [{ type: "text", text: prompt.slice(0, Math.max(16, bytes - 140)) }] },
    ],
  });
  const head = Object.entries({
    host: `127.0.0.1:${port}`,
    accept: "application/json",
    "user-agent": "bench/1",
    "anthropic-version": "2023-06-01",
    ...fields,
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(body)),
  });
  const lines = head.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines}\r\n${body}`);
}

const ASK: Ask = {
  model: "claude-haiku-4-5",
  stream: true,
  prompt: "Measure",
  toolResult: null,
  tools: [],
  choice: "none",
  schema: undefined,
  thinks: false,
  maxTokens: Infinity,
  inputTokens: 100,
  cachePoints: [],
};

function compose(words: number) {
  return composeTurn(ASK, { next: () => 1, cached: new Set<string>() }, words);
}

function frame(answer: Answer): Uint8Array[] {
  return listSteps(writeScript(answer, {})).filter((step) => step instanceof Uint8Array);
}

const BODY = { model: ASK.model };

/** About 1 KB of body. */
export function writeJsonAnswer(): Uint8Array {
  const reply = messages.writeReply({ ...compose(1), text: ["x".repeat(700)] }, BODY);
  return Buffer.concat(frame(answerJson("messages", reply)));
}

/** A stream with so many text events, an item a chunk; the head is with the first. `stamped`: room for a time in each of them. */
export function writeStreamAnswer(words: number, stamped: boolean): Uint8Array[] {
  const composed = compose(words);
  const turn = stamped ? { ...composed, text: composed.text.map(() => NO_STAMP) } : composed;
  const [head = Buffer.alloc(0), first = Buffer.alloc(0), ...rest] = frame(
    answerStream("messages", messages.writeEvents(turn, BODY)),
  );
  return [Buffer.concat([head, first]), ...rest];
}
