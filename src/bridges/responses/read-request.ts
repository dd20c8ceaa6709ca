// A request of a responses client → a conversation.
// https://platform.openai.com/docs/api-reference/responses/create

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { isAbsent, type Json, requireRecord } from "../neutral/strict-json.ts";
import type { Choice, ContentPart, Conversation, MediaPart, Message } from "../neutral/conversation.ts";
import { readEffort } from "../neutral/effort.ts";
import { checkFields, listFields, openTable } from "../neutral/fields.ts";
import { NOT_KEPT, refuseBody, refuseField } from "../neutral/notes.ts";
import {
  CHOICES,
  Reading,
  type ReadingFor,
  readName,
  readSchema,
  readText,
  refuseUselessTools,
  setNumbers,
  setOpenaiOptions,
  setOption,
} from "../neutral/read-request.ts";

const PART = {
  kept: "type text refusal image_url detail file_data file_url file_id filename",
  silent: "annotations logprobs prompt_cache_breakpoint",
} as const;
const TOOL = {
  kept: "type name description parameters strict format filters.allowed_domains user_location execution",
  silent: "cache_control",
} as const;

export const RESPONSES_FIELDS = openTable({
  model: "kept",
  input: "kept",
  ...listFields("input[]", {
    kept: "type role content call_id name namespace arguments input output action summary encrypted_content tools",
    silent: "id status execution phase",
  }),
  ...listFields("input[].content[]", PART),
  ...listFields("input[].output[]", PART),
  instructions: "kept",
  tools: "kept",
  ...listFields("tools[]", TOOL),
  ...listFields("tools[].tools[]", TOOL),
  stream: "kept",
  max_output_tokens: ["cap"],
  temperature: ["temperature"],
  top_p: ["top_p"],
  tool_choice: ["choice"],
  parallel_tool_calls: ["parallel"],
  "reasoning.effort": ["effort"],
  "reasoning.summary": ["thoughts"],
  "reasoning.generate_summary": ["thoughts"],
  "text.format.json_schema": ["schema"],
  ...listFields("text.format", { kept: "type name description schema strict" }),
  "text.format.json_object": ["json"],
  "text.verbosity": ["verbosity"],
  service_tier: ["tier"],
  ...listFields("", {
    silent:
      "reasoning.context include metadata client_metadata access_programs stream_options prompt_cache_key prompt_cache_retention prompt_cache_options user safety_identifier",
    noted: "store truncation",
    refused:
      "previous_response_id conversation background prompt max_tool_calls top_logprobs context_management",
  }),
});

export function readResponsesRequest(body: Json, to: ReadingFor): Conversation {
  const reading = new Reading(to);
  if (!isAbsent(body["previous_response_id"]))
    refuseField(
      "previous_response_id",
      "this group keeps no conversations. Send the whole conversation as `input`.",
      NOT_KEPT,
    );
  checkFields(body, RESPONSES_FIELDS, {
    notes: reading.notes,
    isShared: false,
    harmless: { truncation: "disabled" },
  });
  readOptions(reading, body);
  addTools(reading, getList(body["tools"]), "tools");
  reading.say("system", readText(body["instructions"]));
  const { input } = body;
  if (typeof input === "string") reading.say("user", readText(input));
  else if (!Array.isArray(input)) refuseBody("input", "expected a text or a list.");
  else for (const [index, item] of input.entries()) addItem(reading, item, `input[${index}]`);
  refuseUselessTools(
    reading,
    getList(body["tools"]).length > 0 && reading.options.choice?.kind === "any",
    "tool_choice",
  );
  return reading.finish("responses", RESPONSES_FIELDS.rules, body);
}

// Options.

function readOptions({ options }: Reading, body: Json): void {
  setNumbers(options, body, RESPONSES_FIELDS.rules);
  const reasoning = body["reasoning"];
  setOption(options, "effort", readEffort(getField(reasoning, "effort")));
  const summary = getField(reasoning, "summary") ?? getField(reasoning, "generate_summary");
  if (typeof summary === "string") options.thoughts = summary !== "none";
  const format = getField(body["text"], "format");
  const type = getField(format, "type");
  if (type === "json_object") options.json = true;
  if (type === "json_schema") {
    const name = getField(format, "name");
    const schema = readSchema(getField(format, "schema"));
    options.schema = {
      name: typeof name === "string" ? name : "answer",
      schema,
      strict: getField(format, "strict") !== false,
    };
  }
  setOpenaiOptions(options, body, getField(body["text"], "verbosity"));
  setOption(options, "choice", readChoice(body["tool_choice"]));
}

function readChoice(value: unknown): Choice | undefined {
  if (typeof value === "string") return lookUp(CHOICES, value) ?? refuseBody("tool_choice", UNKNOWN_CHOICE);
  const name = readChosen(value);
  if (name === undefined) return undefined;
  if (name !== "allowed_tools") return { kind: "tool", name };
  const mode = lookUp(CHOICES, getField(value, "mode")) ?? refuseBody("tool_choice.mode", UNKNOWN_CHOICE);
  const only = getList(getField(value, "tools")).map((tool) => readChosen(tool) ?? "");
  return { ...mode, only };
}

const UNKNOWN_CHOICE = "expected `none`, `auto`, `required` or a tool.";

function readChosen(value: unknown): string | undefined {
  const [name, type] = [getField(value, "name"), getField(value, "type")];
  if (typeof name === "string") return joinName(getField(value, "namespace"), name);
  return typeof type === "string" ? nameHosted(type) : undefined;
}

// Tools.

const SHELL = {
  type: "object",
  properties: { command: { type: "array", items: { type: "string" } }, workdir: { type: "string" } },
  required: ["command"],
};

function nameHosted(type: string): string {
  return type.startsWith("web_search") ? "web_search" : type;
}

function addTools(reading: Reading, tools: readonly unknown[], path: string): void {
  for (const [index, tool] of tools.entries())
    addTool(reading, requireRecord(tool, `${path}[${index}]`), null);
}

/** Names inside of a namespace are joined with it: other dialects have one level only. */
function addTool(reading: Reading, tool: Json, namespace: string | null): void {
  const type = readType(tool, "function");
  const description = getText(tool["description"]);
  if (type === "namespace") {
    const outer = readName(tool["name"], "tools.name");
    for (const inner of getList(tool["tools"])) if (isObject(inner)) addTool(reading, { ...inner }, outer);
  } else if (type === "function" || type === "custom") {
    const name = readName(tool["name"], "tools.name");
    reading.tools.push({
      kind: type,
      name: joinName(namespace, name),
      ...(namespace !== null && { inside: { namespace, name } }),
      description,
      schema: type === "custom" ? { format: tool["format"] } : readSchema(tool["parameters"]),
      strict: tool["strict"] === true,
    });
  } else addSpecial(reading, type, { ...tool, description });
}

function readType({ type }: Json, fallback: string): string {
  return typeof type === "string" ? type : fallback;
}

function addSpecial({ tools, notes }: Reading, type: string, tool: Json): void {
  const description = getText(tool["description"]);
  if (type === "local_shell" || (type === "tool_search" && tool["execution"] === "client")) {
    const schema = type === "local_shell" ? SHELL : readSchema(tool["parameters"]);
    tools.push({ kind: "function", name: type, form: type, description, schema });
  } else if (type.startsWith("web_search")) {
    const allowed_domains = getField(tool["filters"], "allowed_domains");
    const schema = { allowed_domains, user_location: tool["user_location"] };
    tools.push({ kind: "search", name: "web_search", description, schema });
  } else notes.add(`tools:${type}`);
}

function joinName(namespace: unknown, name: string): string {
  return typeof namespace === "string" && namespace !== "" ? `${namespace}__${name}` : name;
}

// Items.

type ItemRule = (reading: Reading, item: Json, path: string) => void;

const ITEMS: Readonly<Record<string, ItemRule>> = {
  message: addMessage,
  function_call: (reading, item, path) => addCall(reading, item, path, item["arguments"]),
  custom_tool_call: (reading, item, path) => addCall(reading, item, path, item["input"]),
  local_shell_call(reading, item, path) {
    const input = JSON.stringify(getField(item["action"], "command") ?? []);
    addCall(reading, { ...item, name: "local_shell" }, path, `{"command":${input}}`);
  },
  tool_search_call: (reading, item, path) =>
    addCall(reading, { ...item, name: "tool_search" }, path, JSON.stringify(item["arguments"] ?? {})),
  function_call_output: addResult,
  custom_tool_call_output: addResult,
  local_shell_call_output: addResult,
  tool_search_output(reading, item, path) {
    addTools(reading, getList(item["tools"]), `${path}.tools`);
    const names = getList(item["tools"]).map((tool) => getText(getField(tool, "name")));
    addResult(reading, { ...item, output: `Tools loaded: ${names.join(", ")}` }, path);
  },
  additional_tools: (reading, item, path) => addTools(reading, getList(item["tools"]), `${path}.tools`),
  reasoning(reading, item) {
    const parts = [...getList(item["summary"]), ...getList(item["content"])];
    const text = parts.map((part) => getField(part, "text")).filter((each) => typeof each === "string");
    const seal = reading.openSeal(item["encrypted_content"]);
    reading.items.push({ type: "reasoning", text: text.join("\n\n"), seal });
  },
  web_search_call: (reading, item) => reading.say("assistant", readSearch(item["action"])),
  item_reference: (_reading, _item, path) =>
    refuseField(path, "this group keeps no items. Send the items themselves."),
  compaction: (_reading, _item, path) =>
    refuseField(
      path,
      "another provider compacted this conversation, and only it can read that. Start a new session.",
    ),
  compaction_trigger: (_reading, _item, path) =>
    refuseField(
      path,
      "the channels of this group cannot compact. Codex compacts by itself if its provider is not named OpenAI.",
    ),
};

/** A search may have several queries, open a page or look for a text in it. */
function readSearch(action: unknown): ContentPart[] {
  const words = ["query", "url", "pattern"].map((name) => getField(action, name));
  const found = [...words, ...getList(getField(action, "queries"))].filter(
    (word) => typeof word === "string" && word !== "",
  );
  return found.length === 0 ? [] : readText(`[web search: ${[...new Set(found)].join("; ")}]`);
}

function addItem(reading: Reading, value: unknown, path: string): void {
  const item = requireRecord(value, path);
  const type = readType(item, "message");
  const rule = lookUp(ITEMS, type);
  if (rule === undefined) reading.notes.add(`input:${type}`);
  else rule(reading, item, path);
}

const ROLES: Readonly<Record<string, Message["role"]>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

function addMessage(reading: Reading, item: Json, path: string): void {
  const role = lookUp(ROLES, item["role"]);
  if (role === undefined)
    refuseBody(`${path}.role`, "expected `user`, `assistant`, `system` or `developer`.");
  reading.say(role, readParts(reading, item["content"], `${path}.content`));
}

function addCall(reading: Reading, item: Json, path: string, input: unknown): void {
  const name = joinName(item["namespace"], readName(item["name"], `${path}.name`));
  reading.items.push({
    type: "call",
    id: readName(item["call_id"] ?? item["id"], `${path}.call_id`),
    name,
    custom: item["type"] === "custom_tool_call",
    input: typeof input === "string" ? input : JSON.stringify(input ?? {}),
  });
}

function addResult(reading: Reading, item: Json, path: string): void {
  reading.items.push({
    type: "result",
    id: readName(item["call_id"] ?? item["id"], `${path}.call_id`),
    parts: readParts(reading, item["output"], `${path}.output`),
    failed: item["status"] === "failed",
  });
}

function readParts(reading: Reading, content: unknown, path: string): ContentPart[] {
  if (typeof content === "string") return readText(content);
  if (isObject(content)) return readText(readOutput({ ...content }));
  return getList(content).flatMap((part, index) => readPart(reading, part, `${path}[${index}]`));
}

/** Older versions of Codex wrap the text of an output. */
function readOutput(output: Json): string {
  const { content } = output;
  return typeof content === "string" ? content : JSON.stringify(output);
}

function readPart(reading: Reading, part: unknown, path: string): ContentPart[] {
  const type = getField(part, "type");
  switch (type) {
    case "input_text":
    case "output_text":
    case "text":
    case "summary_text":
      return readText(getField(part, "text"));
    case "refusal":
      return readText(getField(part, "refusal")).map((text) => ({ ...text, refusal: true }));
    case "input_image":
    case "input_file":
      return [readMedia(requireRecord(part, path), path)];
    default:
      reading.notes.add(`content:${getText(type)}`);
      return [];
  }
}

function readMedia(part: Json, path: string): MediaPart {
  const isImage = part["type"] === "input_image";
  const url = isImage ? part["image_url"] : (part["file_data"] ?? part["file_url"]);
  if (typeof url !== "string") refuseField(`${path}.file_id`, "this file is in another provider's store.");
  const { filename, detail } = part;
  return {
    kind: isImage ? "image" : "file",
    url,
    name: typeof filename === "string" ? filename : null,
    at: path,
    ...(typeof detail === "string" && { detail }),
  };
}
