// The top-level fields of a chat request: which keep their name, which are accepted without effect, which are refused
// unless their value changes nothing.

import { isObject } from "../../../lib/json/json.ts";
import {
  isAbsent,
  type Json,
  pickPresent,
  readBoolean,
  readInteger,
  readString,
  refuse,
  refuseMissing,
  refuseUnsupported,
  refuseUnsupportedValue,
  refuseValue,
  rejectUnknown,
  requireRecord,
  requireString,
} from "../../common/strict-json.ts";
import type { BridgeContext } from "../context.ts";

const SAME_NAME = [
  "temperature",
  "top_p",
  "metadata",
  "user",
  "safety_identifier",
  "prompt_cache_key",
  "prompt_cache_retention",
  "prompt_cache_options",
  "service_tier",
  "moderation",
];

/** Each of these has its own function, here or in messages.ts and tools.ts. */
const CONVERTED = [
  "model",
  "messages",
  "max_tokens",
  "max_completion_tokens",
  "logprobs",
  "top_logprobs",
  "response_format",
  "verbosity",
  "reasoning_effort",
  "tools",
  "functions",
  "tool_choice",
  "function_call",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "store",
];

/** "Best effort, not guaranteed" at the native endpoint. Some clients send it with every request. */
const WITHOUT_EFFECT = ["seed"];

/** Responses has no such field. Refused unless the value changes nothing. */
const REFUSED: Readonly<Record<string, (value: unknown, name: string) => void>> = {
  n: (value, name) => {
    if (value !== 1)
      refuseUnsupportedValue(name, quoteValue(value), " Only the default (1) value is supported.");
  },
  modalities: (value, name) => {
    const unsupported = Array.isArray(value) ? value.find((each) => each !== "text") : value;
    if (unsupported !== undefined)
      refuseUnsupportedValue(name, quoteValue(unsupported), " Only 'text' is supported.");
  },
  stop: (value, name) => {
    if (value !== "" && !(Array.isArray(value) && value.length === 0)) refuseUnsupported(name);
  },
  logit_bias: (value, name) => {
    if (!isObject(value) || Object.keys(value).length > 0) refuseUnsupported(name);
  },
  frequency_penalty: refuseNonZero,
  presence_penalty: refuseNonZero,
  audio: (_value, name) => refuseUnsupported(name),
  prediction: (_value, name) => refuseUnsupported(name),
  web_search_options: (_value, name) =>
    refuse("unsupported_parameter", name, "Web search options not supported with this model."),
};

const KNOWN = new Set([...SAME_NAME, ...CONVERTED, ...WITHOUT_EFFECT, ...Object.keys(REFUSED)]);

/** Fields that have the same name and meaning in both APIs. */
export const SHARED_NAMES: ReadonlySet<string> = new Set([
  ...SAME_NAME,
  "model",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "top_logprobs",
  "stream",
  "store",
]);

/** Refuses unknown fields, and fields without a counterpart whose value would change the answer. */
export function rejectUnsupported(request: Json): void {
  rejectUnknown(request, KNOWN, "");
  for (const [name, rule] of Object.entries(REFUSED)) {
    if (!isAbsent(request[name])) rule(request[name], name);
  }
}

export function copySameName(request: Json): Json {
  const { user } = request;
  if (typeof user === "string" && user.length > MAX_USER_CHARACTERS) {
    const limit = `Expected a string with maximum length ${MAX_USER_CHARACTERS}, but got a string with length ${user.length} instead.`;
    refuse("string_above_max_length", "user", `Invalid 'user': string too long. ${limit}`);
  }
  return pickPresent(request, SAME_NAME);
}

const MAX_USER_CHARACTERS = 64;

export interface TokenCap {
  readonly field: BridgeContext["maxTokensField"];
  /** Null: no cap. */
  readonly value: number | null;
  readonly raised: boolean;
}

/** Responses refuses a smaller cap. */
const MIN_OUTPUT_TOKENS = 16;

export function readTokenCap(request: Json): TokenCap {
  const old = readInteger(request["max_tokens"], "max_tokens");
  const current = readInteger(request["max_completion_tokens"], "max_completion_tokens");
  if (old !== null && current !== null) {
    const rule = "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.";
    refuse("invalid_parameter_combination", "max_tokens", rule);
  }
  const field = old === null ? "max_completion_tokens" : "max_tokens";
  const cap = old ?? current;
  if (cap !== null && cap < 1) {
    const expected = `Expected a value >= 1, but got ${cap} instead.`;
    refuse("integer_below_min_value", field, `Invalid '${field}': integer below minimum value. ${expected}`);
  }
  const raised = cap !== null && cap < MIN_OUTPUT_TOKENS;
  return { field, value: raised ? MIN_OUTPUT_TOKENS : cap, raised };
}

/** `text` of the upstream's request holds the format and the verbosity. */
export function convertText(request: Json): Json {
  const { response_format: format, verbosity } = request;
  const text: Json = {};
  if (!isAbsent(format)) text["format"] = convertResponseFormat(format);
  if (!isAbsent(verbosity)) text["verbosity"] = verbosity;
  return Object.keys(text).length === 0 ? {} : { text };
}

const FORMATS = ["text", "json_object", "json_schema"];
const SCHEMA_KEYS = new Set(["name", "description", "schema", "strict"]);

function convertResponseFormat(value: unknown): Json {
  const format = requireRecord(value, "response_format");
  const type = requireString(format["type"], "response_format.type");
  if (!FORMATS.includes(type)) refuseValue("response_format.type", type, FORMATS);
  if (type !== "json_schema") {
    rejectUnknown(format, new Set(["type"]), "response_format");
    return { type };
  }
  rejectUnknown(format, new Set(["type", "json_schema"]), "response_format");
  const path = "response_format.json_schema";
  const declared = requireRecord(format["json_schema"], path);
  rejectUnknown(declared, SCHEMA_KEYS, path);
  if (isAbsent(declared["schema"])) refuseMissing(`${path}.schema`);
  return {
    type,
    name: requireString(declared["name"], `${path}.name`),
    ...pickPresent(declared, ["description"]),
    schema: requireRecord(declared["schema"], `${path}.schema`),
    strict: readBoolean(declared["strict"], `${path}.strict`) ?? false,
  };
}

export function convertReasoning(request: Json): Json {
  const effort = readString(request["reasoning_effort"], "reasoning_effort");
  return effort === null ? {} : { reasoning: { effort } };
}

export function convertLogprobs(request: Json): Json {
  const wanted = readBoolean(request["logprobs"], "logprobs") ?? false;
  const top = request["top_logprobs"];
  if (!wanted && !isAbsent(top)) {
    const rule = "'top_logprobs' is only allowed when 'logprobs' is enabled.";
    refuse("invalid_value", "top_logprobs", `Invalid value for 'top_logprobs': ${rule}`);
  }
  if (!wanted) return {};
  return { include: ["message.output_text.logprobs"], ...pickPresent(request, ["top_logprobs"]) };
}

const STREAM_KEYS = new Set(["include_usage", "include_obfuscation"]);

/** Whether the last chunk carries the usage. Obfuscation is optional, so it is always off. */
export function readIncludeUsage(request: Json, stream: boolean): boolean {
  const options = request["stream_options"];
  if (isAbsent(options)) return false;
  if (!stream) {
    const rule = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
    refuse("invalid_value", "stream_options", `Invalid value for 'stream_options': ${rule}`);
  }
  const record = requireRecord(options, "stream_options");
  rejectUnknown(record, STREAM_KEYS, "stream_options");
  return readBoolean(record["include_usage"], "stream_options.include_usage") ?? false;
}

function refuseNonZero(value: unknown, name: string): void {
  if (value !== 0) refuseUnsupported(name);
}

function quoteValue(value: unknown): string {
  return typeof value === "string" ? `'${value}'` : JSON.stringify(value);
}
