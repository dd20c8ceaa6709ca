// A conversation → a request for a responses upstream.
// The input comes last, for caches.

import { getList } from "../../lib/json/json.ts";
import type {
  ContentPart,
  Conversation,
  Destination,
  Message,
  Options,
  Result,
  Tool,
} from "../neutral/conversation.ts";
import { leaveOut, settleOptions, writeMembers, type Writing } from "../neutral/fields.ts";
import { describeFunction, nameCall, nameTool, writeArguments } from "../neutral/tools.ts";
import type { Json } from "../neutral/notes.ts";
import {
  arrange,
  type ModelItem,
  type Turn,
  ifAny,
  limitOption,
  isText,
  joinTexts,
  markFailure,
} from "../neutral/write-request.ts";
import { findOutputCap, fitsStrict, isOpenaiReasoner, takesBreakpoints } from "../provider-rules.ts";
import { RESPONSES_FIELDS } from "./fields.ts";

/** The provider refuses a smaller cap. */
const MIN_CAP = 16;

export function writeResponsesRequest(conversation: Conversation, to: Destination): Json {
  const { items, notes, stream, isShared, tools } = conversation;
  const options = settleOptions(conversation, tools, RESPONSES_FIELDS);
  // Models do not continue their own words. Only a chat client's history may end with a model's turn.
  const { system, turns } = arrange(items, notes, isShared ? "any" : "user");
  const isMarked = items.some((item) => "parts" in item && item.parts.some(({ cache }) => cache === true));
  const marks = isShared ? isMarked : takesBreakpoints(to.model);
  const said = turns.flatMap((turn) => (turn.side === "model" ? turn.items : []));
  const isCustom = new Set(said.flatMap((item) => (item.type === "call" && item.custom ? [item.id] : [])));
  const include = limitOptions(conversation, options, to);
  const writing = { conversation, options, to };
  const written = writeMembers(RESPONSES_FIELDS, "", options, writing);
  include.push(...getList(written["include"]));
  return {
    model: to.model,
    stream,
    store: false,
    ...(to.session === null ? {} : { prompt_cache_key: to.session }),
    ...written,
    include: ifAny(include),
    // Obfuscation makes each event longer.
    stream_options: isShared && stream ? { include_obfuscation: false } : undefined,
    tools: ifAny(tools.map((tool) => writeTool(tool, writing))),
    max_tool_calls: limitSearches(conversation),
    input: [
      ...system.map((message) => writeMessage(message, marks)),
      ...turns.flatMap((turn) => writeTurn(turn, marks, isCustom)),
    ],
  };
}

function limitOptions(
  conversation: Conversation,
  options: Options,
  { model, quirks }: Destination,
): unknown[] {
  const { notes, tools, isShared } = conversation;
  const thinks = (options.effort ?? "none") !== "none";
  // Chat clients show no thoughts, so none are asked for.
  const isReasoner = !isShared && isOpenaiReasoner(model);
  if (isReasoner && thinks) leaveOut(conversation, options, "temperature", "top_p");
  limitOption(conversation, options, "cap", findOutputCap(model));
  if (quirks.cap === "none") leaveOut(conversation, options, "cap");
  if (options.cap !== undefined && options.cap < MIN_CAP) {
    notes.addOption("cap", MIN_CAP);
    options.cap = MIN_CAP;
  }
  return [
    ...(isReasoner || thinks ? ["reasoning.encrypted_content"] : []),
    ...(tools.some(({ kind }) => kind === "search") ? ["web_search_call.action.sources"] : []),
  ];
}

// Tools.

/** Undefined if the limit would count other tools, too. */
function limitSearches({ tools, notes }: Conversation): number | undefined {
  const [limit] = tools.flatMap(({ settings }) => settings.max_uses ?? []);
  if (limit === undefined || tools.length === 1) return limit;
  notes.addOption("max_uses");
  return undefined;
}

/** Without `strict: false`, every schema would be strict. */
function writeTool(tool: Tool, writing: Writing): Json {
  const write = (members: Parameters<typeof writeMembers>[2]): Json =>
    writeMembers(RESPONSES_FIELDS, "tools[]", members, writing);
  const { kind, settings, description } = tool;
  if (kind === "search") return { type: "web_search", ...write(settings) };
  if (kind === "custom") {
    const { format } = tool;
    const members = { name: nameTool(tool.name, "responses"), description };
    return { type: "custom", ...write(format === undefined ? members : { ...members, format }) };
  }
  const described = describeFunction(tool, "responses");
  const { isShared } = writing.conversation;
  const strict = described.strict === true && (isShared || fitsStrict(described.parameters));
  return { type: "function", ...write({ ...described, strict }) };
}

// Input.

function writeTurn(turn: Turn, marks: boolean, isCustom: ReadonlySet<string>): Json[] {
  if (turn.side === "user") {
    return [
      ...turn.results.map((result) => writeResult(result, marks, isCustom)),
      ...turn.messages.map((message) => writeMessage(message, marks)),
    ];
  }
  return turn.items.flatMap(writeModelItem);
}

function writeModelItem(item: ModelItem): Json[] {
  if (item.type === "call") {
    const name = nameTool(item.name, "responses");
    const call_id = nameCall(item.id, "responses");
    if (item.custom) return [{ type: "custom_tool_call", call_id, name, input: item.input }];
    return [{ type: "function_call", call_id, name, arguments: writeArguments(item) }];
  }
  if (item.type === "reasoning") {
    const { id, encrypted_content } = item.seal ?? {};
    return typeof encrypted_content === "string"
      ? [{ type: "reasoning", id, summary: [], encrypted_content }]
      : [];
  }
  const parts = item.parts.filter(isText);
  const content = parts.some(({ refusal }) => refusal === true)
    ? parts.map(({ text, refusal }) =>
        refusal === true ? { type: "refusal", refusal: text } : { type: "output_text", text },
      )
    : joinTexts(parts, "");
  return [{ type: "message", role: "assistant", content }];
}

function writeMessage({ role, parts, word }: Message, marks: boolean): Json {
  const content = parts.map((part) => writePart(part, marks));
  return { type: "message", role: role === "system" ? (word ?? "developer") : role, content };
}

/** With `marks`, each result is a list, with or without a mark of its own,
 *  so that its form stays the same when the marks move. */
function writeResult({ id, parts, failed }: Result, marks: boolean, isCustom: ReadonlySet<string>): Json {
  const call_id = nameCall(id, "responses");
  const isPlain = !marks && parts.every(isText);
  const marked = markParts(parts, failed);
  const output = isPlain ? joinTexts(marked, "\n") : marked.map((part) => writePart(part, marks));
  const type = isCustom.has(id) ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id, output: output.length === 0 ? "" : output };
}

/** An image cannot say that the call failed. */
function markParts(parts: readonly ContentPart[], failed: boolean): readonly ContentPart[] {
  const at = parts.findIndex(isText);
  if (!failed) return parts;
  if (at < 0) return [{ kind: "text", text: "Error" }, ...parts];
  return parts.map((part, index) =>
    index === at && isText(part) ? { ...part, text: markFailure(part.text, failed) } : part,
  );
}

function writePart(part: ContentPart, marks: boolean): Json {
  const mark = marks && part.cache === true ? { prompt_cache_breakpoint: { mode: "explicit" } } : {};
  if (part.kind === "text") return { type: "input_text", text: part.text, ...mark };
  const { url, name, detail = "auto", isStored } = part;
  if (isStored === true) return { type: "input_file", file_id: url, filename: name ?? undefined, ...mark };
  if (part.kind === "image") return { type: "input_image", image_url: url, detail, ...mark };
  if (!url.startsWith("data:")) return { type: "input_file", file_url: url, ...mark };
  return { type: "input_file", filename: name ?? "document.pdf", file_data: url, ...mark };
}
