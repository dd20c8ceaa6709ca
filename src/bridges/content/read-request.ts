// A request of a content client → a conversation. Its path names the model.
// https://ai.google.dev/api/generate-content

import { getField, getList, getText, isObject, lookUp } from "../../lib/json/json.ts";
import { type Json, requireList, requireRecord } from "../neutral/strict-json.ts";
import type { Choice, ContentPart, Conversation, FreeChoice } from "../neutral/conversation.ts";
import { readEffort } from "../neutral/effort.ts";
import { checkFields, listFields, openTable } from "../neutral/fields.ts";
import { refuseBody, refuseField } from "../neutral/notes.ts";
import {
  Reading,
  type ReadingFor,
  readName,
  readStops,
  readText,
  setNumbers,
  setOption,
} from "../neutral/read-request.ts";

const MEDIA = {
  kept: "inlineData.mimeType inlineData.data fileData.mimeType fileData.fileUri",
  silent: "inlineData.displayName fileData.displayName",
} as const;

export const CONTENT_FIELDS = openTable({
  contents: "kept",
  ...listFields("contents[]", { kept: "role parts" }),
  ...listFields("contents[].parts[]", {
    kept: `text thought thoughtSignature functionCall.id functionCall.name functionCall.args functionResponse.id functionResponse.name functionResponse.response functionResponse.parts ${MEDIA.kept}`,
    silent: `${MEDIA.silent} functionResponse.willContinue functionResponse.scheduling`,
  }),
  ...listFields("contents[].parts[].functionResponse.parts[]", MEDIA),
  systemInstruction: "kept",
  ...listFields("systemInstruction", { kept: "parts", silent: "role" }),
  ...listFields("systemInstruction.parts[]", { kept: "text", refused: "inlineData fileData" }),
  tools: "kept",
  ...listFields("tools[]", { kept: "functionDeclarations googleSearch" }),
  ...listFields("tools[].functionDeclarations[]", {
    kept: "name description parameters parametersJsonSchema",
    noted: "behavior response responseJsonSchema",
  }),
  "toolConfig.functionCallingConfig": ["choice"],
  ...listFields("toolConfig.functionCallingConfig", { kept: "mode allowedFunctionNames" }),
  ...listFields("", {
    silent: "safetySettings labels model",
    refused: "cachedContent",
  }),
});

export const CONTENT_CONFIG_FIELDS = openTable({
  maxOutputTokens: ["cap"],
  temperature: ["temperature"],
  topP: ["top_p"],
  topK: ["top_k"],
  stopSequences: ["stop"],
  thinkingConfig: ["effort", "thoughts"],
  ...listFields("thinkingConfig", { kept: "thinkingLevel thinkingBudget includeThoughts" }),
  responseMimeType: ["json"],
  responseSchema: ["schema"],
  responseJsonSchema: ["schema"],
  ...listFields("", {
    silent: "seed",
    noted: "mediaResolution",
    refused:
      "candidateCount responseModalities frequencyPenalty presencePenalty responseLogprobs logprobs speechConfig",
  }),
});

/** An object with the names of its members as the API has them. It takes them with underscores, too, as Google's own examples
 *  write them: https://protobuf.dev/programming-guides/json/ */
function spell(value: unknown): Json {
  if (!isObject(value)) return {};
  if (!Object.keys(value).some((name) => name.includes("_"))) return value;
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [spellName(name), each]));
}

function spellName(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter) => letter.toUpperCase());
}

export function readContentRequest(sent: Json, to: ReadingFor): Conversation {
  const body = spell(sent);
  const { generationConfig, ...others } = body;
  const reading = new Reading(to);
  const config = spell(generationConfig);
  const check = { notes: reading.notes, isShared: false, spell: spellName, harmless: { candidateCount: 1 } };
  checkFields(others, CONTENT_FIELDS, check);
  const isPlain = getList(config["responseModalities"]).every((each) => each === "TEXT");
  const checked = { ...config, ...(isPlain && { responseModalities: null }) };
  checkFields(checked, CONTENT_CONFIG_FIELDS, check);
  readOptions(reading, config);
  const { functionCallingConfig } = spell(body["toolConfig"]);
  setOption(reading.options, "choice", readChoice(spell(functionCallingConfig)));
  for (const tool of getList(body["tools"])) addTools(reading, spell(requireRecord(tool, "tools")));
  const system = body["systemInstruction"];
  reading.say("system", typeof system === "string" ? readText(system) : readTexts(system));
  const calls = new CallIds();
  for (const [index, value] of requireList(body["contents"], "contents").entries())
    addContent(reading, value, calls, index);
  return reading.finish("content", { ...CONTENT_FIELDS.rules, ...CONTENT_CONFIG_FIELDS.rules }, body);
}

function readTexts(content: unknown): ContentPart[] {
  return getList(getField(content, "parts")).flatMap((part) => readText(getField(part, "text")));
}

// Options.

function readOptions({ options }: Reading, config: Json): void {
  setNumbers(options, config, CONTENT_CONFIG_FIELDS.rules);
  setOption(options, "stop", readStops(config["stopSequences"], "stopSequences"));
  const { thinkingLevel, thinkingBudget, includeThoughts } = spell(config["thinkingConfig"]);
  setOption(options, "effort", readEffort(thinkingLevel ?? thinkingBudget));
  if (includeThoughts === true) {
    options.thoughts = true;
    options.effort ??= "medium";
  }
  const schema = config["responseJsonSchema"] ?? config["responseSchema"];
  if (isObject(schema)) options.schema = { name: "answer", schema: correctSchema(schema), strict: true };
  else if (config["responseMimeType"] === "application/json") options.json = true;
}

const MODES: Readonly<Record<string, FreeChoice>> = {
  AUTO: { kind: "auto" },
  ANY: { kind: "any" },
  NONE: { kind: "none" },
  // The next one: nobody else checks the calls of a free choice against their schemas.
  VALIDATED: { kind: "auto" },
};

function readChoice({ allowedFunctionNames, mode }: Json): Choice | undefined {
  const only = getList(allowedFunctionNames).filter((name) => typeof name === "string");
  const choice = lookUp(MODES, mode);
  if (choice === undefined && mode !== undefined && mode !== "MODE_UNSPECIFIED")
    refuseBody("toolConfig.functionCallingConfig.mode", "expected `AUTO`, `ANY`, `NONE` or `VALIDATED`.");
  const [name] = only;
  if (name === undefined) return choice;
  return choice?.kind === "any" && only.length === 1
    ? { kind: "tool", name }
    : { kind: "auto", ...choice, only };
}

const COUNTS = new Set("minItems maxItems minLength maxLength minProperties maxProperties".split(" "));

/** The provider's own schemas have types in capitals, and words that JSON Schema does not have. */
function correctSchema(sent: unknown): Json {
  if (!isObject(sent)) return {};
  const { nullable, propertyOrdering: _, ...schema } = sent;
  const { type } = schema;
  const named = nullable === true && typeof type === "string" ? { ...schema, type: [type, "null"] } : schema;
  return Object.fromEntries(
    Object.entries(named).map(([name, value]): [string, unknown] => {
      if (name === "type" && typeof value === "string") return [name, value.toLowerCase()];
      if (name === "type" && Array.isArray(value))
        return [name, value.map((each) => (typeof each === "string" ? each.toLowerCase() : each))];
      if (name === "properties" && isObject(value))
        return [
          name,
          Object.fromEntries(Object.entries(value).map(([key, each]) => [key, correctSchema(each)])),
        ];
      if (name === "items") return [name, correctSchema(value)];
      // Its numbers of 64 bits are texts: https://protobuf.dev/programming-guides/json/
      if (COUNTS.has(name) && typeof value === "string" && /^\d{1,15}$/.test(value))
        return [name, Number(value)];
      return [name, name === "anyOf" ? getList(value).map(correctSchema) : value];
    }),
  );
}

// Tools.

function addTools(reading: Reading, tool: Json): void {
  for (const kind of Object.keys(tool)) {
    if (kind === "functionDeclarations")
      for (const declared of getList(tool[kind])) addFunction(reading, spell(declared));
    else if (kind === "googleSearch")
      reading.tools.push({ kind: "search", name: "web_search", description: "", schema: {} });
    else refuseField(`tools.${kind}`, "the channels of this group do not have this tool.");
  }
}

function addFunction(reading: Reading, declared: Json): void {
  const schema = declared["parametersJsonSchema"] ?? declared["parameters"];
  reading.tools.push({
    kind: "function",
    name: readName(declared["name"], "tools.functionDeclarations.name"),
    description: getText(declared["description"]),
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
  for (const [at, each] of getList(getField(content, "parts")).entries()) {
    const part = spell(each);
    const { functionCall: call, functionResponse: response } = part;
    const place = `${index}_${at}`;
    if (addThoughts(reading, part, flush)) continue;
    if (isObject(call)) {
      flush();
      const name = readName(call["name"], "contents.parts.functionCall.name");
      const id = calls.call(call["id"], name, place);
      const input = JSON.stringify(call["args"] ?? {});
      reading.items.push({ type: "call", id, name, custom: false, input });
    } else if (isObject(response)) {
      flush();
      const name = readName(response["name"], "contents.parts.functionResponse.name");
      addResult(reading, response, calls.result(response["id"], name, place));
    } else said.push(...readPart(reading, part));
  }
  flush();
}

/** The thoughts before a part are in the envelope of its signature. True if there is nothing else in it. */
function addThoughts(reading: Reading, part: Json, flush: () => void): boolean {
  const opened = reading.openSeal(part["thoughtSignature"]);
  for (const each of getList(opened?.["thoughts"])) {
    const seal = getField(each, "seal");
    flush();
    reading.items.push({
      type: "reasoning",
      text: getText(getField(each, "text")),
      seal: isObject(seal) ? { ...seal } : null,
    });
  }
  return part["thought"] === true;
}

function addResult(reading: Reading, response: Readonly<Record<string, unknown>>, id: string): void {
  const body = response["response"];
  const failed = getField(body, "error") !== undefined;
  const only = isObject(body) && Object.keys(body).length === 1 ? Object.values(body)[0] : undefined;
  const text = typeof only === "string" ? only : JSON.stringify(body ?? {});
  const media = getList(response["parts"]).flatMap((part) => readPart(reading, spell(part)));
  reading.items.push({ type: "result", id, parts: [...readText(text), ...media], failed });
}

/** In Google's store of files. */
const STORED = /^gs:|^https:\/\/generativelanguage\.googleapis\.com\//;

function readPart(reading: Reading, part: Json): ContentPart[] {
  const { text, inlineData, fileData } = part;
  if (typeof text === "string") return readText(text);
  const { mimeType, data, fileUri } = spell(inlineData ?? fileData);
  const [type, address] = [getText(mimeType), getText(fileUri)];
  const kind = type.startsWith("image/") ? "image" : "file";
  const at = "contents.parts";
  if (/^(?:audio|video)\//.test(type))
    refuseField(at, "the channels of this group take no sound and no film.");
  if (isObject(inlineData)) return [{ kind, at, url: `data:${type};base64,${getText(data)}`, name: null }];
  if (STORED.test(address))
    refuseField("contents.parts.fileData.fileUri", "this file is in another provider's store.");
  if (isObject(fileData)) return [{ kind, at, url: address, name: null }];
  reading.notes.add(`contents:${Object.keys(part).join("+")}`);
  return [];
}
