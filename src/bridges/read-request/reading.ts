// What the readers of requests share.

import type { DialectName } from "../../dialects/dialect.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import type { Json } from "../common/strict-json.ts";
import type {
  Choice,
  ContentPart,
  Conversation,
  Item,
  Message,
  Options,
  Seal,
  TextPart,
  Tool,
} from "../turn/conversation.ts";
import { type FieldRules, nameOptions } from "../turn/fields.ts";
import { Notes, refuseBody } from "../turn/notes.ts";

/** Opens an envelope of the upstream that the request goes to. */
export type OpenSeal = (text: unknown) => Seal | null;

/** A request while it is read. */
export class Reading {
  readonly notes = new Notes();
  readonly items: Item[] = [];
  readonly tools: Tool[] = [];
  readonly options: Options = {};
  readonly openSeal: OpenSeal;

  constructor(openSeal: OpenSeal) {
    this.openSeal = openSeal;
  }

  say(role: Message["role"], parts: readonly ContentPart[]): void {
    if (parts.length > 0) this.items.push({ type: "message", role, parts });
  }

  finish(client: DialectName, rules: FieldRules, body: Json): Conversation {
    return {
      client,
      stream: body["stream"] === true,
      items: this.items,
      tools: this.tools,
      options: this.options,
      names: nameOptions(rules),
      notes: this.notes,
      wantsUsage: getField(body["stream_options"], "include_usage") === true,
    };
  }
}

/** No part for an empty text: some upstreams refuse it. */
export function readText(text: unknown, cache = false): TextPart[] {
  if (typeof text !== "string" || text.trim() === "") return [];
  return [cache ? { kind: "text", text, cache } : { kind: "text", text }];
}

function readNumber(value: unknown, path: string): number | undefined {
  if (value === null || value === undefined) return undefined;
  return typeof value === "number" ? value : refuseBody(path, "expected a number.");
}

/** What both dialects of OpenAI say. */
export const CHOICES: Readonly<Record<string, Choice>> = {
  auto: { kind: "auto" },
  required: { kind: "any" },
  none: { kind: "none" },
};

const NUMBERS = ["cap", "temperature", "top_p", "top_k"] as const;

/** Sets the options that are numbers, from the fields that the table names. */
export function setNumbers(options: Options, body: Json, rules: FieldRules): void {
  for (const [field, rule] of Object.entries(rules)) {
    const option = NUMBERS.find((name) => typeof rule === "object" && rule.includes(name));
    if (option !== undefined) setOption(options, option, readNumber(body[field], field));
  }
}

/** Sets an option if the client has it. */
export function setOption<Name extends keyof Options>(
  options: Options,
  name: Name,
  value: Options[Name] | null | undefined,
): void {
  if (value !== null && value !== undefined) options[name] = value;
}

export function readSchema(value: unknown): Json {
  return isObject(value) ? { ...value } : { type: "object", properties: {} };
}

export function readName(value: unknown, path: string): string {
  return typeof value === "string" && value !== "" ? value : refuseBody(path, "expected a name.");
}
