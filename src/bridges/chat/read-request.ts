// A request of a chat client → a conversation.
// https://platform.openai.com/docs/api-reference/chat/create

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { isAbsent, type Json, pickPresent, requireList, requireRecord } from "../neutral/strict-json.ts";
import type { Choice, ContentPart, Conversation, MediaPart, Wishes } from "../neutral/conversation.ts";
import { readEffort } from "../neutral/effort.ts";
import { checkFields, listFields, openTable, shareFields } from "../neutral/fields.ts";
import { refuseBody, refuseField } from "../neutral/notes.ts";
import {
  CHOICES,
  Reading,
  type ReadingFor,
  readName,
  readSchema,
  readStops,
  readText,
  setNumbers,
  setOpenaiOptions,
  setOption,
} from "../neutral/read-request.ts";

/** What has the same name and meaning in both dialects of OpenAI. */
const SAME =
  "user safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options metadata".split(" ");

export const CHAT_FIELDS = openTable({
  model: "kept",
  messages: "kept",
  ...listFields("messages[]", {
    kept: "role content refusal tool_calls tool_call_id function_call reasoning_content reasoning_details",
    silent: "annotations parsed reasoning",
    noted: "name",
    refused: "audio",
  }),
  ...listFields("messages[].content[]", {
    kept: "type text refusal image_url.url image_url.detail file.file_data file.file_id file.filename input_audio prompt_cache_breakpoint",
    silent: "cache_control",
  }),
  ...listFields("messages[].tool_calls[]", {
    kept: "id type function.name function.arguments custom.name custom.input",
    silent: "index function.parsed_arguments",
  }),
  ...listFields("messages[].function_call", { kept: "name arguments" }),
  tools: "kept",
  ...listFields("tools[]", {
    kept: "type function.name function.description function.parameters function.strict custom.name custom.description custom.format",
    silent: "cache_control",
  }),
  functions: "kept",
  ...listFields("functions[]", { kept: "name description parameters" }),
  function_call: ["choice"],
  tool_choice: ["choice"],
  parallel_tool_calls: ["parallel"],
  stream: "kept",
  ...listFields("stream_options", { kept: "include_usage", silent: "include_obfuscation" }),
  max_tokens: ["cap"],
  max_completion_tokens: ["cap"],
  temperature: ["temperature"],
  top_p: ["top_p"],
  top_k: ["top_k"],
  stop: ["stop"],
  reasoning_effort: ["effort", "thoughts"],
  "response_format.type": "kept",
  "response_format.json_schema": ["schema"],
  ...listFields("response_format.json_schema", { kept: "name description schema strict" }),
  "response_format.json_object": ["json"],
  verbosity: ["verbosity"],
  service_tier: ["tier"],
  ...shareFields("silent", SAME),
  ...shareFields("noted", ["store", "moderation"]),
  ...shareFields("refused", ["logprobs", "top_logprobs"]),
  ...listFields("", {
    silent: "seed",
    refused: "n logit_bias frequency_penalty presence_penalty modalities audio prediction web_search_options",
  }),
});

export function readChatRequest(body: Json, to: ReadingFor): Conversation {
  const reading = new ChatReading(to);
  const { modalities } = body;
  const isPlain = Array.isArray(modalities) && modalities.every((each) => each === "text");
  // An empty object asks for a search, too.
  if (isObject(body["web_search_options"]))
    refuseField("web_search_options", "this group's channels have none.");
  if (reading.isShared && !isAbsent(body["top_k"]))
    refuseField("top_k", "this field is unknown.", "unknown_parameter");
  checkFields({ ...body, ...(isPlain && { modalities: null }) }, CHAT_FIELDS, {
    notes: reading.notes,
    isShared: reading.isShared,
    harmless: { n: 1 },
  });
  const functions = getList(body["functions"]);
  readOptions(reading, body);
  for (const [index, tool] of getList(body["tools"]).entries()) addTool(reading, tool, `tools[${index}]`);
  for (const [index, each] of functions.entries())
    addFunction(reading, requireRecord(each, `functions[${index}]`), `functions[${index}]`);
  for (const [index, value] of requireList(body["messages"], "messages").entries())
    reading.add(requireRecord(value, `messages[${index}]`), index);
  return {
    ...reading.finish("chat", CHAT_FIELDS.rules, body),
    wishes: readWishes(reading, body),
    shared: reading.isShared ? readShared(body) : null,
  };
}

// Options.

function readOptions({ options, isShared }: ChatReading, body: Json): void {
  setNumbers(options, body, CHAT_FIELDS.rules);
  const { stop } = body;
  setOption(
    options,
    "stop",
    readStops(stop === "" ? null : typeof stop === "string" ? [stop] : stop, "stop"),
  );
  const effort = isShared ? undefined : readEffort(body["reasoning_effort"]);
  setOption(options, "effort", effort);
  if (effort !== undefined) options.thoughts = true;
  readFormat(options, body["response_format"]);
  setOpenaiOptions(options, body, body["verbosity"]);
  setOption(options, "choice", readChoice(body["tool_choice"]) ?? readFunctionChoice(body["function_call"]));
  if (getList(body["functions"]).length > 0) options.parallel = false;
}

function readFormat(options: Reading["options"], format: unknown): void {
  if (isAbsent(format)) return;
  const type = getField(format, "type");
  if (type === "json_object") options.json = true;
  else if (type === "json_schema") {
    const declared = getField(format, "json_schema");
    const [name, description] = [getField(declared, "name"), getField(declared, "description")];
    options.schema = {
      name: typeof name === "string" ? name : "answer",
      ...(typeof description === "string" && { description }),
      schema: readSchema(getField(declared, "schema")),
      strict: getField(declared, "strict") === true,
    };
  } else if (type !== "text")
    refuseBody("response_format.type", "expected `text`, `json_object` or `json_schema`.");
}

const CHOICE = "expected `none`, `auto`, `required` or a tool.";

function readChoice(value: unknown): Choice | undefined {
  if (isAbsent(value)) return undefined;
  const allowed = getField(value, "allowed_tools");
  const mode = lookUp(CHOICES, allowed === undefined ? value : getField(allowed, "mode"));
  if (mode !== undefined)
    return allowed === undefined
      ? mode
      : { ...mode, only: getList(getField(allowed, "tools")).map(readNamed) };
  return isObject(value) ? { kind: "tool", name: readNamed(value) } : refuseBody("tool_choice", CHOICE);
}

/** `{type: "function", function: {name}}`. */
function readNamed(tool: unknown): string {
  const named = getField(getField(tool, "function") ?? getField(tool, "custom"), "name");
  return readName(named, "tool_choice.function.name");
}

function readFunctionChoice(value: unknown): Choice | undefined {
  if (isAbsent(value)) return undefined;
  if (isObject(value)) return { kind: "tool", name: readName(value["name"], "function_call.name") };
  return lookUp(CHOICES, value) ?? refuseBody("function_call", CHOICE);
}

function readWishes({ options }: Reading, body: Json): Wishes {
  return {
    usage: getField(body["stream_options"], "include_usage") === true,
    logprobs: body["logprobs"] === true,
    legacy: getList(body["functions"]).length > 0,
    forced: options.choice?.kind === "tool",
  };
}

function readShared(body: Json): Json {
  const { reasoning_effort: effort } = body;
  return {
    ...pickPresent(body, [...SAME, "store", "moderation", "service_tier", "top_logprobs"]),
    ...(isAbsent(effort) ? {} : { reasoning: { effort } }),
    ...(body["logprobs"] === true ? { include: ["message.output_text.logprobs"] } : {}),
    // Nobody asks for it, and it makes each event longer.
    ...(body["stream"] === true ? { stream_options: { include_obfuscation: false } } : {}),
  };
}

// Tools.

function addTool(reading: Reading, value: unknown, path: string): void {
  const tool = requireRecord(value, path);
  const { type } = tool;
  if (type !== "function" && type !== "custom")
    refuseField(`${path}.type`, "expected `function` or `custom`.");
  const declared = requireRecord(tool[type], `${path}.${type}`);
  if (type === "function") return addFunction(reading, declared, `${path}.function`);
  // Chat has it one level deeper.
  const { format } = declared;
  const grammar = getField(format, "grammar");
  reading.tools.push({
    kind: "custom",
    name: readName(declared["name"], `${path}.custom.name`),
    description: getText(declared["description"]),
    schema: { format: isObject(grammar) ? { type: "grammar", ...grammar } : format },
  });
}

function addFunction(reading: Reading, declared: Json, path: string): void {
  reading.tools.push({
    kind: "function",
    name: readName(declared["name"], `${path}.name`),
    description: getText(declared["description"]),
    schema: readSchema(declared["parameters"]),
    strict: declared["strict"] === true,
  });
}

// Messages.

class ChatReading extends Reading {
  /** The upstream speaks the other dialect of OpenAI, and may have stored the client's files. */
  readonly isShared: boolean;
  /** The calls of `function_call` that have no result, by name. They have no ids: their place serves as one. */
  readonly #legacyCalls = new Map<string, string>();

  constructor(to: ReadingFor) {
    super(to);
    this.isShared = to.upstream === "responses";
  }

  add(message: Json, index: number): void {
    const path = `messages[${index}]`;
    const { role, content } = message;
    switch (role) {
      case "system":
      case "developer":
      case "user":
        return this.#say(role, this.#readParts(content, path));
      case "assistant":
        return this.#addAnswer(message, index);
      case "tool":
        return this.#addResult(readName(message["tool_call_id"], `${path}.tool_call_id`), content, path);
      case "function": {
        const name = readName(message["name"], `${path}.name`);
        return this.#addResult(this.#legacyCalls.get(name) ?? name, content, path);
      }
      default:
        refuseBody(`${path}.role`, "expected `system`, `developer`, `user`, `assistant` or `tool`.");
    }
  }

  #say(role: "system" | "developer" | "user", parts: readonly ContentPart[]): void {
    if (parts.length === 0) return;
    const word = role === "system" ? ({ word: role } as const) : {};
    this.items.push({ type: "message", role: role === "user" ? "user" : "system", ...word, parts });
  }

  #addResult(id: string, content: unknown, path: string): void {
    this.items.push({ type: "result", id, parts: this.#readParts(content, path), failed: false });
  }

  /** Its thoughts come first, if the client has kept them. */
  #addAnswer(message: Json, index: number): void {
    const path = `messages[${index}]`;
    const {
      content,
      reasoning_content: thoughts,
      reasoning_details: details,
      refusal,
      function_call,
    } = message;
    const text = getText(thoughts);
    for (const detail of getList(details))
      this.items.push({ type: "reasoning", text, seal: this.openSeal(getField(detail, "data")) });
    const parts = isAbsent(content) ? [] : this.#readParts(content, path);
    // https://platform.openai.com/docs/guides/prompt-caching
    if (this.isShared && parts.some(({ cache }) => cache === true))
      refuseField(`${path}.content`, "the model's own words cannot mark a cache.");
    this.say("assistant", [
      ...parts,
      ...readText(refusal).map((part) => ({ ...part, refusal: true as const })),
    ]);
    for (const [at, call] of getList(message["tool_calls"]).entries())
      this.#addCall(requireRecord(call, `${path}.tool_calls[${at}]`), `${path}.tool_calls[${at}]`);
    if (!isAbsent(function_call)) {
      const name = readName(getField(function_call, "name"), `${path}.function_call.name`);
      this.#legacyCalls.set(name, `call_legacy_${index}`);
      this.#addCall({ id: `call_legacy_${index}`, function: function_call }, `${path}.function_call`);
    }
  }

  #addCall(call: Json, path: string): void {
    const custom = call["type"] === "custom";
    const declared = custom ? call["custom"] : call["function"];
    const input = getField(declared, custom ? "input" : "arguments");
    this.items.push({
      type: "call",
      id: readName(call["id"], `${path}.id`),
      name: readName(getField(declared, "name"), `${path}.${custom ? "custom" : "function"}.name`),
      custom,
      input: typeof input === "string" ? input : JSON.stringify(input ?? {}),
    });
  }

  #readParts(content: unknown, path: string): ContentPart[] {
    if (typeof content === "string") return readText(content);
    if (!Array.isArray(content)) refuseBody(`${path}.content`, "expected a text or a list.");
    return content.flatMap((part, index) => this.#readPart(part, `${path}.content[${index}]`));
  }

  #readPart(part: unknown, path: string): ContentPart[] {
    const cache = isObject(getField(part, "prompt_cache_breakpoint"));
    const mark = cache ? { cache } : {};
    const type = getField(part, "type");
    switch (type) {
      case "text":
        return readText(getField(part, "text"), cache);
      case "refusal":
        return readText(getField(part, "refusal")).map((text) => ({ ...text, refusal: true }));
      case "image_url":
        return [{ ...readImage(getField(part, "image_url"), path), ...mark }];
      case "file":
        return [{ ...this.#readFile(getField(part, "file"), path), ...mark }];
      case "input_audio":
        return refuseField(path, "the channels of this group take no sound.");
      default:
        if (this.isShared) refuseBody(`${path}.type`, "expected `text`, `image_url` or `file`.");
        this.notes.add(`content:${getText(type)}`);
        return [];
    }
  }

  #readFile(file: unknown, path: string): MediaPart {
    const [url, stored, filename] = ["file_data", "file_id", "filename"].map((name) => getField(file, name));
    const name = typeof filename === "string" ? filename : null;
    if (typeof url === "string") return { kind: "file", at: path, url, name };
    if (!this.isShared || typeof stored !== "string")
      refuseField(`${path}.file.file_id`, "this file is in another provider's store.");
    return { kind: "file", at: path, url: stored, name, isStored: true };
  }
}

function readImage(image: unknown, path: string): MediaPart {
  const [url, detail] = [getField(image, "url"), getField(image, "detail")];
  if (typeof url !== "string") refuseBody(`${path}.image_url.url`, "expected an address.");
  return { kind: "image", at: path, url, name: null, ...(typeof detail === "string" && { detail }) };
}
