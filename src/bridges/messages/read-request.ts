// A request of a messages client → a conversation.

import { getField, getList, getText, isObject, listIn, textIn } from "../../lib/json/json.ts";
import type { ContentPart, Conversation, MediaPart } from "../neutral/conversation.ts";
import {
  eachRecord,
  type Json,
  NOT_KEPT,
  refuseBody,
  refuseField,
  refuseStored,
  requireList,
  requireRecord,
} from "../neutral/notes.ts";
import { nameIn, type ReadingFor, readText, RequestReading, type Said } from "../neutral/read-request.ts";
import { MESSAGES_FIELDS } from "./fields.ts";

/** A system block that begins with this changes with each request.
 *  It is left out, because nothing after it could be cached. */
const ATTRIBUTION = "x-anthropic-billing-header:";

export function readMessagesRequest(body: Json, to: ReadingFor): Conversation {
  if (getField(body["thread"], "type") === "continue")
    refuseField("thread", "this group keeps no conversations. Send all of its `messages`.", NOT_KEPT);
  const reading = new RequestReading("messages", MESSAGES_FIELDS, body, to);
  const edits = listIn(body["context_management"], "edits");
  if (edits.some((edit) => textIn(edit, "type").startsWith("compact_")))
    refuseField("context_management", "the channels of this group cannot compact a conversation.");
  eachRecord(getList(body["tools"]), "tools", (tool, place) => addTool(reading, tool, place));
  readThinking(reading.options, body["thinking"]);
  reading.refuseUselessTools(getList(body["tools"]).length > 0, "tools");
  reading.say("system", readSystem(body["system"]));
  const messages = requireList(body["messages"], "messages");
  eachRecord(messages, "messages", (message, place) => addMessage(reading, message, place));
  if (getField(messages.at(-1), "role") === "assistant")
    refuseBody("messages", "the last one begins an answer, which this group's channels cannot continue.");
  return reading;
}

function readSystem(system: unknown): ContentPart[] {
  if (typeof system === "string") return readText(system);
  return getList(system)
    .filter((block) => !textIn(block, "text").startsWith(ATTRIBUTION))
    .flatMap((block) => readText(getField(block, "text"), isMarked(block)));
}

function isMarked(block: unknown): boolean {
  return isObject(getField(block, "cache_control"));
}

/** Without the field `thinking`, a model does not think. */
function readThinking(options: RequestReading["options"], thinking: unknown): void {
  const type = getField(thinking, "type");
  const thinks = type === "enabled" || type === "adaptive";
  options.effort = thinks ? (options.effort ?? "high") : "none";
  if (thinks) options.thoughts ??= true;
  else delete options.thoughts;
}

// Tools.

const COMMAND = { type: "object", properties: { command: { type: "string" }, restart: { type: "boolean" } } };
const EDITOR = {
  type: "object",
  properties: {
    command: { type: "string", enum: ["view", "create", "str_replace", "insert"] },
    path: { type: "string" },
    file_text: { type: "string" },
    old_str: { type: "string" },
    new_str: { type: "string" },
    insert_line: { type: "integer" },
    insert_text: { type: "string" },
    view_range: { type: "array", items: { type: "integer" } },
  },
  required: ["command", "path"],
};
/** Clients send these tools without a schema: only the provider's models know it. */
const KNOWN_TOOLS: readonly (readonly [RegExp, Json])[] = [
  [/^bash_\d+$/, COMMAND],
  [/^text_editor_\d+$/, EDITOR],
];

function addTool(reading: RequestReading, tool: Json, place: string): void {
  const type = typeof tool["type"] === "string" ? tool["type"] : "custom";
  const where = { at: "tools[]", place };
  const made = KNOWN_TOOLS.find(([pattern]) => pattern.test(type))?.[1];
  if (made !== undefined) reading.addTool("function", tool, where, { schema: JSON.stringify(made) });
  else if (type === "custom" || isObject(tool["input_schema"])) reading.addTool("function", tool, where);
  else if (type.startsWith("web_search_")) reading.addTool("search", tool, where, { name: "web_search" });
  else reading.notes.add(`tools:${type}`);
}

// Messages.

function addMessage(reading: RequestReading, message: Json, path: string): void {
  const { role, content } = message;
  if (role === "system") return addSystem(reading, content);
  if (role !== "user" && role !== "assistant")
    refuseBody(`${path}.role`, "expected `user`, `assistant` or `system`.");
  if (typeof content === "string") return reading.say(role, readText(content));
  if (!Array.isArray(content)) refuseBody(`${path}.content`, "expected a text or a list.");
  const said = content.flatMap((block, index) => readSaid(reading, block, `${path}.content[${index}]`));
  reading.say(role, said);
}

/** Claude Code sends system messages anywhere. */
function addSystem(reading: RequestReading, content: unknown): void {
  if (typeof content === "string") return reading.say("system", readText(content));
  const parts = getList(content).flatMap((block): ContentPart[] => {
    const type = getField(block, "type");
    if (type === "tool_addition") {
      const added = getField(block, "tools") ?? [getField(block, "tool")];
      for (const tool of getList(added).filter(isObject)) addTool(reading, { ...tool }, "tool_addition");
      return [];
    }
    if (type === "tool_removal") {
      const name = getField(block, "tool_name") ?? getField(block, "name");
      return readText(`Tool ${getText(name)} is no longer available.`);
    }
    return readText(getField(block, "text"), isMarked(block));
  });
  reading.say("system", parts);
}

function readSaid(reading: RequestReading, value: unknown, path: string): Said[] {
  const block = requireRecord(value, path);
  const { type, content, input } = block;
  if (type === "thinking") return [readThought(reading, getText(block[type]), block["signature"])];
  if (type === "redacted_thinking") return [readThought(reading, "", block["data"])];
  if (type === "tool_use")
    return [
      {
        type: "call",
        id: nameIn(block, "id", path),
        name: nameIn(block, "name", path),
        custom: false,
        input: JSON.stringify(input ?? {}),
      },
    ];
  if (type !== "tool_result") return readBlock(reading, block, path);
  const id = nameIn(block, "tool_use_id", path);
  const parts = readContent(reading, content, `${path}.content`);
  const last = parts.at(-1);
  if (isMarked(block) && last !== undefined) parts.splice(-1, 1, { ...last, cache: true });
  return [{ type: "result", id, parts, failed: block["is_error"] === true }];
}

function readThought(reading: RequestReading, text: string, envelope: unknown): Said {
  return { type: "reasoning", text, seal: reading.openSeal(envelope) };
}

function readContent(reading: RequestReading, content: unknown, path: string): ContentPart[] {
  if (typeof content === "string") return readText(content);
  return getList(content).flatMap((block, index) =>
    isObject(block) ? readBlock(reading, { ...block }, `${path}[${index}]`) : [],
  );
}

function readBlock(reading: RequestReading, block: Json, path: string): ContentPart[] {
  const { type } = block;
  const cache = isMarked(block);
  switch (type) {
    case "text":
      return readText(block["text"], cache);
    case "image":
    case "document":
      return readMedia(block, path);
    case "search_result":
      return readText(joinTexts(block["title"], block["source"], readTexts(block["content"])), cache);
    case "compaction":
      return readText(block["content"], cache);
    case "tool_reference":
      return readText(`Tool loaded: ${getText(block["tool_name"])}`);
    case "container_upload":
      return refuseField(path, "the channels of this group have no container.");
    case "server_tool_use":
      return readText(`[${getText(block["name"])}: ${JSON.stringify(block["input"] ?? {})}]`);
    default:
      return readServerResult(reading, block, nameIn(block, "type", path));
  }
}

/** A result becomes text: other providers do not take such blocks. */
function readServerResult(reading: RequestReading, block: Json, type: string): ContentPart[] {
  if (!type.endsWith("_tool_result")) {
    reading.notes.add(`content:${type}`);
    return [];
  }
  const found = listIn(block, "content").map((each) =>
    joinTexts(getField(each, "title"), getField(each, "url")),
  );
  return readText(`[${type}: ${found.join("; ")}]`);
}

function readMedia(block: Json, path: string): ContentPart[] {
  const source = requireRecord(block["source"], `${path}.source`);
  const { type, data } = source;
  if (block["type"] === "document" && (type === "text" || type === "content")) {
    const text = type === "text" ? data : readTexts(source["content"]);
    return readText(joinTexts(block["title"], text), isMarked(block));
  }
  if (type === "file") refuseStored(`${path}.source.file_id`);
  const title = block["title"];
  const part: MediaPart = {
    kind: block["type"] === "image" ? "image" : "file",
    url:
      type === "url"
        ? nameIn(source, "url", `${path}.source`)
        : `data:${nameIn(source, "media_type", `${path}.source`)};base64,${getText(data)}`,
    name: typeof title === "string" ? title : null,
    at: path,
    ...(isMarked(block) && { cache: true }),
  };
  return [part];
}

function readTexts(content: unknown): string {
  if (typeof content === "string") return content;
  return joinTexts(...getList(content).map((part) => getField(part, "text")));
}

function joinTexts(...texts: unknown[]): string {
  return texts.filter((text) => typeof text === "string" && text !== "").join("\n");
}
