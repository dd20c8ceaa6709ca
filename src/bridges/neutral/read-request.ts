// What the readers of requests share.

import type { DialectName } from "../../dialects/dialect.ts";
import { isObject } from "../../lib/json/json.ts";
import type { Json } from "./strict-json.ts";
import type {
  ContentPart,
  Conversation,
  FreeChoice,
  Item,
  Message,
  Options,
  Seal,
  TextPart,
  Tool,
} from "./conversation.ts";
import { type FieldRules, nameOptions } from "./fields.ts";
import { Notes, refuseBody, refuseField } from "./notes.ts";

/** Opens an envelope of the upstream that the request goes to. */
export type OpenSeal = (text: unknown) => Seal | null;

/** What a reader knows of the upstream. */
export interface ReadingFor {
  readonly openSeal: OpenSeal;
  readonly upstream: DialectName;
}

/** A request while it is read. */
export class Reading {
  readonly notes = new Notes();
  readonly items: Item[] = [];
  readonly tools: Tool[] = [];
  readonly options: Options = {};
  readonly openSeal: OpenSeal;

  constructor({ openSeal }: ReadingFor) {
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
      names: nameOptions(rules, body),
      notes: this.notes,
      wishes: {},
      shared: null,
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
export const CHOICES: Readonly<Record<string, FreeChoice>> = {
  auto: { kind: "auto" },
  required: { kind: "any" },
  none: { kind: "none" },
};

const NUMBERS = ["cap", "temperature", "top_p", "top_k"] as const;

/** Sets the options that are numbers, from the fields that the table names. */
export function setNumbers(options: Options, body: Json, rules: FieldRules): void {
  for (const [field, rule] of Object.entries(rules)) {
    const option = NUMBERS.find((name) => Array.isArray(rule) && rule.includes(name));
    if (option !== undefined) setOption(options, option, readNumber(body[field], field));
  }
}

/** What both dialects of OpenAI say in the same way. */
export function setOpenaiOptions(options: Options, body: Json, verbosity: unknown): void {
  const { parallel_tool_calls: parallel, service_tier: tier } = body;
  if (typeof parallel === "boolean") options.parallel = parallel;
  if (typeof tier === "string" && tier !== "auto") options.tier = tier;
  if (typeof verbosity === "string") options.verbosity = verbosity;
}

/** A request whose only or forced tool is unknown here would be answered without it. `needsSome`: without any tool. */
export function refuseUselessTools({ tools, options }: Reading, needsSome: boolean, path: string): void {
  const { choice } = options;
  const isForced = choice?.kind === "tool" && !tools.some(({ name }) => name === choice.name);
  if (isForced || (needsSome && tools.length === 0))
    refuseField(path, "the channels of this group do not have the tool that is asked for.");
}

/** Sets an option if the client has it. */
export function setOption<Name extends keyof Options>(
  options: Options,
  name: Name,
  value: Options[Name] | null | undefined,
): void {
  if (value !== null && value !== undefined) options[name] = value;
}

/** Undefined if there are none. */
export function readStops(value: unknown, path: string): readonly string[] | undefined {
  if (value === null || value === undefined) return undefined;
  if (!Array.isArray(value)) refuseBody(path, "expected a list of texts.");
  const texts = value.filter((each) => typeof each === "string" && each !== "");
  return texts.length === 0 ? undefined : texts;
}

export function readSchema(value: unknown): Json {
  return isObject(value) ? { ...value } : { type: "object", properties: {} };
}

export function readName(value: unknown, path: string): string {
  return typeof value === "string" && value !== "" ? value : refuseBody(path, "expected a name.");
}
