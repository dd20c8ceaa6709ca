// A request of a responses client → a conversation.

import {
  getField,
  getList,
  isObject,
  listIn,
  lookUp,
  type Table,
  textIn,
  textOf,
} from "../../lib/json/json.ts";
import type { ContentPart, Conversation, MediaPart, Message } from "../neutral/conversation.ts";
import {
  eachRecord,
  isAbsent,
  type Json,
  NOT_KEPT,
  refuseBody,
  refuseField,
  refuseStored,
  requireRecord,
} from "../neutral/notes.ts";
import { nameIn, type ReadingFor, readName, readText, RequestReading } from "../neutral/read-request.ts";
import { joinName, RESPONSES_FIELDS } from "./fields.ts";

export function readResponsesRequest(body: Json, to: ReadingFor): Conversation {
  if (!isAbsent(body["previous_response_id"]))
    refuseField(
      "previous_response_id",
      "this group keeps no conversations. Send the whole conversation as `input`.",
      NOT_KEPT,
    );
  const reading = new RequestReading("responses", RESPONSES_FIELDS, body, to);
  addTools(reading, getList(body["tools"]), "tools");
  reading.say("system", readText(body["instructions"]));
  const { input } = body;
  if (typeof input === "string") reading.say("user", readText(input));
  else if (!Array.isArray(input)) refuseBody("input", "expected a text or a list.");
  else eachRecord(input, "input", (item, place) => addItem(reading, item, place));
  const needsSome = getList(body["tools"]).length > 0 && reading.options.choice?.kind === "any";
  reading.refuseUselessTools(needsSome, "tool_choice");
  return reading;
}

// Tools.

const SHELL = JSON.stringify({
  type: "object",
  properties: { command: { type: "array", items: { type: "string" } }, workdir: { type: "string" } },
  required: ["command"],
});

function addTools(reading: RequestReading, tools: readonly unknown[], path: string): void {
  eachRecord(tools, path, (tool, place) => addTool(reading, tool, place));
}

function addTool(reading: RequestReading, tool: Json, place: string, namespace?: string): void {
  const type = readType(tool, "function");
  const where = { at: "tools[]", place };
  if (type === "namespace") {
    const outer = nameIn(tool, "name", place);
    for (const [index, inner] of getList(tool["tools"]).entries())
      if (isObject(inner)) addTool(reading, inner, `${place}.tools[${index}]`, outer);
  } else if (type === "function" || type === "custom") {
    const name = nameIn(tool, "name", place);
    const inside = namespace === undefined ? {} : { inside: { namespace, name } };
    reading.addTool(type, tool, where, { name: joinName(namespace, name), ...inside });
  } else if (type === "local_shell")
    reading.addTool("function", tool, where, { name: type, form: type, schema: SHELL });
  else if (type === "tool_search" && tool["execution"] === "client")
    reading.addTool("function", tool, where, { name: type, form: type });
  else if (type.startsWith("web_search")) reading.addTool("search", tool, where, { name: "web_search" });
  else reading.notes.add(`tools:${type}`);
}

function readType({ type }: Json, fallback: string): string {
  return typeof type === "string" ? type : fallback;
}

// Items.

type ItemRule = (reading: RequestReading, item: Json, path: string) => void;

const ITEMS: Table<ItemRule> = {
  message: addMessage,
  function_call: (reading, item, path) => addCall(reading, item, path, item["arguments"]),
  custom_tool_call: (reading, item, path) => addCall(reading, item, path, item["input"]),
  local_shell_call(reading, item, path) {
    const input = JSON.stringify(getField(item["action"], "command") ?? []);
    addCall(reading, { ...item, name: "local_shell" }, path, `{"command":${input}}`);
  },
  tool_search_call: (reading, item, path) =>
    addCall(reading, { ...item, name: "tool_search" }, path, item["arguments"]),
  function_call_output: addResult,
  custom_tool_call_output: addResult,
  local_shell_call_output: addResult,
  tool_search_output(reading, item, path) {
    addTools(reading, getList(item["tools"]), `${path}.tools`);
    const names = getList(item["tools"]).map((tool) => textIn(tool, "name"));
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
      "the channels of this group cannot compact. " +
        "Codex compacts by itself if its provider is not named OpenAI.",
    ),
};

function readSearch(action: unknown): ContentPart[] {
  const words = ["query", "url", "pattern"].map((name) => getField(action, name));
  const found = [...words, ...listIn(action, "queries")].filter(
    (word) => typeof word === "string" && word !== "",
  );
  return found.length === 0 ? [] : readText(`[web search: ${[...new Set(found)].join("; ")}]`);
}

function addItem(reading: RequestReading, item: Json, path: string): void {
  const type = readType(item, "message");
  const rule = lookUp(ITEMS, type);
  if (rule === undefined) reading.notes.add(`input:${type}`);
  else rule(reading, item, path);
}

const ROLES: Table<Message["role"]> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
};

function addMessage(reading: RequestReading, item: Json, path: string): void {
  const role = lookUp(ROLES, item["role"]);
  if (role === undefined)
    refuseBody(`${path}.role`, "expected `user`, `assistant`, `system` or `developer`.");
  reading.say(role, readParts(reading, item["content"], `${path}.content`));
}

function addCall(reading: RequestReading, item: Json, path: string, input: unknown): void {
  const name = joinName(item["namespace"], nameIn(item, "name", path));
  reading.items.push({
    type: "call",
    id: readName(item["call_id"] ?? item["id"], `${path}.call_id`),
    name,
    custom: item["type"] === "custom_tool_call",
    input: textOf(input ?? {}),
  });
}

function addResult(reading: RequestReading, item: Json, path: string): void {
  reading.items.push({
    type: "result",
    id: readName(item["call_id"] ?? item["id"], `${path}.call_id`),
    parts: readParts(reading, item["output"], `${path}.output`),
    failed: item["status"] === "failed",
  });
}

function readParts(reading: RequestReading, content: unknown, path: string): ContentPart[] {
  if (typeof content === "string") return readText(content);
  if (isObject(content)) return readText(readOutput({ ...content }));
  return getList(content).flatMap((part, index) => readPart(reading, part, `${path}[${index}]`));
}

/** Older versions of Codex wrap the text. */
function readOutput(output: Json): string {
  const { content } = output;
  return typeof content === "string" ? content : JSON.stringify(output);
}

function readPart(reading: RequestReading, part: unknown, path: string): ContentPart[] {
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
      return [readMedia(reading, requireRecord(part, path), path)];
    default:
      reading.notes.add(`content:${nameIn(part, "type", path)}`);
      return [];
  }
}

function readMedia(reading: RequestReading, part: Json, path: string): MediaPart {
  const isImage = part["type"] === "input_image";
  const url = isImage ? part["image_url"] : (part["file_data"] ?? part["file_url"]);
  if (typeof url !== "string") refuseStored(`${path}.file_id`);
  const { filename, detail } = part;
  return {
    kind: isImage ? "image" : "file",
    url,
    name: typeof filename === "string" ? filename : null,
    at: path,
    ...reading.readDetail(detail),
  };
}
