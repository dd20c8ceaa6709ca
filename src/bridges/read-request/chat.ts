// A request of a chat client → a conversation.
// https://platform.openai.com/docs/api-reference/chat/create

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { isAbsent, type Json, requireList, requireRecord } from "../common/strict-json.ts";
import type { Choice, ContentPart, Conversation, MediaPart } from "../turn/conversation.ts";
import { readEffort } from "../turn/effort.ts";
import { checkFields, type FieldRules } from "../turn/fields.ts";
import { refuseBody, refuseField } from "../turn/notes.ts";
import {
  CHOICES,
  type OpenSeal,
  Reading,
  readName,
  readSchema,
  readText,
  setNumbers,
  setOption,
} from "./reading.ts";

export const CHAT_FIELDS: FieldRules = {
  model: "kept",
  messages: "kept",
  tools: "kept",
  stream: "kept",
  stream_options: "kept",
  max_tokens: ["cap"],
  max_completion_tokens: ["cap"],
  temperature: ["temperature"],
  top_p: ["top_p"],
  top_k: ["top_k"],
  stop: ["stop"],
  tool_choice: ["choice"],
  parallel_tool_calls: ["parallel"],
  reasoning_effort: ["effort", "thoughts"],
  "response_format.type": "kept",
  "response_format.json_schema": ["schema"],
  "response_format.json_object": ["json"],
  verbosity: ["verbosity"],
  service_tier: ["tier"],
  seed: "silent",
  user: "silent",
  safety_identifier: "silent",
  prompt_cache_key: "silent",
  prompt_cache_retention: "silent",
  prompt_cache_options: "silent",
  metadata: "silent",
  store: "noted",
  n: "refused",
  logit_bias: "refused",
  frequency_penalty: "refused",
  presence_penalty: "refused",
  logprobs: "refused",
  top_logprobs: "refused",
  modalities: "refused",
  audio: "refused",
  prediction: "refused",
  web_search_options: "refused",
  functions: "refused",
  function_call: "refused",
};

export function readChatRequest(body: Json, openSeal: OpenSeal): Conversation {
  const reading = new Reading(openSeal);
  const isPlain = getList(body["modalities"]).every((each) => each === "text");
  checkFields({ ...body, ...(isPlain && { modalities: null }) }, CHAT_FIELDS, reading.notes, { n: 1 });
  readOptions(reading, body);
  for (const [index, tool] of getList(body["tools"]).entries()) addTool(reading, tool, `tools[${index}]`);
  for (const [index, value] of requireList(body["messages"], "messages").entries()) {
    const path = `messages[${index}]`;
    addMessage(reading, requireRecord(value, path), path);
  }
  return reading.finish("chat", CHAT_FIELDS, body);
}

// Options.

function readOptions({ options }: Reading, body: Json): void {
  setNumbers(options, body, CHAT_FIELDS);
  const { stop } = body;
  const stops = (typeof stop === "string" ? [stop] : getList(stop)).filter(
    (each) => typeof each === "string",
  );
  if (stops.some((each) => each !== "")) options.stop = stops;
  const effort = readEffort(body["reasoning_effort"]);
  setOption(options, "effort", effort);
  if (effort !== undefined) options.thoughts = true;
  readFormat(options, body["response_format"]);
  if (typeof body["verbosity"] === "string") options.verbosity = body["verbosity"];
  setOption(options, "choice", readChoice(body["tool_choice"]));
  if (typeof body["parallel_tool_calls"] === "boolean") options.parallel = body["parallel_tool_calls"];
  const tier = body["service_tier"];
  if (typeof tier === "string" && tier !== "auto") options.tier = tier;
}

function readFormat(options: Reading["options"], format: unknown): void {
  const type = getField(format, "type");
  if (type === "json_object") options.json = true;
  if (type !== "json_schema") return;
  const declared = getField(format, "json_schema");
  const name = getField(declared, "name");
  options.schema = {
    name: typeof name === "string" ? name : "answer",
    schema: readSchema(getField(declared, "schema")),
    strict: getField(declared, "strict") === true,
  };
}

function readChoice(value: unknown): Choice | undefined {
  if (typeof value === "string") return lookUp(CHOICES, value);
  if (!isObject(value)) return undefined;
  const allowed = getField(value["allowed_tools"], "mode");
  if (typeof allowed === "string") return lookUp(CHOICES, allowed);
  const named = getField(value["function"] ?? value["custom"], "name");
  return { kind: "tool", name: readName(named, "tool_choice.function.name") };
}

// Tools.

function addTool(reading: Reading, value: unknown, path: string): void {
  const tool = requireRecord(value, path);
  const { type } = tool;
  if (type !== "function" && type !== "custom")
    refuseField(`${path}.type`, "expected `function` or `custom`.");
  const declared = requireRecord(tool[type], `${path}.${type}`);
  reading.tools.push({
    kind: type,
    name: readName(declared["name"], `${path}.${type}.name`),
    description: getText(declared["description"]),
    schema:
      type === "custom" ? { format: readGrammar(declared["format"]) } : readSchema(declared["parameters"]),
    strict: declared["strict"] === true,
  });
}

/** Chat has it one level deeper. */
function readGrammar(format: unknown): unknown {
  return getField(format, "grammar") ?? format;
}

// Messages.

function addMessage(reading: Reading, message: Json, path: string): void {
  const { role, content } = message;
  switch (role) {
    case "system":
    case "developer":
      return reading.say("system", readParts(reading, content, path));
    case "user":
      return reading.say("user", readParts(reading, content, path));
    case "assistant":
      return addAnswer(reading, message, path);
    case "tool":
      reading.items.push({
        type: "result",
        id: readName(message["tool_call_id"], `${path}.tool_call_id`),
        parts: readParts(reading, content, path),
        failed: false,
      });
      return;
    default:
      refuseBody(`${path}.role`, "expected `system`, `developer`, `user`, `assistant` or `tool`.");
  }
}

/** Its thoughts come first, if the client has kept them. */
function addAnswer(reading: Reading, message: Json, path: string): void {
  const { reasoning_content: thoughts, reasoning_details: details, refusal } = message;
  if (!isAbsent(message["function_call"])) refuseField(`${path}.function_call`, "send `tool_calls`.");
  const text = getText(thoughts);
  for (const detail of getList(details))
    reading.items.push({ type: "reasoning", text, seal: reading.openSeal(getField(detail, "data")) });
  reading.say("assistant", [
    ...readParts(reading, message["content"], path),
    ...readText(refusal).map((part) => ({ ...part, refusal: true as const })),
  ]);
  for (const [index, value] of getList(message["tool_calls"]).entries()) {
    const at = `${path}.tool_calls[${index}]`;
    const call = requireRecord(value, at);
    const custom = call["type"] === "custom";
    const declared = custom ? call["custom"] : call["function"];
    const input = getField(declared, custom ? "input" : "arguments");
    reading.items.push({
      type: "call",
      id: readName(call["id"], `${at}.id`),
      name: readName(getField(declared, "name"), `${at}.${custom ? "custom" : "function"}.name`),
      custom,
      input: typeof input === "string" ? input : JSON.stringify(input ?? {}),
    });
  }
}

function readParts(reading: Reading, content: unknown, path: string): ContentPart[] {
  if (typeof content === "string") return readText(content);
  return getList(content).flatMap((part, index) => readPart(reading, part, `${path}.content[${index}]`));
}

function readPart(reading: Reading, part: unknown, path: string): ContentPart[] {
  const type = getField(part, "type");
  switch (type) {
    case "text":
      return readText(getField(part, "text"));
    case "refusal":
      return readText(getField(part, "refusal")).map((text) => ({ ...text, refusal: true }));
    case "image_url":
      return [readImage(getField(part, "image_url"), path)];
    case "file":
      return [readFile(getField(part, "file"), path)];
    case "input_audio":
      return refuseField(path, "the channels of this group take no sound.");
    default:
      reading.notes.add(`content:${getText(type)}`);
      return [];
  }
}

function readImage(image: unknown, path: string): MediaPart {
  const [url, detail] = [getField(image, "url"), getField(image, "detail")];
  if (typeof url !== "string") refuseBody(`${path}.image_url.url`, "expected an address.");
  return { kind: "image", url, name: null, ...(typeof detail === "string" && { detail }) };
}

function readFile(file: unknown, path: string): MediaPart {
  const [url, name] = [getField(file, "file_data"), getField(file, "filename")];
  if (typeof url !== "string")
    refuseField(`${path}.file.file_id`, "this file is in another provider's store.");
  return { kind: "file", url, name: typeof name === "string" ? name : null };
}
