// The chat dialect. https://platform.openai.com/docs/api-reference/chat/create

import { getField, isObject, listIn, lookUp } from "../../lib/json/json.ts";
import { type AnswerSchema, type Choice, OPENAI_OPTIONS } from "../neutral/conversation.ts";
import { asIs, byCode, listFields, nearest, openTable, same } from "../neutral/fields.ts";
import { nameTool, parseSchema } from "../neutral/tools.ts";
import { type Json, refuseBody } from "../neutral/notes.ts";
import {
  CHOICES,
  nameIn,
  READ,
  readAnswerSchema,
  readName,
  UNKNOWN_CHOICE,
} from "../neutral/read-request.ts";
import { fitsStrict, readEffort } from "../provider-rules.ts";

export const CHAT_FIELDS = openTable([
  ...listFields("", {
    kept: "model messages tools functions stream",
    silent: "seed",
    refused: "logit_bias frequency_penalty presence_penalty audio prediction",
  }),
  { path: "n", rule: "refused", unless: (value) => value === 1 },
  {
    path: "modalities",
    rule: "refused",
    unless: (value) => Array.isArray(value) && value.every((each) => each === "text"),
  },
  // An empty object is not a default: it asks for a search, too.
  { path: "web_search_options", rule: "refused", unless: (value) => !isObject(value) },
  ...listFields("messages[]", {
    kept: "role content refusal tool_calls tool_call_id function_call reasoning_content reasoning_details",
    silent: "annotations parsed reasoning",
    noted: "name",
    refused: "audio",
  }),
  ...listFields("messages[].content[]", {
    kept:
      "type text refusal image_url.url file.file_data file.file_id " +
      "file.filename input_audio prompt_cache_breakpoint",
    silent: "cache_control",
  }),
  {
    path: "messages[].content[].image_url.detail",
    option: "detail",
    read: byCode,
    write: byCode,
    near: true,
  },
  ...listFields("messages[].tool_calls[]", {
    kept: "id type function.name function.arguments custom.name custom.input",
    silent: "index function.parsed_arguments",
  }),
  ...listFields("messages[].function_call", { kept: "name arguments" }),
  ...listFields("tools[]", { kept: "type", silent: "cache_control" }),
  same("name", "tools[].function.name", READ.name),
  same("description", "tools[].function.description", READ.word),
  same("parameters", "tools[].function.parameters", READ.object),
  {
    path: "tools[].function.strict",
    option: "strict",
    read: READ.true,
    write: (isStrict) => isStrict || undefined,
    near: true,
  },
  { path: "tools[].custom.name", option: "name", read: READ.name },
  { path: "tools[].custom.description", option: "description", read: READ.word },
  { path: "tools[].custom.format", option: "format", read: readGrammar, write: byCode, near: true },
  { path: "functions[].name", option: "name", read: READ.name },
  { path: "functions[].description", option: "description", read: READ.word },
  { path: "functions[].parameters", option: "parameters", read: READ.object },
  { path: "function_call", option: "choice", read: readFunctionChoice },
  { path: "tool_choice", option: "choice", read: readChoice, write: writeChoice },
  same("parallel", "parallel_tool_calls", READ.flag),
  ...listFields("stream_options", { kept: "include_usage", silent: "include_obfuscation" }),
  {
    path: "max_tokens",
    option: "cap",
    read: READ.number,
    write: (cap, { to }) => (to.quirks.cap === "max_tokens" ? cap : undefined),
    near: true,
  },
  {
    path: "max_completion_tokens",
    option: "cap",
    read: READ.number,
    write: (cap, { to }) => (to.quirks.cap === "max_completion_tokens" ? cap : undefined),
    near: true,
  },
  same("temperature", "temperature", READ.number),
  same("top_p", "top_p", READ.number),
  nearest("top_k", "top_k", READ.number),
  same("stop", "stop", READ.texts),
  { path: "reasoning_effort", option: "own_effort", read: asIs },
  { path: "reasoning_effort", option: "effort", read: readEffort, write: byCode, near: true },
  { path: "reasoning_effort", option: "thoughts", read: () => true, write: byCode },
  ...listFields("response_format", { kept: "type json_schema.name json_schema.description" }),
  ...listFields("response_format.json_schema", { kept: "schema strict" }),
  {
    path: "response_format",
    label: "response_format.json_object",
    option: "json",
    read: (format) => (getField(format, "type") === "json_object" ? true : undefined),
    write: () => ({ type: "json_object" }),
  },
  {
    path: "response_format",
    label: "response_format.json_schema",
    option: "schema",
    read: readFormat,
    write: writeFormat,
    near: true,
  },
  nearest("verbosity", "verbosity", READ.word),
  nearest("tier", "service_tier", READ.tier),
  { path: "logprobs", option: "logprobs", read: READ.true },
  ...OPENAI_OPTIONS.map((option) => ({ path: option, option, read: asIs })),
]);

function readGrammar(format: unknown): Json | undefined {
  const grammar = getField(format, "grammar");
  return isObject(grammar) ? { type: "grammar", ...grammar } : READ.object(format);
}

function readFormat(format: unknown): AnswerSchema | undefined {
  const type = getField(format, "type");
  if (type === "json_schema") return readAnswerSchema(READ.object(getField(format, "json_schema")) ?? {});
  if (type === "text" || type === "json_object") return undefined;
  return refuseBody("response_format.type", "expected `text`, `json_object` or `json_schema`.");
}

function writeFormat({ schema: text, ...declared }: AnswerSchema): Json {
  const schema = parseSchema(text);
  const strict = declared.strict && fitsStrict(schema);
  return { type: "json_schema", json_schema: { ...declared, schema, strict } };
}

function readChoice(value: unknown): Choice {
  const allowed = getField(value, "allowed_tools");
  const mode = lookUp(CHOICES, allowed === undefined ? value : getField(allowed, "mode"));
  if (mode !== undefined)
    return allowed === undefined ? mode : { ...mode, only: listIn(allowed, "tools").map(readNamed) };
  return isObject(value)
    ? { kind: "tool", name: readNamed(value) }
    : refuseBody("tool_choice", UNKNOWN_CHOICE);
}

function readNamed(tool: unknown): string {
  const named = getField(getField(tool, "function") ?? getField(tool, "custom"), "name");
  return readName(named, "tool_choice.function.name");
}

function readFunctionChoice(value: unknown): Choice {
  if (isObject(value)) return { kind: "tool", name: nameIn(value, "name", "function_call") };
  return lookUp(CHOICES, value) ?? refuseBody("function_call", UNKNOWN_CHOICE);
}

function writeChoice(choice: Choice): unknown {
  if (choice.kind === "tool") return { type: "function", function: { name: nameTool(choice.name, "chat") } };
  return choice.kind === "any" ? "required" : choice.kind;
}
