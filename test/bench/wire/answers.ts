// The bytes of the upstream's answers, in each shape, as the tests' upstream writes them.

import { answerJson, answerStream, type Answer } from "../../harness/model/answers/answer.ts";
import { chat } from "../../harness/model/answers/chat.ts";
import type { Family } from "../../harness/model/answers/family.ts";
import { messages } from "../../harness/model/answers/messages.ts";
import { responses } from "../../harness/model/answers/responses.ts";
import { listSteps, planSteps } from "../../harness/model/script.ts";
import { composeCompletion, type ModelRequest } from "../../harness/model/answers/completion.ts";
import { NO_STAMP, type Shape } from "./requests.ts";

const FAMILIES: Readonly<Record<Shape, Family>> = { messages, responses, chat };
const MODELS: Readonly<Record<Shape, string>> = {
  messages: "claude-haiku-4-5",
  responses: "gpt-5-mini",
  chat: "gpt-5-mini",
};

function compose(shape: Shape, words: number) {
  const ask: ModelRequest = {
    model: MODELS[shape],
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
  return composeCompletion(ask, { next: () => 1, cached: new Set<string>() }, words);
}

function frame(answer: Answer): Uint8Array[] {
  return listSteps(planSteps(answer, {})).filter((step) => step instanceof Uint8Array);
}

/** About 1 KB of body. */
export function writeJsonAnswer(shape: Shape): Uint8Array {
  const turn = { ...compose(shape, 1), text: ["x".repeat(700)] };
  const reply = FAMILIES[shape].writeReply(turn, { model: MODELS[shape] });
  return Buffer.concat(frame(answerJson(shape, reply)));
}

/** Server-sent events, a number of them with text. `stamped`: with room for a time in each of these. */
function writeEvents(shape: Shape, words: number, stamped: boolean): string[] {
  const composed = compose(shape, words);
  const turn = stamped ? { ...composed, text: composed.text.map(() => NO_STAMP) } : composed;
  const body = { model: MODELS[shape], stream_options: { include_usage: true } };
  const events = FAMILIES[shape].writeEvents(turn, body);
  return shape === "responses" ? events.map(lengthen) : events;
}

/** Ids of the platform's length, and the padding that it puts into each event with text. */
function lengthen(event: string): string {
  return event
    .replaceAll("_demo", "_0ac6a4d9e19151d50169fb7cb658288193b9300f")
    .replace(/^(event: response\.output_text\.delta\n.*"logprobs":\[\])/s, '$1,"obfuscation":"u7Rk2mQx"');
}

/** The stream in pieces of one event each; the head is in the first piece. */
export function writeStreamAnswer(
  shape: Shape,
  words: number,
  stamped: boolean,
  edit: (event: string) => string = (event) => event,
): Uint8Array[] {
  const [head = Buffer.alloc(0), first = Buffer.alloc(0), ...rest] = frame(
    answerStream(shape, writeEvents(shape, words, stamped).map(edit)),
  );
  return [Buffer.concat([head, first]), ...rest];
}
