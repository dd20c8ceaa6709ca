// A whole Responses reply → chat.completion.

import { isObject } from "../../../lib/json/json.ts";
import { type ChatAnswer, type ToolCall, readAnswer } from "./chat-answer.ts";
import type { BridgeContext } from "../context.ts";
import { blameUpstream, convertFailure, type ChatError, writeError } from "../errors.ts";
import { ReplyError, type Moderation, Reply } from "./events.ts";
import { convertUsage, chooseFinishReason } from "./finish-reason.ts";
import type { Json } from "../../common/strict-json.ts";

/** 200 and a completion, or an error if the reply is one. */
export function convertReply(value: unknown, context: BridgeContext): { status: number; body: string } {
  const refusal = findError(value, context);
  if (refusal !== null) return { status: refusal.status, body: writeError(refusal.error) };
  return { status: 200, body: JSON.stringify(complete(Reply.parse(value), context)) };
}

/** Without this, an unfinished or failed reply would look like an empty answer. */
function findError(value: unknown, context: BridgeContext): ChatError | null {
  if (!isObject(value))
    return blameUpstream(502, "upstream_invalid", "The upstream's answer is not a response.");
  const { status, error, output } = value;
  if (status === "failed" || (isObject(error) && status !== "completed" && status !== "incomplete")) {
    return convertFailure(ReplyError.parse(isObject(error) ? error : {}), context);
  }
  if (status === "cancelled" || status === "queued" || status === "in_progress") {
    return blameUpstream(500, "server_error", `The upstream's response is ${status}.`);
  }
  if (!Array.isArray(output))
    return blameUpstream(502, "upstream_invalid", "The upstream's answer has no output.");
  return null;
}

export interface ReplyIdentity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
}

/** Clients need an id, so every answer gets one. */
export function readIdentity(
  { id, created_at: createdAt, model }: Pick<Reply, "id" | "created_at" | "model">,
  { stamp, model: requested }: BridgeContext,
): ReplyIdentity {
  return {
    id: `chatcmpl-${(id || stamp.id).replace(/^(?:resp|req)_/, "")}`,
    created: Math.floor(createdAt || stamp.time / 1000),
    model: model || requested,
  };
}

function complete(reply: Reply, context: BridgeContext): Json {
  const answer = readAnswer(reply.output, context);
  const finish = chooseFinishReason(reply, answer.calls.length > 0, context);
  const logprobs = context.logprobs ? { content: answer.logprobs, refusal: null } : null;
  const { id, created, model } = readIdentity(reply, context);
  return {
    id,
    object: "chat.completion",
    created,
    model,
    choices: [{ index: 0, message: writeMessage(answer, context), logprobs, finish_reason: finish }],
    ...(reply.usage === null ? {} : { usage: convertUsage(reply.usage) }),
    service_tier: reply.service_tier,
    system_fingerprint: null,
    ...writeExtras(reply),
  };
}

/** Present only if the request asked for them. */
export function writeExtras(reply: Reply): Json {
  const { metadata, moderation } = reply;
  return {
    ...(metadata === null || Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(moderation === null ? {} : { moderation: convertModeration(moderation) }),
  };
}

function writeMessage(answer: ChatAnswer, context: BridgeContext): Json {
  const { text, refusal, reasoning, calls, annotations } = answer;
  const silent = text === "" && (calls.length > 0 || refusal !== null);
  return {
    role: "assistant",
    content: silent ? null : text,
    ...(reasoning === "" ? {} : { reasoning_content: reasoning }),
    ...writeCalls(calls, context),
    refusal,
    annotations,
  };
}

function writeCalls(calls: readonly ToolCall[], context: BridgeContext): Json {
  const [first] = calls;
  if (first === undefined) return {};
  if (context.legacy) return { function_call: { name: first.name, arguments: first.input } };
  return { tool_calls: calls.map((call) => ({ id: call.id, type: call.kind, ...writeCall(call) })) };
}

export function writeCall({ kind, name, input }: Pick<ToolCall, "kind" | "name" | "input">): Json {
  return kind === "function" ? { function: { name, arguments: input } } : { custom: { name, input } };
}

/** Chat has a list of results, and a plural type name. */
function convertModeration({ input, output }: NonNullable<Moderation>): Json {
  return { input: convertVerdict(input), output: convertVerdict(output) };
}

function convertVerdict(verdict: NonNullable<Moderation>["input"]): Json | null {
  if (verdict?.type !== "moderation_result") return verdict;
  return { type: "moderation_results", model: verdict["model"], results: [verdict] };
}
