// Requests and answers in each of the four dialects. The folder answers/ has their texts. Each answer exists
// in one piece and as a stream. All answers say "Hello world", call a tool, and have the same counts.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Fields, Script } from "./wire.ts";

export const DIALECTS = ["messages", "responses", "chat", "content"] as const;
export type Dialect = (typeof DIALECTS)[number];

export const JSON_TYPE: Fields = [["content-type", "application/json"]];
export const SSE_TYPE: Fields = [["content-type", "text/event-stream"]];

export const MODELS: Readonly<Record<Dialect, string>> = {
  messages: "claude-haiku-4-5",
  responses: "gpt-5.4",
  chat: "gpt-5-mini",
  content: "gemini-2.5-flash",
};

export const json = (value: object): Script => ({ fields: JSON_TYPE, pieces: [JSON.stringify(value)] });

// oxlint-disable-next-line typescript/no-explicit-any -- JSON of four kinds
type Any = any;

const LINES: [Dialect, string, Any][] = readFileSync(join(import.meta.dir, "answers/answers.jsonl"), "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line));

const read = (dialect: Dialect, what: string): Any[] =>
  LINES.filter(([each, name]) => each === dialect && name === what).map(([, , value]) => value);

/** A request with a system prompt and a tool. `more` goes into its body. */
export function request(
  dialect: Dialect,
  stream: boolean,
  more: object = {},
): { target: string; body: object } {
  const isPath = dialect === "content";
  const body = { ...read(dialect, "request")[0], ...(stream && !isPath ? { stream } : {}), ...more };
  const verb = stream ? "streamGenerateContent?alt=sse" : "generateContent";
  const paths = { messages: "messages", responses: "responses", chat: "chat/completions", content: "" };
  return { target: isPath ? `/v1beta/models/${MODELS.content}:${verb}` : `/v1/${paths[dialect]}`, body };
}

export function events(dialect: Dialect, model: string = MODELS[dialect]): string[] {
  return read(dialect, "event").map((event: string) => event.replaceAll(MODELS[dialect], model));
}

/** Returns the answer of `events` as one document. */
export function answer(dialect: Dialect, model: string = MODELS[dialect]): Any {
  return { ...read(dialect, "answer")[0], [dialect === "content" ? "modelVersion" : "model"]: model };
}

export function answered(dialect: Dialect, stream: boolean, model?: string): Script {
  return stream
    ? { fields: SSE_TYPE, pieces: events(dialect, model) }
    : { fields: JSON_TYPE, pieces: [JSON.stringify(answer(dialect, model))], framing: "length" };
}

/** An error of this dialect's upstreams. An error 422 has, wrongly, the type of a server's fault. */
export function failure(dialect: Dialect, status: number, message = "as scripted"): Script {
  const body = read(dialect, "failure")[0];
  const isServers = status >= 500 || status === 422;
  const type = status === 429 ? "rate_limit_error" : "invalid_request_error";
  const word = status === 429 ? "RESOURCE_EXHAUSTED" : "INVALID_ARGUMENT";
  const named = dialect === "content" ? { code: status, status: word } : { type };
  const error = { ...body.error, message, ...(isServers ? {} : named) };
  return { ...json({ ...body, error }), status, framing: "length" };
}

/** Returns an error as an event of a stream. */
export const errorEvent = (dialect: Dialect): string => read(dialect, "errorEvent")[0];

/** Returns a channel's answer to a request for its models at this path. */
export const listModels = (target: string): Script =>
  json(read(target.includes("/v1beta/") ? "content" : "messages", "list")[0]);
