// A conversation → a request for a messages upstream.
// Messages come last, for caches.

import type {
  ContentPart,
  Conversation,
  Destination,
  Options,
  Result,
  Tool,
} from "../neutral/conversation.ts";
import { leaveOut, settleOptions, writeMembers, type Writing } from "../neutral/fields.ts";
import { describeFunction, nameCall, nameTool, parseArguments } from "../neutral/tools.ts";
import { type Json, refuseField } from "../neutral/notes.ts";
import {
  arrangeForUser,
  type ModelItem,
  remind,
  type Turn,
  ifAny,
  limitOption,
  joinTexts,
  keepAllowed,
  readDataUrl,
} from "../neutral/write-request.ts";
import {
  BUDGETS,
  findOutputCap,
  MOST_CLAUDE_TEMPERATURE,
  refusesBothSamplings,
  refusesSampling,
  thinksAdaptively,
} from "../provider-rules.ts";
import { MESSAGES_FIELDS } from "./fields.ts";

const DEFAULT_CAP = 32_000;
const MIN_BUDGET = 1024;
const MARK = { type: "ephemeral" };
/** The provider takes four marks: tools, system, and these two. */
const MARKED_TURNS = 2;

export function writeMessagesRequest(conversation: Conversation, to: Destination): Json {
  const tools = keepAllowed(conversation.tools, conversation.options.choice);
  const options = settleOptions(conversation, tools, MESSAGES_FIELDS);
  const { system, turns } = arrangeForUser(conversation);
  const messages = turns.map(writeTurn);
  for (const message of messages.filter(({ role }) => role === "user").slice(-MARKED_TURNS))
    markLast(message["content"]);
  const instructions = system.flatMap(({ parts }) => parts.map(writePart));
  markLast(instructions);
  const thinking = limitOptions(conversation, options, to.model);
  const writing = { conversation, options, to };
  const written = tools.map((tool) => writeTool(tool, writing));
  markLast(written);
  return {
    model: to.model,
    ...writeMembers(MESSAGES_FIELDS, "", options, writing),
    ...thinking,
    stream: conversation.stream,
    metadata: to.session === null ? undefined : { user_id: to.session },
    tools: ifAny(written),
    system: ifAny(instructions),
    messages,
  };
}

/** Without marks for the cache, every turn would pay the full price. */
function markLast(content: unknown): void {
  const last: unknown = Array.isArray(content) ? content.at(-1) : undefined;
  if (typeof last === "object" && last !== null) Object.assign(last, { cache_control: MARK });
}

// Options.

function limitOptions(conversation: Conversation, options: Options, model: string): Json {
  const most = findOutputCap(model);
  limitOption(conversation, options, "cap", most);
  options.cap ??= most ?? DEFAULT_CAP;
  if (options.parallel === false) options.choice ??= { kind: "auto" };
  const thinking = writeThinking(conversation, options, { model, cap: options.cap });
  limitOption(conversation, options, "temperature", MOST_CLAUDE_TEMPERATURE);
  if (options.temperature === 1) delete options.temperature;
  if (options.temperature !== undefined && refusesBothSamplings(model))
    leaveOut(conversation, options, "top_p");
  if (refusesSampling(model) || thinking["thinking"] !== undefined)
    leaveOut(conversation, options, "temperature", "top_p", "top_k");
  return thinking;
}

/** A forced call excludes thinking. Older models need a thought before each call. */
function writeThinking(
  { notes, items }: Conversation,
  { effort = "none", choice }: Options,
  { model, cap }: { readonly model: string; readonly cap: number },
): Json {
  if (effort === "none") return {};
  const note = (): Json => {
    notes.addOption("effort");
    return {};
  };
  const isForced = choice?.kind === "any" || choice?.kind === "tool";
  if (isForced) return note();
  if (thinksAdaptively(model)) return { thinking: { type: "adaptive", display: "summarized" } };
  if (cap <= MIN_BUDGET || /claude-3-(?:5|opus|haiku|sonnet)/.test(model) || losesThoughts(items))
    return note();
  const budget = Math.max(MIN_BUDGET, Math.min(BUDGETS[effort], Math.floor(cap / 2)));
  return { thinking: { type: "enabled", budget_tokens: budget } };
}

function losesThoughts(items: Conversation["items"]): boolean {
  const result = items.findLastIndex(({ type }) => type === "result");
  const said = items.findLastIndex((item) => item.type === "message" && item.role === "user");
  if (result < 0 || said > result) return false;
  const begin = items.findLastIndex(
    (item, at) => at < result && item.type === "message" && item.role === "user",
  );
  return !items.slice(begin + 1, result).some((item) => item.type === "reasoning" && item.seal !== null);
}

// Tools.

function writeTool(tool: Tool, writing: Writing): Json {
  const kind = { type: "web_search_20250305", name: "web_search" };
  if (tool.kind === "search")
    return { ...kind, ...writeMembers(MESSAGES_FIELDS, "tools[]", tool.settings, writing) };
  return writeMembers(MESSAGES_FIELDS, "tools[]", describeFunction(tool, "messages"), writing);
}

// Messages.

function writeTurn(turn: Turn): Json {
  if (turn.side === "model") return { role: "assistant", content: turn.items.flatMap(writeModelItem) };
  const said = turn.messages.flatMap(({ role, parts }) =>
    role === "system" ? [{ type: "text", text: remind(joinTexts(parts)) }] : parts.map(writePart),
  );
  return { role: "user", content: [...turn.results.map(writeResult), ...said] };
}

function writeModelItem(item: ModelItem): Json[] {
  if (item.type === "reasoning") {
    const { type } = item.seal ?? {};
    return item.seal !== null && (type === "thinking" || type === "redacted_thinking") ? [item.seal] : [];
  }
  if (item.type === "message") return item.parts.map(writePart);
  const id = nameCall(item.id, "messages");
  return [{ type: "tool_use", id, name: nameTool(item.name, "messages"), input: parseArguments(item) }];
}

function writeResult({ id, parts, failed }: Result): Json {
  const [part] = parts;
  const content = parts.length === 1 && part?.kind === "text" ? part.text : parts.map(writePart);
  return {
    type: "tool_result",
    tool_use_id: nameCall(id, "messages"),
    content: parts.length === 0 ? undefined : content,
    is_error: failed || undefined,
  };
}

const PDF = "application/pdf";

function writePart(part: ContentPart): Json {
  if (part.kind === "text") return { type: "text", text: part.text };
  const data = readDataUrl(part.url);
  const title = part.name ?? undefined;
  if (data === null) {
    const source = { type: "url", url: part.url };
    return part.kind === "image" ? { type: "image", source } : { type: "document", source, title };
  }
  const source = { type: "base64", media_type: data.type, data: data.data };
  if (part.kind === "image") return { type: "image", source };
  if (data.type === PDF) return { type: "document", source, title };
  if (!data.type.startsWith("text/"))
    refuseField(part.at, "the channels of this group take no files of this kind.");
  const text = Buffer.from(data.data, "base64").toString();
  return { type: "document", source: { type: "text", media_type: "text/plain", data: text }, title };
}
