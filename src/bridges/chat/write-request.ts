// A conversation → a request for a chat server.
// Messages come last, for caches.

import { getList, isObject, lookUp, type Table } from "../../lib/json/json.ts";
import type {
  Call,
  ContentPart,
  Conversation,
  Destination,
  Effort,
  Message,
  Options,
  Result,
  Tool,
} from "../neutral/conversation.ts";
import { leaveOut, settleOptions, writeMembers, type Writing } from "../neutral/fields.ts";
import { describeFunction, nameCall, nameTool, writeArguments } from "../neutral/tools.ts";
import { type Json, refuseField } from "../neutral/notes.ts";
import {
  arrange,
  type ModelItem,
  remind,
  type Turn,
  ifAny,
  joinTexts,
  keepAllowed,
  keepFunctions,
  limitOption,
  markFailure,
} from "../neutral/write-request.ts";
import { findOutputCap, fitsStrict, isOpenaiReasoner, writeOpenaiEffort } from "../provider-rules.ts";
import { CHAT_FIELDS } from "./fields.ts";

export function writeChatRequest(conversation: Conversation, to: Destination): Json {
  const { items, notes, stream } = conversation;
  const tools = keepAllowed(keepFunctions(conversation), conversation.options.choice);
  const options = settleOptions(conversation, tools, CHAT_FIELDS);
  const { system, turns } = arrange(items, notes);
  const first = system.map(({ parts }) => joinTexts(parts)).join("\n\n");
  const messages = [
    ...(first === "" ? [] : [{ role: "system", content: first }]),
    ...turns.flatMap((turn) => writeTurn(turn, to)),
  ];
  limitOptions(conversation, options, to);
  const writing = { conversation, options, to };
  const { effort } = options;
  return {
    model: to.model,
    stream,
    ...(stream && to.quirks.ask_usage ? { stream_options: { include_usage: true } } : {}),
    ...(to.quirks.cache_key && to.session !== null ? { prompt_cache_key: to.session } : {}),
    ...writeMembers(CHAT_FIELDS, "", options, writing),
    ...(effort === undefined ? {} : EFFORTS[to.quirks.reasoning](effort, to.model)),
    tools: ifAny(tools.map((tool) => writeTool(tool, writing))),
    messages: to.quirks.cache_marks && MARKED_MODELS.test(to.model) ? markMessages(messages) : messages,
  };
}

/** Resellers cache these models' prompts only at marks:
 *  https://openrouter.ai/docs/guides/best-practices/prompt-caching */
const MARKED_MODELS = /claude|qwen/i;
const MARK = { type: "ephemeral" };
const MARKED_TAIL = 2;

function markMessages(messages: readonly Json[]): Json[] {
  const others = messages.filter(({ role }) => role === "user" || role === "tool").slice(-MARKED_TAIL);
  return messages.map((message, at) => {
    const { role, content } = message;
    const mark = at === 0 || others.includes(message) ? { cache_control: MARK } : {};
    if (role === "assistant") return message;
    if (role === "tool") return { ...message, ...mark };
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : getList(content);
    const last: unknown = parts.at(-1);
    return { ...message, content: isObject(last) ? [...parts.slice(0, -1), { ...last, ...mark }] : parts };
  });
}

// Options.

function limitOptions(conversation: Conversation, options: Options, { quirks, model }: Destination): void {
  const isOpenai = quirks.cap === "max_completion_tokens";
  if (isOpenai && isOpenaiReasoner(model) && (options.effort ?? "none") !== "none")
    leaveOut(conversation, options, "temperature", "top_p");
  if (!quirks.top_k) leaveOut(conversation, options, "top_k");
  if (!quirks.schemas) leaveOut(conversation, options, "schema");
  if (!isOpenai) leaveOut(conversation, options, "verbosity", "tier");
  if (quirks.cap === "none") leaveOut(conversation, options, "cap");
  limitOption(conversation, options, "cap", findOutputCap(model));
}

type EffortWriter = (effort: Effort, model: string) => Json;

const EFFORTS: Readonly<Record<Destination["quirks"]["reasoning"], EffortWriter>> = {
  none: () => ({}),
  effort(effort, model) {
    const word = writeOpenaiEffort(effort, model);
    return { reasoning_effort: word ?? undefined };
  },
  deepseek: (effort) => ({ thinking: { type: effort === "none" ? "disabled" : "enabled" } }),
  openrouter: (effort) => ({ reasoning: { effort: effort === "max" ? "xhigh" : effort } }),
  qwen: (effort) => ({ chat_template_kwargs: { enable_thinking: effort !== "none" } }),
};

function writeTool(tool: Tool, writing: Writing): Json {
  const described = describeFunction(tool, "chat");
  const strict = described.strict === true && fitsStrict(described.parameters);
  return { type: "function", ...writeMembers(CHAT_FIELDS, "tools[]", { ...described, strict }, writing) };
}

// Messages.

function writeTurn(turn: Turn, to: Destination): Json[] {
  if (turn.side === "model") return [writeModelTurn(turn.items, to)];
  const images = turn.results.flatMap(({ parts }) => parts.filter(({ kind }) => kind !== "text"));
  return [
    ...turn.results.map(writeResult),
    // A tool's message can only have text.
    ...(images.length === 0 ? [] : [{ role: "user", content: images.map((part) => writePart(part, to)) }]),
    ...turn.messages.map((message) => writeMessage(message, to)),
  ];
}

function writeModelTurn(items: readonly ModelItem[], { quirks }: Destination): Json {
  const texts = items.flatMap((item) => (item.type === "message" ? [joinTexts(item.parts, "")] : []));
  const calls = items.filter((item) => item.type === "call");
  return {
    role: "assistant",
    content: texts.length === 0 && calls.length > 0 ? null : texts.join("\n\n"),
    ...writeThoughts(items, quirks.replay && calls.length > 0),
    tool_calls: ifAny(calls.map(writeCall)),
  };
}

function writeCall(call: Call): Json {
  const name = nameTool(call.name, "chat");
  return {
    id: nameCall(call.id, "chat"),
    type: "function",
    function: { name, arguments: writeArguments(call) },
  };
}

/** Thoughts go back: some servers refuse calls without them. */
function writeThoughts(items: readonly ModelItem[], isNeeded: boolean): Json {
  const written: Record<string, unknown> = {};
  for (const item of items) {
    if (item.type !== "reasoning") continue;
    const { field, details } = item.seal ?? {};
    if (Array.isArray(details)) written["reasoning_details"] = details;
    else if (field === "reasoning_content" || field === "reasoning")
      written[field] = typeof written[field] === "string" ? `${written[field]}\n\n${item.text}` : item.text;
  }
  return isNeeded && Object.keys(written).length === 0 ? { reasoning_content: " " } : written;
}

function writeResult({ id, parts, failed }: Result): Json {
  const text = joinTexts(parts);
  const images = parts.length - parts.filter(({ kind }) => kind === "text").length;
  const content = images === 0 ? text : `${text}${text === "" ? "" : "\n\n"}[see the image below]`;
  return {
    role: "tool",
    tool_call_id: nameCall(id, "chat"),
    content: markFailure(content, failed),
  };
}

function writeMessage({ role, parts }: Message, to: Destination): Json {
  if (role === "system") {
    const text = joinTexts(parts);
    return to.quirks.systems === "any"
      ? { role: "system", content: text }
      : { role: "user", content: remind(text) };
  }
  const [part] = parts;
  if (parts.length === 1 && part?.kind === "text") return { role: "user", content: part.text };
  return { role: "user", content: parts.map((each) => writePart(each, to)) };
}

const DETAILS: Table<string> = { auto: "auto", low: "low", high: "high" };

function writePart(part: ContentPart, { quirks }: Destination): Json {
  if (part.kind === "text") return { type: "text", text: part.text };
  const { url, name, detail } = part;
  if (part.kind === "image")
    return {
      type: "image_url",
      image_url: detail === undefined ? { url } : { url, detail: lookUp(DETAILS, detail) ?? "high" },
    };
  if (!quirks.files || !url.startsWith("data:"))
    refuseField(part.at, "the channels of this group take no files of this kind.");
  return { type: "file", file: { filename: name ?? "document.pdf", file_data: url } };
}
