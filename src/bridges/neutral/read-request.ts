// What the readers of requests share.

import type { DialectName } from "../../dialects/dialect.ts";
import { getField, isObject, type Table, textOf } from "../../lib/json/json.ts";
import type {
  AnswerSchema,
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
import { checkFields, type FieldTable, readMembers } from "./fields.ts";
import { type Json, Notes, refuseBody, refuseField } from "./notes.ts";

type OpenSeal = (text: unknown) => Seal | null;

export type Said = ContentPart | Item;

export interface ReadingFor {
  readonly openSeal: OpenSeal;
  readonly isShared: boolean;
}

export class RequestReading implements Conversation {
  readonly client: DialectName;
  readonly stream: boolean;
  readonly isShared: boolean;
  readonly items: Item[] = [];
  readonly tools: Tool[] = [];
  readonly options: Options;
  readonly notes: Notes;
  readonly openSeal: OpenSeal;
  wishes: Conversation["wishes"] = {};
  readonly #table: FieldTable;

  constructor(client: DialectName, table: FieldTable, body: Json, { openSeal, isShared }: ReadingFor) {
    this.client = client;
    this.#table = table;
    this.notes = new Notes(table.names);
    this.stream = body["stream"] === true;
    this.openSeal = openSeal;
    this.isShared = isShared;
    checkFields(body, table, { notes: this.notes, isShared });
    this.options = readMembers(table, body, { at: "", place: "" }, this.notes);
  }

  /** Adds what was said. Parts in a row are one message. */
  say(role: Message["role"], said: readonly Said[]): void {
    let parts: ContentPart[] = [];
    const flush = (): void => {
      if (parts.length > 0) this.items.push({ type: "message", role, parts });
      parts = [];
    };
    for (const each of said) {
      if ("kind" in each) {
        parts.push(each);
        continue;
      }
      flush();
      this.items.push(each);
    }
    flush();
  }

  /** `at` is the path of tools in the field table. `place` is the path of this tool in the request. */
  addTool(
    kind: Tool["kind"],
    value: unknown,
    where: { readonly at: string; readonly place: string },
    more?: Partial<Tool>,
  ): void {
    const read = readMembers(this.#table, value, where, this.notes);
    const { name: own, description = "", parameters = NO_PARAMETERS, format, ...settings } = read;
    const name = more?.name ?? readName(own, `${where.place}.name`);
    this.tools.push({
      kind,
      description,
      schema: textOf(parameters),
      format,
      settings,
      ...more,
      name,
    });
  }

  readDetail(detail: unknown): { detail?: string } {
    if (typeof detail !== "string") return {};
    if (detail !== "auto") this.options.detail = detail;
    return { detail };
  }

  /** `needsSome`: also refuses a request without a tool. */
  refuseUselessTools(needsSome: boolean, path: string): void {
    const { choice } = this.options;
    const isForced = choice?.kind === "tool" && !this.tools.some(({ name }) => name === choice.name);
    if (isForced || (needsSome && this.tools.length === 0))
      refuseField(path, "the channels of this group do not have the tool that is asked for.");
  }
}

const NO_PARAMETERS = { type: "object", properties: {} };

/** No part for an empty text, which some upstreams refuse. */
export function readText(text: unknown, cache = false): TextPart[] {
  if (typeof text !== "string" || text.trim() === "") return [];
  return [cache ? { kind: "text", text, cache } : { kind: "text", text }];
}

export function readName(value: unknown, path: string): string {
  return typeof value === "string" && value !== "" ? value : refuseBody(path, "expected a name.");
}

export function nameIn(value: unknown, name: string, path: string): string {
  return readName(getField(value, name), `${path}.${name}`);
}

export const READ = {
  name: readName,
  number: (value: unknown, path: string): number =>
    typeof value === "number" ? value : refuseBody(path, "expected a number."),
  word: (value: unknown): string | undefined => (typeof value === "string" ? value : undefined),
  true: (value: unknown): true | undefined => (value === true ? value : undefined),
  flag: (value: unknown): boolean | undefined => (typeof value === "boolean" ? value : undefined),
  object: (value: unknown): Json | undefined => (isObject(value) ? value : undefined),
  filled: (value: unknown): readonly unknown[] | undefined =>
    Array.isArray(value) && value.length > 0 ? value : undefined,
  texts: readTexts,
  tier: (value: unknown): string | undefined =>
    typeof value === "string" && value !== "auto" ? value : undefined,
};

function readTexts(value: unknown, path: string): readonly string[] | undefined {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const texts = list.filter((each) => typeof each === "string");
  if (texts.length < list.length) refuseBody(path, "expected a list of texts.");
  const filled = texts.filter((text) => text !== "");
  return filled.length === 0 ? undefined : filled;
}

export function readAnswerSchema(
  { name, description, schema, strict }: Json,
  isStrict = strict === true,
): AnswerSchema {
  return {
    name: typeof name === "string" ? name : "answer",
    ...(typeof description === "string" && { description }),
    schema: textOf(isObject(schema) ? schema : NO_PARAMETERS),
    strict: isStrict,
  };
}

export const CHOICES: Table<FreeChoice> = {
  auto: { kind: "auto" },
  required: { kind: "any" },
  none: { kind: "none" },
};

export const UNKNOWN_CHOICE = "expected `none`, `auto`, `required` or a tool.";
