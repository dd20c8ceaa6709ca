// tools, functions and tool_choice. Chat nests what Responses has flat. `strict` is always written: the two APIs have
// different defaults.

import { isObject } from "../../../lib/json/json.ts";
import {
  isAbsent,
  type Json,
  pickPresent,
  readBoolean,
  refuse,
  refuseMissing,
  refuseType,
  refuseValue,
  rejectSecondKind,
  rejectUnknown,
  requireList,
  requireRecord,
  requireString,
} from "../../common/strict-json.ts";

export interface ConvertedTools {
  /** `tools`, `tool_choice` and `parallel_tool_calls` of the upstream's request. */
  readonly fields: Json;
  readonly kinds: readonly ("function" | "custom")[];
  readonly legacy: boolean;
  readonly forced: boolean;
}

const TOOL_KEYS = new Set(["type", "function", "custom"]);
const FUNCTION_KEYS = new Set(["name", "description", "parameters", "strict"]);
const LEGACY_KEYS = new Set(["name", "description", "parameters"]);
const CUSTOM_KEYS = new Set(["name", "description", "format"]);
const MODES = ["none", "auto", "required"];

export function convertTools(request: Json): ConvertedTools {
  const { tools, functions } = request;
  if (!isAbsent(tools) && !isAbsent(functions)) {
    refuse("invalid_value", "functions", "'functions' and 'tools' cannot be used together. Use 'tools'.");
  }
  return isAbsent(functions) ? convertToolList(request) : convertFunctionList(request);
}

function convertToolList(request: Json): ConvertedTools {
  const { tools, tool_choice: choice, parallel_tool_calls: parallel } = request;
  requireTogether(request, "function_call", "functions");
  if (isAbsent(tools)) {
    requireTogether(request, "tool_choice", "tools");
    requireTogether(request, "parallel_tool_calls", "tools");
    return { fields: {}, kinds: [], legacy: false, forced: false };
  }
  const converted = requireList(tools, "tools").map((tool, index) => convertTool(tool, `tools[${index}]`));
  const fields: Json = { tools: converted };
  if (!isAbsent(choice)) fields["tool_choice"] = convertChoice(choice);
  if (!isAbsent(parallel)) fields["parallel_tool_calls"] = readBoolean(parallel, "parallel_tool_calls");
  return {
    fields,
    kinds: converted.map((tool) => (tool["type"] === "custom" ? "custom" : "function")),
    legacy: false,
    forced: isObject(choice) && choice["type"] !== "allowed_tools",
  };
}

/** A legacy answer can carry one call only, so the request allows one only. */
function convertFunctionList(request: Json): ConvertedTools {
  requireTogether(request, "tool_choice", "tools");
  requireTogether(request, "parallel_tool_calls", "tools");
  const tools = requireList(request["functions"], "functions").map((value, index) => {
    const path = `functions[${index}]`;
    const declared = requireRecord(value, path);
    rejectUnknown(declared, LEGACY_KEYS, path);
    return convertFunction(declared, path);
  });
  const choice = request["function_call"];
  const fields: Json = { tools, parallel_tool_calls: false };
  if (!isAbsent(choice)) fields["tool_choice"] = convertFunctionChoice(choice);
  return { fields, kinds: tools.map(() => "function"), legacy: true, forced: isObject(choice) };
}

function requireTogether(request: Json, field: string, company: string): void {
  if (isAbsent(request[field]) || !isAbsent(request[company])) return;
  const rule = `'${field}' is only allowed when '${company}' are specified.`;
  refuse("invalid_value", field, `Invalid value for '${field}': ${rule}`);
}

function convertTool(value: unknown, path: string): Json {
  const tool = requireRecord(value, path);
  const type = requireString(tool["type"], `${path}.type`);
  if (type !== "function" && type !== "custom") refuseValue(`${path}.type`, type, ["function", "custom"]);
  rejectUnknown(tool, TOOL_KEYS, path);
  rejectSecondKind(tool, type, path);
  const declared = requireRecord(tool[type], `${path}.${type}`);
  if (type === "custom") return convertCustom(declared, `${path}.custom`);
  rejectUnknown(declared, FUNCTION_KEYS, `${path}.function`);
  return convertFunction(declared, `${path}.function`);
}

function convertFunction(declared: Json, path: string): Json {
  const { parameters } = declared;
  if (!isAbsent(parameters)) requireRecord(parameters, `${path}.parameters`);
  return {
    type: "function",
    name: requireString(declared["name"], `${path}.name`),
    ...pickPresent(declared, ["description"]),
    parameters: parameters ?? { type: "object", properties: {} },
    strict: readBoolean(declared["strict"], `${path}.strict`) ?? false,
  };
}

function convertCustom(declared: Json, path: string): Json {
  rejectUnknown(declared, CUSTOM_KEYS, path);
  const tool: Json = {
    type: "custom",
    name: requireString(declared["name"], `${path}.name`),
    ...pickPresent(declared, ["description"]),
  };
  if (!isAbsent(declared["format"]))
    tool["format"] = convertCustomFormat(declared["format"], `${path}.format`);
  return tool;
}

function convertCustomFormat(value: unknown, path: string): Json {
  const format = requireRecord(value, path);
  const type = requireString(format["type"], `${path}.type`);
  if (type === "text") {
    rejectUnknown(format, new Set(["type"]), path);
    return { type };
  }
  if (type !== "grammar") refuseValue(`${path}.type`, type, ["text", "grammar"]);
  rejectUnknown(format, new Set(["type", "grammar"]), path);
  const grammar = requireRecord(format["grammar"], `${path}.grammar`);
  rejectUnknown(grammar, new Set(["syntax", "definition"]), `${path}.grammar`);
  return {
    type,
    syntax: requireString(grammar["syntax"], `${path}.grammar.syntax`),
    definition: requireString(grammar["definition"], `${path}.grammar.definition`),
  };
}

function convertChoice(choice: unknown): unknown {
  if (typeof choice === "string") {
    return MODES.includes(choice) ? choice : refuseValue("tool_choice", choice, MODES);
  }
  if (!isObject(choice)) refuseType("tool_choice", "one of a string or object", choice);
  if (choice["type"] !== "allowed_tools") return convertNamed(choice, "tool_choice");
  rejectUnknown(choice, new Set(["type", "allowed_tools"]), "tool_choice");
  const path = "tool_choice.allowed_tools";
  const allowed = requireRecord(choice["allowed_tools"], path);
  rejectUnknown(allowed, new Set(["mode", "tools"]), path);
  return {
    type: "allowed_tools",
    mode: requireString(allowed["mode"], `${path}.mode`),
    tools: requireList(allowed["tools"], `${path}.tools`).map((tool, index) => {
      const at = `${path}.tools[${index}]`;
      return convertNamed(requireRecord(tool, at), at);
    }),
  };
}

/** `{type, function: {name}}` → `{type, name}`. */
function convertNamed(choice: Json, path: string): Json {
  const type = requireString(choice["type"], `${path}.type`);
  if (type !== "function" && type !== "custom") {
    refuseValue(`${path}.type`, type, ["function", "custom", "allowed_tools"]);
  }
  rejectUnknown(choice, new Set(["type", type]), path);
  const named = requireRecord(choice[type], `${path}.${type}`);
  rejectUnknown(named, new Set(["name"]), `${path}.${type}`);
  return { type, name: requireString(named["name"], `${path}.${type}.name`) };
}

function convertFunctionChoice(choice: unknown): unknown {
  if (typeof choice === "string") {
    return choice === "none" || choice === "auto"
      ? choice
      : refuseValue("function_call", choice, ["none", "auto"]);
  }
  if (!isObject(choice)) refuseType("function_call", "one of a string or object", choice);
  rejectUnknown(choice, new Set(["name"]), "function_call");
  if (isAbsent(choice["name"])) refuseMissing("function_call.name");
  return { type: "function", name: requireString(choice["name"], "function_call.name") };
}
