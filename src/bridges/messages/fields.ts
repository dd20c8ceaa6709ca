// The messages dialect. https://platform.claude.com/docs/en/api/messages

import { getField, isObject, lookUp, type Table } from "../../lib/json/json.ts";
import type { AnswerSchema, Choice } from "../neutral/conversation.ts";
import { byCode, ifFilled, listFields, nearest, openTable, same, type Writing } from "../neutral/fields.ts";
import { nameTool, parseSchema } from "../neutral/tools.ts";
import { type Json, refuseBody } from "../neutral/notes.ts";
import { nameIn, READ, readAnswerSchema } from "../neutral/read-request.ts";
import { closeSchema, readEffort, thinksAdaptively } from "../provider-rules.ts";

const BLOCK = {
  kept:
    "type text source title content tool_use_id id name input " +
    "is_error thinking signature data tool_name tools tool url query",
  silent: "cache_control caller page_age encrypted_content encrypted_index",
  noted: "citations context",
} as const;

export const MESSAGES_FIELDS = openTable([
  ...listFields("", {
    kept: "model messages system tools stream",
    silent: "metadata context_management safeguards diagnostics cache_control",
    noted: "speed inference_geo fallbacks thread",
    refused: "mcp_servers container",
  }),
  ...listFields("messages[]", { kept: "role content" }),
  ...listFields("messages[].content[]", BLOCK),
  ...listFields("messages[].content[].content[]", BLOCK),
  ...listFields("system[]", { kept: "type text", silent: "cache_control", noted: "citations" }),
  ...listFields("tools[]", {
    kept: "type",
    silent: "cache_control eager_input_streaming",
    noted: "defer_loading",
  }),
  same("name", "tools[].name", READ.name),
  { path: "tools[].description", option: "description", read: READ.word, write: ifFilled },
  { path: "tools[].description", option: "format", write: byCode, near: true },
  same("parameters", "tools[].input_schema", readParameters),
  { path: "tools[].strict", option: "strict", read: READ.true },
  same("allowed_domains", "tools[].allowed_domains", READ.filled),
  same("blocked_domains", "tools[].blocked_domains", READ.filled),
  same("user_location", "tools[].user_location", READ.object),
  same("max_uses", "tools[].max_uses", READ.number),
  nearest("cap", "max_tokens", READ.number),
  nearest("temperature", "temperature", READ.number),
  nearest("top_p", "top_p", READ.number),
  same("top_k", "top_k", READ.number),
  same("stop", "stop_sequences", READ.texts),
  ...listFields("tool_choice", { kept: "type name" }),
  { path: "tool_choice", option: "choice", read: readChoice, write: writeChoice },
  {
    path: "tool_choice.disable_parallel_tool_use",
    option: "parallel",
    read: (value) => (value === true ? false : undefined),
    write: (isParallel, { options }) => (isParallel || options.choice?.kind === "none" ? undefined : true),
  },
  ...listFields("thinking", { kept: "type" }),
  {
    path: "thinking.budget_tokens",
    label: "thinking",
    option: "effort",
    read: readEffort,
    write: byCode,
    near: true,
  },
  { path: "thinking.display", option: "thoughts", read: (value) => value !== "omitted", write: byCode },
  {
    path: "output_config.effort",
    option: "effort",
    read: readEffort,
    write: (effort, { to }) => (effort !== "none" && thinksAdaptively(to.model) ? effort : undefined),
    near: true,
  },
  { path: "output_config.format", option: "schema", read: readFormat, write: writeFormat },
  { path: "output_format", option: "schema", read: readFormat },
  {
    path: "service_tier",
    option: "tier",
    read: (value) => (value === "standard_only" ? "default" : undefined),
  },
]);

/** Some servers refuse `$schema`. */
function readParameters(value: unknown): Json | undefined {
  if (!isObject(value)) return undefined;
  const { $schema: _, ...plain } = value;
  return plain;
}

function readFormat(format: unknown): AnswerSchema | undefined {
  return getField(format, "type") === "json_schema"
    ? readAnswerSchema({ schema: getField(format, "schema") }, true)
    : undefined;
}

function writeFormat({ schema: text }: AnswerSchema, { conversation }: Writing): Json {
  const { schema, lost } = closeSchema(parseSchema(text));
  if (lost) conversation.notes.addOption("schema");
  return { type: "json_schema", schema };
}

const CHOICES: Table<Choice> = {
  auto: { kind: "auto" },
  any: { kind: "any" },
  none: { kind: "none" },
};

function readChoice(value: unknown): Choice {
  const type = getField(value, "type");
  if (type === "tool") return { kind: "tool", name: nameIn(value, "name", "tool_choice") };
  return lookUp(CHOICES, type) ?? refuseBody("tool_choice.type", "expected `auto`, `any`, `tool` or `none`.");
}

function writeChoice(choice: Choice): Json {
  if (choice.kind !== "tool") return { type: choice.kind };
  return { type: "tool", name: nameTool(choice.name, "messages") };
}
