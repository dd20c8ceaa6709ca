// A request of a content client → a conversation. Its path names the model.
// https://ai.google.dev/api/generate-content

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { type Json, requireList, requireRecord } from "../common/strict-json.ts";
import type { Choice, ContentPart, Conversation } from "../turn/conversation.ts";
import { readEffort } from "../turn/effort.ts";
import { checkFields, type FieldRules } from "../turn/fields.ts";
import { refuseField } from "../turn/notes.ts";
import { type OpenSeal, Reading, readName, readText, setNumbers, setOption } from "./reading.ts";

export const CONTENT_FIELDS: FieldRules = {
  contents: "kept",
  systemInstruction: "kept",
  tools: "kept",
  "toolConfig.functionCallingConfig": ["choice"],
  safetySettings: "silent",
  labels: "silent",
  model: "silent",
  cachedContent: "refused",
};

export const CONTENT_CONFIG_FIELDS: FieldRules = {
  maxOutputTokens: ["cap"],
  temperature: ["temperature"],
  topP: ["top_p"],
  topK: ["top_k"],
  stopSequences: ["stop"],
  thinkingConfig: ["effort", "thoughts"],
  responseMimeType: ["json"],
  responseSchema: ["schema"],
  responseJsonSchema: ["schema"],
  seed: "silent",
  mediaResolution: "noted",
  candidateCount: "refused",
  responseModalities: "refused",
  frequencyPenalty: "refused",
  presencePenalty: "refused",
  responseLogprobs: "refused",
  logprobs: "refused",
  speechConfig: "refused",
};

/** Some clients write these names with underscores. */
const SPELLINGS: Readonly<Record<string, string>> = {
  system_instruction: "systemInstruction",
  generation_config: "generationConfig",
  tool_config: "toolConfig",
  safety_settings: "safetySettings",
  cached_content: "cachedContent",
};

export function readContentRequest(sent: Json, openSeal: OpenSeal): Conversation {
  const body: Json = Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [lookUp(SPELLINGS, name) ?? name, value]),
  );
  const { generationConfig, ...others } = body;
  const reading = new Reading(openSeal);
  const config: Json = isObject(generationConfig) ? { ...generationConfig } : {};
  checkFields(others, CONTENT_FIELDS, reading.notes);
  const isPlain = getList(config["responseModalities"]).every((each) => each === "TEXT");
  const checked = { ...config, ...(isPlain && { responseModalities: null }) };
  checkFields(checked, CONTENT_CONFIG_FIELDS, reading.notes, { candidateCount: 1 });
  readOptions(reading, config);
  const calling = getField(body["toolConfig"], "functionCallingConfig");
  setOption(reading.options, "choice", readChoice(calling));
  for (const tool of getList(body["tools"])) addTools(reading, requireRecord(tool, "tools"));
  const system = body["systemInstruction"];
  reading.say("system", typeof system === "string" ? readText(system) : readTexts(system));
  const calls = new CallIds();
  for (const [index, value] of requireList(body["contents"], "contents").entries())
    addContent(reading, value, calls, index);
  return reading.finish("content", { ...CONTENT_FIELDS, ...CONTENT_CONFIG_FIELDS }, body);
}

function readTexts(content: unknown): ContentPart[] {
  return getList(getField(content, "parts")).flatMap((part) => readText(getField(part, "text")));
}

// Options.

function readOptions({ options }: Reading, config: Json): void {
  setNumbers(options, config, CONTENT_CONFIG_FIELDS);
  const stops = getList(config["stopSequences"]).filter((each) => typeof each === "string");
  if (stops.length > 0) options.stop = stops;
  const thinking = config["thinkingConfig"];
  const level = getField(thinking, "thinkingLevel") ?? getField(thinking, "thinkingBudget");
  setOption(options, "effort", readEffort(level));
  if (getField(thinking, "includeThoughts") === true) {
    options.thoughts = true;
    options.effort ??= "medium";
  }
  const schema = config["responseJsonSchema"] ?? config["responseSchema"];
  if (isObject(schema)) options.schema = { name: "answer", schema: correctSchema(schema), strict: true };
  else if (config["responseMimeType"] === "application/json") options.json = true;
}

const MODES: Readonly<Record<string, Choice>> = {
  AUTO: { kind: "auto" },
  ANY: { kind: "any" },
  NONE: { kind: "none" },
};

function readChoice(config: unknown): Choice | undefined {
  const names = getList(getField(config, "allowedFunctionNames"));
  const [name] = names;
  if (names.length === 1 && typeof name === "string") return { kind: "tool", name };
  return lookUp(MODES, getField(config, "mode"));
}

/** The provider's own schemas have types in capitals. */
function correctSchema(schema: unknown): Json {
  if (!isObject(schema)) return {};
  return Object.fromEntries(
    Object.entries(schema).map(([name, value]): [string, unknown] => {
      if (name === "type" && typeof value === "string") return [name, value.toLowerCase()];
      if (name === "properties" && isObject(value))
        return [
          name,
          Object.fromEntries(Object.entries(value).map(([key, each]) => [key, correctSchema(each)])),
        ];
      if (name === "items") return [name, correctSchema(value)];
      return [name, name === "anyOf" ? getList(value).map(correctSchema) : value];
    }),
  );
}

// Tools.

function addTools(reading: Reading, tool: Json): void {
  for (const kind of Object.keys(tool)) {
    if (kind === "functionDeclarations" || kind === "function_declarations")
      for (const declared of getList(tool[kind])) addFunction(reading, declared);
    else if (kind === "googleSearch" || kind === "google_search")
      reading.tools.push({ kind: "search", name: "web_search", description: "", schema: {} });
    else refuseField(`tools.${kind}`, "the channels of this group do not have this tool.");
  }
}

function addFunction(reading: Reading, declared: unknown): void {
  const schema = getField(declared, "parametersJsonSchema") ?? getField(declared, "parameters");
  reading.tools.push({
    kind: "function",
    name: readName(getField(declared, "name"), "tools.functionDeclarations.name"),
    description: getText(getField(declared, "description")),
    schema: isObject(schema) ? correctSchema(schema) : { type: "object", properties: {} },
  });
}

// Contents.

/** Most clients of this dialect send no ids: calls and results belong together by name and order. */
class CallIds {
  readonly #open = new Map<string, Set<string>>();

  call(id: unknown, name: string, place: string): string {
    const own = typeof id === "string" && id !== "" ? id : `call_${place}`;
    this.#openOf(name).add(own);
    return own;
  }

  result(id: unknown, name: string, place: string): string {
    const open = this.#openOf(name);
    const [first = `call_${place}`] = open;
    const own = typeof id === "string" && id !== "" ? id : first;
    open.delete(own);
    return own;
  }

  #openOf(name: string): Set<string> {
    const open = this.#open.get(name) ?? new Set();
    this.#open.set(name, open);
    return open;
  }
}

function addContent(reading: Reading, content: unknown, calls: CallIds, index: number): void {
  const role = getField(content, "role") === "model" ? "assistant" : "user";
  let said: ContentPart[] = [];
  const flush = (): void => {
    reading.say(role, said);
    said = [];
  };
  for (const [at, part] of getList(getField(content, "parts")).entries()) {
    const call = getField(part, "functionCall");
    const response = getField(part, "functionResponse");
    const place = `${index}_${at}`;
    if (addThoughts(reading, part, flush)) continue;
    if (isObject(call)) {
      flush();
      const name = readName(call["name"], "contents.parts.functionCall.name");
      const id = calls.call(call["id"], name, place);
      reading.items.push({
        type: "call",
        id,
        name,
        custom: false,
        input: JSON.stringify(call["args"] ?? {}),
      });
    } else if (isObject(response)) {
      flush();
      const name = readName(response["name"], "contents.parts.functionResponse.name");
      addResult(reading, response, calls.result(response["id"], name, place));
    } else said.push(...readPart(reading, part));
  }
  flush();
}

/** The thoughts before a part are in the envelope of its signature. True if there is nothing else in it. */
function addThoughts(reading: Reading, part: unknown, flush: () => void): boolean {
  const opened = reading.openSeal(getField(part, "thoughtSignature"));
  for (const each of getList(opened?.["thoughts"])) {
    const seal = getField(each, "seal");
    flush();
    reading.items.push({
      type: "reasoning",
      text: getText(getField(each, "text")),
      seal: isObject(seal) ? { ...seal } : null,
    });
  }
  return getField(part, "thought") === true;
}

function addResult(reading: Reading, response: Readonly<Record<string, unknown>>, id: string): void {
  const body = response["response"];
  const failed = getField(body, "error") !== undefined;
  const only = isObject(body) && Object.keys(body).length === 1 ? Object.values(body)[0] : undefined;
  const text = typeof only === "string" ? only : JSON.stringify(body ?? {});
  const media = getList(response["parts"]).flatMap((part) => readPart(reading, part));
  reading.items.push({ type: "result", id, parts: [...readText(text), ...media], failed });
}

function readPart(reading: Reading, part: unknown): ContentPart[] {
  const text = getField(part, "text");
  if (typeof text === "string") return readText(text);
  const data = getField(part, "inlineData");
  const file = getField(part, "fileData");
  const type = String(getField(data ?? file, "mimeType"));
  const kind = type.startsWith("image/") ? "image" : "file";
  if (isObject(data)) return [{ kind, url: `data:${type};base64,${String(data["data"])}`, name: null }];
  if (isObject(file)) return [{ kind, url: String(file["fileUri"]), name: null }];
  reading.notes.add(`contents:${Object.keys(isObject(part) ? part : {}).join("+")}`);
  return [];
}
