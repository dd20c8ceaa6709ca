// A whole Responses reply → chat.completion.

import { isObject } from "../../../lib/json/json.ts";
import { type Answer, type Call, readAnswer } from "./tool-call.ts";
import type { Identity } from "./chunks.ts";
import type { BridgeContext } from "../context.ts";
import { blameUpstream, judgeFailure, type Refusal, writeError } from "../errors.ts";
import { Failure, type Moderation, Reply } from "./events.ts";
import { convertUsage, nameFinish } from "./finish-reason.ts";
import type { Json } from "../json.ts";

/** What the client gets: 200 and a completion, or the error that the reply turned out to be. */
export function convertReply(value: unknown, context: BridgeContext): { status: number; body: string } {
  const refusal = findFailure(value, context);
  if (refusal !== null) return { status: refusal.status, body: writeError(refusal.error) };
  return { status: 200, body: JSON.stringify(complete(Reply.parse(value), context)) };
}

/** Where an unfinished or failed reply would otherwise pass for an empty answer. */
function findFailure(value: unknown, context: BridgeContext): Refusal | null {
  if (!isObject(value))
    return blameUpstream(502, "upstream_invalid", "The upstream's answer is not a response.");
  const { status, error, output } = value;
  if (status === "failed" || (isObject(error) && status !== "completed" && status !== "incomplete")) {
    return judgeFailure(Failure.parse(isObject(error) ? error : {}), context);
  }
  if (status === "cancelled" || status === "queued" || status === "in_progress") {
    return blameUpstream(500, "server_error", `The upstream's response is ${status}.`);
  }
  if (!Array.isArray(output))
    return blameUpstream(502, "upstream_invalid", "The upstream's answer has no output.");
  return null;
}

/** Clients tell answers apart by their ids, so each has one. */
export function identityOf(
  { id, created_at: createdAt, model }: Pick<Reply, "id" | "created_at" | "model">,
  { asked, model: wanted }: BridgeContext,
): Omit<Identity, "tier"> {
  return {
    id: `chatcmpl-${(id || asked.id).replace(/^(?:resp|req)_/, "")}`,
    created: Math.floor(createdAt || asked.time / 1000),
    model: model || wanted,
  };
}

function complete(reply: Reply, context: BridgeContext): Json {
  const answer = readAnswer(reply.output, context);
  const finish = nameFinish(reply, answer.calls.length > 0, context);
  const logprobs = context.logprobs ? { content: answer.logprobs, refusal: null } : null;
  const { id, created, model } = identityOf(reply, context);
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

/** What only a request that asked for it gets back. */
export function writeExtras(reply: Reply): Json {
  const { metadata, moderation } = reply;
  return {
    ...(metadata === null || Object.keys(metadata).length === 0 ? {} : { metadata }),
    ...(moderation === null ? {} : { moderation: convertModeration(moderation) }),
  };
}

function writeMessage(answer: Answer, context: BridgeContext): Json {
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

function writeCalls(calls: readonly Call[], context: BridgeContext): Json {
  const [first] = calls;
  if (first === undefined) return {};
  if (context.legacy) return { function_call: { name: first.name, arguments: first.input } };
  return { tool_calls: calls.map((call) => ({ id: call.id, type: call.kind, ...writeCall(call) })) };
}

export function writeCall({ kind, name, input }: Pick<Call, "kind" | "name" | "input">): Json {
  return kind === "function" ? { function: { name, arguments: input } } : { custom: { name, input } };
}

/** Chat lists its results, and names them in the plural. */
function convertModeration({ input, output }: NonNullable<Moderation>): Json {
  return { input: convertVerdict(input), output: convertVerdict(output) };
}

function convertVerdict(verdict: NonNullable<Moderation>["input"]): Json | null {
  if (verdict?.type !== "moderation_result") return verdict;
  return { type: "moderation_results", model: verdict["model"], results: [verdict] };
}
