// A conversation → a request for a responses upstream. The input comes last: a longer conversation begins with the bytes of
// a shorter one.

import { getField, getList, isObject } from "../../lib/json/json.ts";
import { type Json, pickPresent } from "../neutral/strict-json.ts";
import type {
  Call,
  Choice,
  ContentPart,
  Conversation,
  Destination,
  Item,
  Message,
  Options,
  Result,
  Tool,
} from "../neutral/conversation.ts";
import { fitsStrict } from "../provider-rules.ts";
import { findOutputCap, isOpenaiReasoner, takesBreakpoints, writeOpenaiEffort } from "../neutral/effort.ts";
import { leaveOut, settleOptions, listSupport } from "../neutral/fields.ts";
import { nameCall, nameTool } from "../neutral/names.ts";
import { refuseField } from "../neutral/notes.ts";
import { describeFunction, writeArguments } from "../neutral/tool-input.ts";
import { arrange, type ModelItem, type Turn } from "../neutral/turns.ts";
import { clampCap, isText, joinTexts, markFailure } from "../neutral/write-request.ts";

export const RESPONSES_SUPPORT = listSupport({
  changed: ["cap", "temperature", "top_p", "effort"],
  "left out": ["top_k"],
  refused: ["stop"],
});

/** A smaller cap is refused. */
const MIN_CAP = 16;

export function writeResponsesRequest(conversation: Conversation, to: Destination): Json {
  const { items, notes, stream, shared } = conversation;
  const options = settleOptions(conversation, RESPONSES_SUPPORT);
  // It takes a conversation that the model began, and one that ends with its words.
  const { system, turns } = arrange(items, notes, "any");
  const marks = shared === null ? takesBreakpoints(to.model) : items.some(isMarked);
  const custom = turns.flatMap((turn) => (turn.side === "model" ? turn.items.filter(isCustomCall) : []));
  const isCustom = new Set(custom.map(({ id }) => id));
  return {
    model: to.model,
    stream,
    store: false,
    ...writeOptions(conversation, options, to),
    ...(to.session === null ? {} : { prompt_cache_key: to.session }),
    ...shared,
    ...writeTools(conversation, options),
    input: [
      ...system.map((message) => writeMessage(message, marks)),
      ...turns.flatMap((turn) => writeTurn(turn, marks, isCustom)),
    ],
  };
}

// Options.

function writeOptions(conversation: Conversation, options: Options, to: Destination): Json {
  const { model } = to;
  const { effort = "none", tier: service_tier } = options;
  const thinks = effort !== "none";
  // Clients of the shared dialect know no thoughts, and for their summary OpenAI wants a verified organisation.
  const isReasoner = conversation.shared === null && isOpenaiReasoner(model);
  if (isReasoner && thinks) leaveOut(conversation, options, "temperature", "top_p");
  const include = [
    ...(isReasoner || thinks ? ["reasoning.encrypted_content"] : []),
    ...(conversation.tools.some(({ kind }) => kind === "search") ? ["web_search_call.action.sources"] : []),
  ];
  return {
    ...writeCap(conversation, options.cap, to),
    ...pickPresent({ ...options }, ["temperature", "top_p"]),
    ...dropEmpty("reasoning", {
      effort: options.effort && writeOpenaiEffort(effort, model),
      summary: options.thoughts === true && thinks ? "auto" : null,
    }),
    ...dropEmpty("text", {
      format: writeFormat(options, conversation.shared !== null),
      verbosity: options.verbosity,
    }),
    ...(include.length === 0 ? {} : { include }),
    service_tier,
  };
}

/** A member with those of its members that are there; nothing if none is. */
function dropEmpty(name: string, members: Json): Json {
  const present = Object.entries(members).filter(([, value]) => value !== undefined && value !== null);
  return present.length === 0 ? {} : { [name]: Object.fromEntries(present) };
}

/** Some servers refuse the verbosity without a format. */
function writeFormat({ schema, json, verbosity }: Options, isShared: boolean): Json | null {
  if (schema !== undefined) return writeSchema(schema, isShared);
  if (json === true) return { type: "json_object" };
  return verbosity === undefined ? null : { type: "text" };
}

function writeCap(
  conversation: Conversation,
  wanted: number | undefined,
  { model, quirks }: Destination,
): Json {
  const { notes, names } = conversation;
  const cap = clampCap(conversation, wanted, findOutputCap(model));
  if (cap === undefined) return {};
  if (quirks.cap === "none") {
    notes.add(names["cap"] ?? "cap");
    return {};
  }
  if (cap < MIN_CAP) notes.add(`${names["cap"] ?? "cap"}=${MIN_CAP}`);
  return { max_output_tokens: Math.max(cap, MIN_CAP) };
}

function writeSchema({ strict, ...declared }: NonNullable<Options["schema"]>, isShared: boolean): Json {
  return { type: "json_schema", ...declared, strict: strict && (isShared || fitsStrict(declared.schema)) };
}

// Tools.

function writeTools({ tools, shared, notes }: Conversation, { choice, parallel }: Options): Json {
  if (tools.length === 0) return {};
  const limit = tools
    .map(({ schema }) => getField(schema, "max_uses"))
    .find((each) => typeof each === "number");
  // It would limit other tools of the provider too, which no client has asked for.
  const isAlone = tools.length === 1;
  if (limit !== undefined && !isAlone) notes.add("tools[].max_uses");
  return {
    tools: tools.map((tool) => writeTool(tool, shared !== null)),
    ...(choice === undefined ? {} : { tool_choice: writeChoice(choice, tools) }),
    ...(parallel === undefined ? {} : { parallel_tool_calls: parallel }),
    ...(limit !== undefined && isAlone ? { max_tool_calls: limit } : {}),
  };
}

/** Without `strict: false`, every schema would be strict. */
/** `isShared`: the client knows the rules, and hears of them from its own provider. */
function writeTool(tool: Tool, isShared: boolean): Json {
  if (tool.kind === "search") return writeSearch(tool.schema);
  const name = nameTool(tool.name, "responses");
  if (tool.kind === "custom")
    return {
      type: "custom",
      name,
      description: tool.description || undefined,
      format: tool.schema["format"],
    };
  const { description, schema } = describeFunction(tool);
  const text = description === "" ? {} : { description };
  return {
    type: "function",
    name,
    ...text,
    parameters: schema,
    strict: tool.strict === true && (isShared || fitsStrict(schema)),
  };
}

function writeSearch({
  allowed_domains: allowed,
  blocked_domains: blocked,
  user_location: place,
}: Json): Json {
  // To search these sites in spite of it would be wrong.
  if (getList(blocked).length > 0)
    refuseField("tools", "blocked_domains has no counterpart in this group's channels.");
  return {
    type: "web_search",
    ...(getList(allowed).length === 0 ? {} : { filters: { allowed_domains: allowed } }),
    ...(isObject(place) ? { user_location: place } : {}),
  };
}

function writeChoice(choice: Choice, tools: readonly Tool[]): unknown {
  const name = (called: string): Json => {
    const { kind = "function" } = tools.find((tool) => tool.name === called) ?? {};
    return kind === "search" ? { type: "web_search" } : { type: kind, name: nameTool(called, "responses") };
  };
  if (choice.kind === "tool") return name(choice.name);
  const mode = choice.kind === "any" ? "required" : choice.kind;
  return choice.only === undefined ? mode : { type: "allowed_tools", mode, tools: choice.only.map(name) };
}

// Input.

function isMarked(item: Item): boolean {
  return "parts" in item && item.parts.some(({ cache }) => cache === true);
}

function isCustomCall(item: ModelItem): item is Call {
  return item.type === "call" && item.custom;
}

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

/** Where parts can be marked, every result is a list of parts: with a mark and without, it looks the same. */
function writeResult({ id, parts, failed }: Result, marks: boolean, isCustom: ReadonlySet<string>): Json {
  const call_id = nameCall(id, "responses");
  const isPlain = !marks && parts.every(isText);
  const marked = markParts(parts, failed);
  const output = isPlain ? joinTexts(marked, "\n") : marked.map((part) => writePart(part, marks));
  const type = isCustom.has(id) ? "custom_tool_call_output" : "function_call_output";
  return { type, call_id, output: output.length === 0 ? "" : output };
}

/** The first text says that the call failed; a picture alone cannot. */
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
  if (isStored === true)
    return { type: "input_file", file_id: url, ...(name === null ? {} : { filename: name }), ...mark };
  if (part.kind === "image") return { type: "input_image", image_url: url, detail, ...mark };
  if (!url.startsWith("data:")) return { type: "input_file", file_url: url, ...mark };
  return { type: "input_file", filename: name ?? "document.pdf", file_data: url, ...mark };
}
