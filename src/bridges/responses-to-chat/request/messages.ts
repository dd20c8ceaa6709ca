// messages → input items, in order, with a note for each item of where it came
// from. Calls and their outputs are matched here, so that a conversation with
// loose ends is refused in the client's words.

import { createHash } from "node:crypto";
import type { ItemOrigin } from "../context.ts";
import {
  isAbsent,
  type Json,
  readString,
  refuse,
  refuseType,
  refuseUnsupported,
  refuseValue,
  rejectOtherKind,
  rejectUnknown,
  requireList,
  requireRecord,
  requireString,
} from "../json.ts";
import { convertInput, convertInstruction, convertSpeech } from "./parts.ts";

export interface Conversation {
  readonly items: Json[];
  readonly origins: ItemOrigin[];
}

/** A call that waits for its output, by the client's id. */
interface Call {
  readonly kind: "function" | "custom";
  readonly name: string;
  readonly legacy: boolean;
}

interface Draft extends Conversation {
  readonly open: Map<string, Call>;
}

type RoleRule = (draft: Draft, message: Json, path: string) => void;

const ROLES: Readonly<Record<string, RoleRule>> = {
  system: addInstruction,
  developer: addInstruction,
  user: addUser,
  assistant: addAssistant,
  tool: addToolOutput,
  function: addFunctionOutput,
};

// `name` has no counterpart; the rest of these clients echo from an answer (or from
// what their SDK made of it), and it cannot be given back. All accepted, without effect.
const SPOKEN = new Set(["role", "content", "name"]);
const ASSISTANT = new Set([
  ...SPOKEN,
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
const TOOL = new Set([...SPOKEN, "tool_call_id"]);
const CALL = new Set(["id", "type", "index", "function", "custom"]);
const FUNCTION = new Set(["name", "arguments", "parsed_arguments"]);
const CUSTOM = new Set(["name", "input"]);

export function convertMessages(messages: unknown): Conversation {
  const draft: Draft = { items: [], origins: [], open: new Map() };
  const list = requireList(messages, "messages");
  for (const [index, value] of list.entries()) {
    const path = `messages[${index}]`;
    const message = requireRecord(value, path);
    const role = requireString(message["role"], `${path}.role`);
    const rule = Object.hasOwn(ROLES, role) ? ROLES[role] : undefined;
    if (rule === undefined) refuseValue(`${path}.role`, role, Object.keys(ROLES));
    if (role !== "tool" && role !== "function") requireAnswered(draft, path);
    rule(draft, message, path);
  }
  requireAnswered(draft, `messages[${list.length - 1}]`);
  return draft;
}

function add(draft: Draft, item: Json, origin: ItemOrigin): void {
  draft.items.push(item);
  draft.origins.push(origin);
}

function addMessage(draft: Draft, role: unknown, content: string | Json[], path: string): void {
  add(draft, { type: "message", role, content }, { path, kind: "message" });
}

function addInstruction(draft: Draft, message: Json, path: string): void {
  rejectUnknown(message, SPOKEN, path);
  addMessage(draft, message["role"], convertInstruction(message["content"], `${path}.content`), path);
}

function addUser(draft: Draft, message: Json, path: string): void {
  rejectUnknown(message, SPOKEN, path);
  addMessage(draft, "user", convertInput(message["content"], `${path}.content`), path);
}

function addAssistant(draft: Draft, message: Json, path: string): void {
  rejectUnknown(message, ASSISTANT, path);
  if (!isAbsent(message["audio"])) refuseUnsupported(`${path}.audio`);
  const speech = convertSpeech(message, path);
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

function addCall(draft: Draft, value: unknown, path: string): void {
  const call = requireRecord(value, path);
  rejectUnknown(call, CALL, path);
  const id = requireString(call["id"], `${path}.id`);
  if (draft.open.has(id)) refuse("invalid_value", `${path}.id`, `Duplicate value for '${path}.id': '${id}'.`);
  const type = requireString(call["type"], `${path}.type`);
  if (type !== "function" && type !== "custom") refuseValue(`${path}.type`, type, ["function", "custom"]);
  rejectOtherKind(call, type, path);
  if (type === "custom") addCustomCall(draft, call["custom"], id, path);
  else addFunctionCall(draft, call["function"], { id, path, field: "function", legacy: false });
}

interface CallPlace {
  readonly id: string;
  readonly path: string;
  readonly field: "function" | "function_call";
  readonly legacy: boolean;
}

function addFunctionCall(draft: Draft, value: unknown, place: CallPlace): void {
  const path = `${place.path}.${place.field}`;
  const call = requireRecord(value, path);
  rejectUnknown(call, FUNCTION, path);
  const name = requireString(call["name"], `${path}.name`);
  const text = requireString(call["arguments"], `${path}.arguments`);
  const item = {
    type: "function_call",
    call_id: shortenId(place.id),
    name,
    arguments: text === "" ? "{}" : text,
  };
  add(draft, item, { path: place.legacy ? path : place.path, kind: "function" });
  draft.open.set(place.id, { kind: "function", name, legacy: place.legacy });
}

function addCustomCall(draft: Draft, value: unknown, id: string, path: string): void {
  const call = requireRecord(value, `${path}.custom`);
  rejectUnknown(call, CUSTOM, `${path}.custom`);
  const name = requireString(call["name"], `${path}.custom.name`);
  const input = requireString(call["input"], `${path}.custom.input`);
  add(draft, { type: "custom_tool_call", call_id: shortenId(id), name, input }, { path, kind: "custom" });
  draft.open.set(id, { kind: "custom", name, legacy: false });
}

/** Legacy calls have no id: their place in the conversation is one. */
function addLegacyCall(draft: Draft, value: unknown, path: string): void {
  const id = `call_legacy_${path.slice("messages[".length, -1)}`;
  addFunctionCall(draft, value, { id, path, field: "function_call", legacy: true });
}

function addToolOutput(draft: Draft, message: Json, path: string): void {
  rejectUnknown(message, TOOL, path);
  const id = requireString(message["tool_call_id"], `${path}.tool_call_id`);
  const call = draft.open.get(id);
  if (call === undefined) refuseStray(path, "tool", "tool_calls");
  draft.open.delete(id);
  const type = call.kind === "custom" ? "custom_tool_call_output" : "function_call_output";
  const output = convertInput(message["content"], `${path}.content`);
  add(draft, { type, call_id: shortenId(id), output }, { path, kind: "output" });
}

function addFunctionOutput(draft: Draft, message: Json, path: string): void {
  rejectUnknown(message, SPOKEN, path);
  const name = requireString(message["name"], `${path}.name`);
  const found = [...draft.open].findLast(([, call]) => call.legacy && call.name === name);
  if (found === undefined) refuseStray(path, "function", "function_call");
  draft.open.delete(found[0]);
  const output = readString(message["content"], `${path}.content`) ?? "";
  const item = { type: "function_call_output", call_id: found[0], output };
  add(draft, item, { path, kind: "output" });
}

/** The spelling is the native endpoint's. */
function refuseStray(path: string, role: string, field: string): never {
  const rule = `messages with role '${role}' must be a response to a preceeding message with '${field}'.`;
  return refuse("invalid_value", `${path}.role`, `Invalid parameter: ${rule}`);
}

function requireAnswered(draft: Draft, path: string): void {
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

const LONGEST_ID = 64;

/** Responses takes ids of 64 characters at most. The client keeps its own: only call and output must agree. */
function shortenId(id: string): string {
  if (id.length <= LONGEST_ID) return id;
  return `call_${createHash("sha256")
    .update(id)
    .digest("hex")
    .slice(0, LONGEST_ID - 5)}`;
}
