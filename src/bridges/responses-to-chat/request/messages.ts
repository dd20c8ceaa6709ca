// messages → input items, in order, with the origin of each item. Tool calls and their outputs are matched here, so that
// the error for a call without output uses the client's names.

import { lookUp } from "../../../lib/json/json.ts";
import type { ItemOrigin } from "../context.ts";
import {
  isAbsent,
  type Json,
  readString,
  refuse,
  refuseType,
  refuseUnsupported,
  refuseValue,
  rejectSecondKind,
  rejectUnknown,
  requireList,
  requireRecord,
  requireString,
} from "../../common/strict-json.ts";
import { nameCall } from "../../turn/names.ts";
import { convertInput, convertInstructions, convertAssistantContent } from "./parts.ts";

export interface InputItems {
  readonly items: Json[];
  readonly origins: ItemOrigin[];
}

/** A tool call whose output has not come yet. */
interface OpenCall {
  readonly kind: "function" | "custom";
  readonly name: string;
  readonly legacy: boolean;
}

interface InputDraft extends InputItems {
  readonly open: Map<string, OpenCall>;
}

type RoleRule = (draft: InputDraft, message: Json, path: string) => void;

const ROLES: Readonly<Record<string, RoleRule>> = {
  system: addInstruction,
  developer: addInstruction,
  user: addUser,
  assistant: addAssistant,
  tool: addToolOutput,
  function: addFunctionOutput,
};

// `name` has no counterpart. Clients echo the other fields from an answer or from their SDK's version of it; Responses
// has no place for them. All are accepted without effect.
const MESSAGE_KEYS = new Set(["role", "content", "name"]);
const ASSISTANT_KEYS = new Set([
  ...MESSAGE_KEYS,
  "refusal",
  "tool_calls",
  "function_call",
  "audio",
  "annotations",
  "reasoning_content",
  "reasoning_details",
  "reasoning",
  "parsed",
]);
const TOOL_KEYS = new Set([...MESSAGE_KEYS, "tool_call_id"]);
const CALL_KEYS = new Set(["id", "type", "index", "function", "custom"]);
const FUNCTION_KEYS = new Set(["name", "arguments", "parsed_arguments"]);
const CUSTOM_KEYS = new Set(["name", "input"]);

export function convertMessages(messages: unknown): InputItems {
  const draft: InputDraft = { items: [], origins: [], open: new Map() };
  const list = requireList(messages, "messages");
  for (const [index, value] of list.entries()) {
    const path = `messages[${index}]`;
    const message = requireRecord(value, path);
    const role = requireString(message["role"], `${path}.role`);
    const rule = lookUp(ROLES, role);
    if (rule === undefined) refuseValue(`${path}.role`, role, Object.keys(ROLES));
    if (role !== "tool" && role !== "function") requireToolOutputs(draft, path);
    rule(draft, message, path);
  }
  requireToolOutputs(draft, `messages[${list.length - 1}]`);
  return draft;
}

function add(draft: InputDraft, item: Json, origin: ItemOrigin): void {
  draft.items.push(item);
  draft.origins.push(origin);
}

function addMessage(draft: InputDraft, role: unknown, content: string | Json[], path: string): void {
  add(draft, { type: "message", role, content }, { path, kind: "message" });
}

function addInstruction(draft: InputDraft, message: Json, path: string): void {
  rejectUnknown(message, MESSAGE_KEYS, path);
  addMessage(draft, message["role"], convertInstructions(message["content"], `${path}.content`), path);
}

function addUser(draft: InputDraft, message: Json, path: string): void {
  rejectUnknown(message, MESSAGE_KEYS, path);
  addMessage(draft, "user", convertInput(message["content"], `${path}.content`), path);
}

function addAssistant(draft: InputDraft, message: Json, path: string): void {
  rejectUnknown(message, ASSISTANT_KEYS, path);
  if (!isAbsent(message["audio"])) refuseUnsupported(`${path}.audio`);
  const speech = convertAssistantContent(message, path);
  const { tool_calls: calls, function_call: legacy } = message;
  const silent = isAbsent(calls) && isAbsent(legacy);
  if (speech === null && silent) {
    refuseType(`${path}.content`, "one of a string or array of objects", message["content"]);
  }
  if (speech !== null && (speech !== "" || silent)) addMessage(draft, "assistant", speech, path);
  if (!isAbsent(calls)) {
    const list = requireList(calls, `${path}.tool_calls`);
    for (const [index, call] of list.entries()) addCall(draft, call, `${path}.tool_calls[${index}]`);
  }
  if (!isAbsent(legacy)) addLegacyCall(draft, legacy, path);
}

function addCall(draft: InputDraft, value: unknown, path: string): void {
  const call = requireRecord(value, path);
  rejectUnknown(call, CALL_KEYS, path);
  const id = requireString(call["id"], `${path}.id`);
  if (draft.open.has(id)) refuse("invalid_value", `${path}.id`, `Duplicate value for '${path}.id': '${id}'.`);
  const type = requireString(call["type"], `${path}.type`);
  if (type !== "function" && type !== "custom") refuseValue(`${path}.type`, type, ["function", "custom"]);
  rejectSecondKind(call, type, path);
  if (type === "custom") addCustomCall(draft, call["custom"], id, path);
  else addFunctionCall(draft, call["function"], { id, path, field: "function", legacy: false });
}

interface CallPlace {
  readonly id: string;
  readonly path: string;
  readonly field: "function" | "function_call";
  readonly legacy: boolean;
}

function addFunctionCall(draft: InputDraft, value: unknown, place: CallPlace): void {
  const path = `${place.path}.${place.field}`;
  const call = requireRecord(value, path);
  rejectUnknown(call, FUNCTION_KEYS, path);
  const name = requireString(call["name"], `${path}.name`);
  const text = requireString(call["arguments"], `${path}.arguments`);
  const item = {
    type: "function_call",
    call_id: nameCall(place.id, "responses"),
    name,
    arguments: text === "" ? "{}" : text,
  };
  add(draft, item, { path: place.legacy ? path : place.path, kind: "function" });
  draft.open.set(place.id, { kind: "function", name, legacy: place.legacy });
}

function addCustomCall(draft: InputDraft, value: unknown, id: string, path: string): void {
  const call = requireRecord(value, `${path}.custom`);
  rejectUnknown(call, CUSTOM_KEYS, `${path}.custom`);
  const name = requireString(call["name"], `${path}.custom.name`);
  const input = requireString(call["input"], `${path}.custom.input`);
  add(
    draft,
    { type: "custom_tool_call", call_id: nameCall(id, "responses"), name, input },
    { path, kind: "custom" },
  );
  draft.open.set(id, { kind: "custom", name, legacy: false });
}

/** Legacy calls have no id. Their position in the conversation serves as one. */
function addLegacyCall(draft: InputDraft, value: unknown, path: string): void {
  const id = `call_legacy_${path.slice("messages[".length, -1)}`;
  addFunctionCall(draft, value, { id, path, field: "function_call", legacy: true });
}

function addToolOutput(draft: InputDraft, message: Json, path: string): void {
  rejectUnknown(message, TOOL_KEYS, path);
  const id = requireString(message["tool_call_id"], `${path}.tool_call_id`);
  const call = draft.open.get(id);
  if (call === undefined) refuseUnmatched(path, "tool", "tool_calls");
  draft.open.delete(id);
  const type = call.kind === "custom" ? "custom_tool_call_output" : "function_call_output";
  const output = convertInput(message["content"], `${path}.content`);
  add(draft, { type, call_id: nameCall(id, "responses"), output }, { path, kind: "output" });
}

function addFunctionOutput(draft: InputDraft, message: Json, path: string): void {
  rejectUnknown(message, MESSAGE_KEYS, path);
  const name = requireString(message["name"], `${path}.name`);
  const found = [...draft.open].findLast(([, call]) => call.legacy && call.name === name);
  if (found === undefined) refuseUnmatched(path, "function", "function_call");
  draft.open.delete(found[0]);
  const output = readString(message["content"], `${path}.content`) ?? "";
  const item = { type: "function_call_output", call_id: found[0], output };
  add(draft, item, { path, kind: "output" });
}

/** "preceeding" is the native endpoint's spelling. */
function refuseUnmatched(path: string, role: string, field: string): never {
  const rule = `messages with role '${role}' must be a response to a preceeding message with '${field}'.`;
  return refuse("invalid_value", `${path}.role`, `Invalid parameter: ${rule}`);
}

function requireToolOutputs(draft: InputDraft, path: string): void {
  if (draft.open.size === 0) return;
  const legacy = [...draft.open.values()].some((call) => call.legacy);
  const rule = legacy
    ? "An assistant message with 'function_call' must be followed by a function message with its result."
    : "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.";
  const ids = [...draft.open.keys()].join(", ");
  refuse(
    "invalid_value",
    `${path}.role`,
    `${rule} The following tool_call_ids did not have response messages: ${ids}`,
  );
}
