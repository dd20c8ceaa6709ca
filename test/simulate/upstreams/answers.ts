// Writes the answers of upstreams in each dialect, small and exact. Every word names the request, the send and the attempt that
// it answers, so that no byte can be mistaken for one of another answer. The usage is known.

import type { Dialect } from "../plan/plan.ts";

export interface Counts {
  readonly input: number;
  readonly cacheRead: number;
  readonly output: number;
}

export interface AnswerText {
  readonly type: string;
  /** One piece for each event. A body without events is one piece. */
  readonly pieces: readonly string[];
}

export interface Question {
  readonly wire: Dialect;
  readonly stream: boolean;
  /** c3r2s0a1: client 3, its request 2, send 0 of it, attempt 1. */
  readonly mark: string;
  readonly model: string;
  readonly counts: Counts;
  /** After this many words the stream reports an error; null: it does not. */
  readonly failsAfter: number | null;
}

/** Finds the marks in a text. A random id may contain the same characters, so no letter or digit may touch a
 *  mark. Only the number of a word (`w5`) may follow it. */
export function listMarks(text: string): string[] {
  return [...text.matchAll(/(?<![0-9a-z])c\d+r\d+s\d+a\d+(?=w\d|[^0-9a-z]|$)/g)].map(([mark]) => mark);
}

export function writeAnswer(question: Question): AnswerText {
  return question.wire === "messages" ? writeMessages(question) : writeContent(question);
}

function wordsOf({ mark, counts }: Question): string[] {
  const shown = Math.min(40, counts.output);
  return Array.from({ length: shown }, (_, index) => `${mark}w${index} `);
}

function named(event: { type: string; [key: string]: unknown }): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function json(body: unknown): AnswerText {
  return { type: "application/json", pieces: [JSON.stringify(body)] };
}

function writeMessages(question: Question): AnswerText {
  const { mark, model, counts, stream, failsAfter } = question;
  const words = wordsOf(question);
  const usage = {
    input_tokens: counts.input,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: counts.cacheRead,
    output_tokens: counts.output,
    service_tier: "standard",
  };
  const message = { id: `msg_${mark}`, type: "message", role: "assistant", model };
  if (!stream) {
    const content = [{ type: "text", text: words.join("") }];
    return json({
      ...message,
      content,
      stop_reason: "end_turn",
      stop_sequence: null,
      usage,
    });
  }
  const start = {
    ...message,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { ...usage, output_tokens: 1 },
  };
  const deltas = words.map((text) =>
    named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  );
  const begun = [
    named({ type: "message_start", message: start }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
  ];
  const error = named({ type: "error", error: { type: "overloaded_error", message: `Overloaded ${mark}` } });
  const pieces =
    failsAfter === null
      ? [
          ...begun,
          ...deltas,
          named({ type: "content_block_stop", index: 0 }),
          named({
            type: "message_delta",
            delta: { stop_reason: "end_turn", stop_sequence: null },
            usage: {
              input_tokens: counts.input,
              cache_creation_input_tokens: 0,
              cache_read_input_tokens: counts.cacheRead,
              output_tokens: counts.output,
            },
          }),
          named({ type: "message_stop" }),
        ]
      : [...(failsAfter === 0 ? [] : begun), ...deltas.slice(0, failsAfter), error];
  return { type: "text/event-stream; charset=utf-8", pieces };
}

function writeContent(question: Question): AnswerText {
  const { mark, model, counts, stream, failsAfter } = question;
  const words = wordsOf(question);
  const prompt = counts.input + counts.cacheRead;
  const usage = (output: number): object => ({
    promptTokenCount: prompt,
    ...(counts.cacheRead > 0 ? { cachedContentTokenCount: counts.cacheRead } : {}),
    ...(output > 0 ? { candidatesTokenCount: output } : {}),
    totalTokenCount: prompt + output,
  });
  const chunk = (text: string, output: number, finishReason?: string): object => ({
    candidates: [
      {
        content: { parts: [{ text }], role: "model" },
        ...(finishReason === undefined ? {} : { finishReason }),
        index: 0,
      },
    ],
    usageMetadata: usage(output),
    modelVersion: model,
    responseId: mark,
  });
  if (!stream) return json(chunk(words.join(""), counts.output, "STOP"));
  const write = (body: object): string => `data: ${JSON.stringify(body)}\r\n\r\n`;
  const chunks = words.map((word, index) => write(chunk(word, index + 1)));
  const error = write({ error: { code: 503, message: `Overloaded ${mark}`, status: "UNAVAILABLE" } });
  const pieces =
    failsAfter === null
      ? [...chunks, write(chunk("", counts.output, "STOP"))]
      : [...chunks.slice(0, failsAfter), error];
  return { type: "text/event-stream", pieces };
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: "invalid_request_error",
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  429: "rate_limit_error",
  500: "api_error",
  503: "api_error",
  529: "overloaded_error",
};

/** An error in the form of the dialect. Some upstreams quote the `secret`. */
export function writeError(wire: Dialect, status: number, mark: string, secret: string): AnswerText {
  const message = `Refused ${mark} for ${secret}`;
  if (wire === "content") return json({ error: { code: status, message, status: "UNAVAILABLE" } });
  return json({ type: "error", error: { type: ERROR_TYPES[status] ?? "api_error", message } });
}
