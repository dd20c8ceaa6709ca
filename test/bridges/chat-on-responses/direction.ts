// Converts Chat Completions for a responses channel, as the gateway does it.

import { type Conversion, convertCall } from "../../../src/bridges/convert.ts";
import type { AnswerStream } from "../../../src/bridges/answer-stream.ts";
import { findQuirks } from "../../../src/bridges/chat/quirks.ts";
import { sumUsage, type Usage } from "../../../src/billing/usage.ts";
import { responses } from "../../../src/dialects/formats/responses.ts";
import { runAtOnce } from "../../../src/lib/time/next-turn.ts";

const ASKED = { id: "req_asked", time: 1_700_000_000_500 };

/** The options of a request that change its answer. */
export interface Wanted {
  readonly model?: string;
  readonly stream?: boolean;
  readonly includeUsage?: boolean;
  readonly legacy?: boolean;
  readonly forced?: boolean;
  readonly json?: boolean;
  readonly logprobs?: boolean;
}

export const PLAIN: Wanted = { model: "some-model", stream: true, includeUsage: true };

export interface Converted {
  readonly body: Uint8Array;
  readonly conversion: Conversion;
}

export function convertRequest(body: Uint8Array, model: string, stream: boolean): Converted {
  const call = convertCall({
    client: "chat",
    body,
    model,
    stream,
    to: { dialect: "responses", model, session: null, quirks: findQuirks("x") },
    stamp: ASKED,
    secret: () => "s",
    isCodex: false,
  });
  return runAtOnce(call);
}

const TOOL = { name: "f", parameters: { type: "object" } };

function ask({
  model = "m",
  stream = true,
  includeUsage,
  legacy,
  forced,
  json,
  logprobs,
}: Wanted): Conversion {
  const request = {
    model,
    stream,
    messages: [{ role: "user", content: "Hello" }],
    ...(stream && { stream_options: { include_usage: includeUsage === true } }),
    ...(legacy === true ? { functions: [TOOL] } : { tools: [{ type: "function", function: TOOL }] }),
    ...(forced === true &&
      (legacy === true ? { function_call: TOOL } : { tool_choice: { type: "function", function: TOOL } })),
    ...(json === true && { response_format: { type: "json_object" } }),
    ...(logprobs === true && { logprobs }),
  };
  return convertRequest(Buffer.from(JSON.stringify(request)), model, stream).conversion;
}

export type ChatStream = Pick<AnswerStream, "push" | "end" | "idle">;

export function openChatStream(wanted: Wanted): ChatStream {
  const meter = responses.openMeter("text/event-stream");
  return ask(wanted).openStream(meter, () => sumUsage(meter.read().parts));
}

export function convertReply(value: unknown, wanted: Wanted): { status: number; body: string } {
  const meter = responses.openMeter("application/json");
  const bytes = Buffer.from(JSON.stringify(value));
  meter.see(bytes);
  const conversion = ask(wanted);
  const count = (): Usage => sumUsage(meter.read().parts);
  return conversion.convertReply(bytes, count);
}
