// The responses dialect.
// https://platform.openai.com/docs/api-reference/responses/create

import { getField, isObject, listIn, lookUp, type Table } from "../../lib/json/json.ts";
import { type AnswerSchema, type Choice, type Effort, OPENAI_OPTIONS } from "../neutral/conversation.ts";
import {
  asIs,
  byCode,
  ifFilled,
  listFields,
  nearest,
  openTable,
  type Rule,
  same,
  type Writing,
} from "../neutral/fields.ts";
import { nameTool, parseSchema } from "../neutral/tools.ts";
import { type Json, refuseBody } from "../neutral/notes.ts";
import { CHOICES, READ, readAnswerSchema, UNKNOWN_CHOICE } from "../neutral/read-request.ts";
import { fitsStrict, readEffort, writeOpenaiEffort } from "../provider-rules.ts";

const PART = {
  kept: "type text refusal image_url file_data file_url file_id filename",
  silent: "annotations logprobs parsed prompt_cache_breakpoint",
} as const;

/** Rules for OPENAI_OPTIONS. An option without a rule changes no answer. */
const OWN_RULES: Table<Rule> = {
  store: "noted",
  moderation: "noted",
  top_logprobs: "refused",
};

export const RESPONSES_FIELDS = openTable([
  ...listFields("", {
    kept: "model input instructions tools stream",
    silent: "reasoning.context include client_metadata access_programs stream_options",
    refused: "previous_response_id conversation background prompt max_tool_calls context_management",
  }),
  { path: "truncation", rule: "noted", unless: (value) => value === "disabled" },
  ...listFields("input[]", {
    kept:
      "type role content call_id name namespace arguments " +
      "input output action summary encrypted_content tools",
    silent: "id status execution phase parsed_arguments",
  }),
  ...listFields("input[].content[]", PART),
  ...listFields("input[].output[]", PART),
  { path: "input[].content[].detail", option: "detail", read: byCode, write: byCode },
  { path: "input[].output[].detail", option: "detail", read: byCode, write: byCode },
  ...listFields("tools[]", { kept: "type execution tools", silent: "cache_control" }),
  ...listFields("tools[].tools[]", {
    kept: "type name description parameters strict format",
    silent: "cache_control",
  }),
  same("name", "tools[].name", READ.name),
  { path: "tools[].description", option: "description", read: READ.word, write: ifFilled },
  same("parameters", "tools[].parameters", READ.object),
  nearest("strict", "tools[].strict", READ.true),
  same("format", "tools[].format", READ.object),
  same("allowed_domains", "tools[].filters.allowed_domains", READ.filled),
  same("user_location", "tools[].user_location", READ.object),
  nearest("cap", "max_output_tokens", READ.number),
  nearest("temperature", "temperature", READ.number),
  nearest("top_p", "top_p", READ.number),
  { path: "tool_choice", option: "choice", read: readChoice, write: writeChoice },
  same("parallel", "parallel_tool_calls", READ.flag),
  {
    path: "reasoning.effort",
    option: "effort",
    read: readEffort,
    write: (effort: Effort, { to }: Writing) => writeOpenaiEffort(effort, to.model),
    near: true,
  },
  { path: "reasoning.effort", option: "own_effort", write: asIs },
  { path: "reasoning.generate_summary", option: "thoughts", read: readSummary },
  { path: "reasoning.summary", option: "thoughts", read: readSummary, write: writeSummary },
  ...listFields("text.format", { kept: "type name description schema strict" }),
  // Some servers refuse the verbosity without a format.
  { path: "text.format", option: "verbosity", write: () => ({ type: "text" }) },
  {
    path: "text.format",
    label: "text.format.json_schema",
    option: "schema",
    read: readFormat,
    write: writeFormat,
  },
  {
    path: "text.format",
    label: "text.format.json_object",
    option: "json",
    read: (format) => (getField(format, "type") === "json_object" ? true : undefined),
    write: () => ({ type: "json_object" }),
  },
  same("verbosity", "text.verbosity", READ.word),
  same("tier", "service_tier", READ.tier),
  { path: "max_tool_calls", option: "max_uses", write: byCode, near: true },
  { path: "include", option: "logprobs", write: () => ["message.output_text.logprobs"] },
  ...OPENAI_OPTIONS.map((option) => ({
    path: option,
    option,
    rule: OWN_RULES[option] ?? "silent",
    write: asIs,
  })),
]);

function readSummary(summary: unknown): boolean | undefined {
  return typeof summary === "string" ? summary !== "none" : undefined;
}

function writeSummary(isShown: boolean, { options }: Writing): string | undefined {
  return isShown && (options.effort ?? "none") !== "none" ? "auto" : undefined;
}

function readFormat(format: unknown): AnswerSchema | undefined {
  if (!isObject(format) || format["type"] !== "json_schema") return undefined;
  return readAnswerSchema(format, format["strict"] !== false);
}

function writeFormat({ schema: text, strict, ...declared }: AnswerSchema, { conversation }: Writing): Json {
  const schema = parseSchema(text);
  return {
    type: "json_schema",
    ...declared,
    schema,
    strict: strict && (conversation.isShared || fitsStrict(schema)),
  };
}

function readChoice(value: unknown): Choice | undefined {
  if (typeof value === "string") return lookUp(CHOICES, value) ?? refuseBody("tool_choice", UNKNOWN_CHOICE);
  const name = readChosen(value);
  if (name === undefined) return undefined;
  if (name !== "allowed_tools") return { kind: "tool", name };
  const mode = lookUp(CHOICES, getField(value, "mode")) ?? refuseBody("tool_choice.mode", UNKNOWN_CHOICE);
  const only = listIn(value, "tools").map((tool) => readChosen(tool) ?? "");
  return { ...mode, only };
}

function readChosen(value: unknown): string | undefined {
  const [name, type] = [getField(value, "name"), getField(value, "type")];
  if (typeof name === "string") return joinName(getField(value, "namespace"), name);
  if (typeof type !== "string") return undefined;
  return type.startsWith("web_search") ? "web_search" : type;
}

/** Other dialects have only one level of names. */
export function joinName(namespace: unknown, name: string): string {
  return typeof namespace === "string" && namespace !== "" ? `${namespace}__${name}` : name;
}

function writeChoice(choice: Choice, { conversation: { tools } }: Writing): unknown {
  const name = (called: string): Json => {
    const { kind = "function" } = tools.find((tool) => tool.name === called) ?? {};
    return kind === "search" ? { type: "web_search" } : { type: kind, name: nameTool(called, "responses") };
  };
  if (choice.kind === "tool") return name(choice.name);
  const mode = choice.kind === "any" ? "required" : choice.kind;
  return choice.only === undefined ? mode : { type: "allowed_tools", mode, tools: choice.only.map(name) };
}
