// Makes a value that satisfies a JSON schema, for structured answers and the arguments of tool calls. It supports the
// keywords that clients use, but not `pattern` and unusual combinations.

import { isObject } from "../../../src/lib/json/json.ts";
import { decodeName, pick, pickList, pickNumber, pickText, type Json } from "./json.ts";

const FORMATS: Readonly<Record<string, string>> = {
  date: "2026-11-20",
  "date-time": "2026-11-20T10:00:00Z",
  time: "10:00:00Z",
  duration: "PT1M",
  email: "demo@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

/** Below this depth only required members are filled in, so that recursive schemas end. */
const FULL_DEPTH = 4;
const MAX_DEPTH = 16;

interface Place {
  readonly root: unknown;
  readonly name: string;
  readonly depth: number;
}

export function makeInstance(schema: unknown, name = "answer"): unknown {
  return fill(schema, { root: schema, name, depth: 0 });
}

function fill(schema: unknown, place: Place): unknown {
  if (!isObject(schema) || place.depth > MAX_DEPTH) return null;
  const target = pickText(schema, "$ref");
  const deeper = { ...place, depth: place.depth + 1 };
  if (target !== "") return fill(pick(place.root, ...target.split("/").slice(1).map(unescape)), deeper);
  if ("const" in schema) return schema["const"];
  const [choice] = pickList(schema, "enum");
  if (choice !== undefined) return choice;
  const parts = pickList(schema, "allOf");
  if (parts.length > 0) return fill(mergeAll(schema, parts), deeper);
  const options = [...pickList(schema, "anyOf"), ...pickList(schema, "oneOf")];
  const option = options.find((candidate) => pick(candidate, "type") !== "null") ?? options[0];
  if (option !== undefined) return fill(option, deeper);
  return fillType(schema, place);
}

function fillType(schema: Json, place: Place): unknown {
  switch (readType(schema)) {
    case "object":
      return fillObject(schema, place);
    case "array":
      return fillArray(schema, place);
    case "integer":
      return fillNumber(schema, 1);
    case "number":
      return fillNumber(schema, 1.5);
    case "boolean":
      return true;
    case "null":
      return null;
    default:
      return fillString(schema, place.name);
  }
}

function readType(schema: Json): string {
  const type = schema["type"];
  const first = Array.isArray(type) ? type.find((each) => each !== "null") : type;
  if (typeof first === "string") return first.toLowerCase();
  if ("properties" in schema) return "object";
  return "items" in schema ? "array" : "string";
}

function fillObject(schema: Json, place: Place): Json {
  const properties = pick(schema, "properties");
  const required = pickList(schema, "required");
  const wanted = Object.entries(isObject(properties) ? properties : {}).filter(
    ([name]) => place.depth < FULL_DEPTH || required.includes(name),
  );
  return Object.fromEntries(
    wanted.map(([name, property]) => [name, fill(property, { ...place, name, depth: place.depth + 1 })]),
  );
}

function fillArray(schema: Json, place: Place): readonly unknown[] {
  const least = pickNumber(schema, "minItems") ?? 1;
  const length = place.depth < FULL_DEPTH ? Math.max(1, least) : least;
  const fixed = pickList(schema, "prefixItems");
  return Array.from({ length: Math.max(length, fixed.length) }, (_, index) =>
    fill(fixed[index] ?? schema["items"] ?? {}, { ...place, depth: place.depth + 1 }),
  );
}

function fillNumber(schema: Json, fallback: number): number {
  const above = pickNumber(schema, "exclusiveMinimum");
  const least = pickNumber(schema, "minimum") ?? (above === null ? null : above + 1);
  const below = pickNumber(schema, "exclusiveMaximum");
  const most = pickNumber(schema, "maximum") ?? (below === null ? null : below - 1);
  const step = pickNumber(schema, "multipleOf");
  const value = Math.min(Math.max(fallback, least ?? fallback), most ?? Infinity);
  return step === null ? value : Math.ceil(value / step) * step;
}

function fillString(schema: Json, name: string): string {
  const value = FORMATS[pickText(schema, "format")] ?? `demo ${name}`;
  const most = pickNumber(schema, "maxLength") ?? Infinity;
  return value.padEnd(pickNumber(schema, "minLength") ?? 0, ".").slice(0, most);
}

function mergeAll(schema: Json, parts: readonly unknown[]): Json {
  const { allOf: _, ...own } = schema;
  const all = [own, ...parts.filter(isObject)];
  return {
    ...Object.assign({}, ...all),
    properties: Object.assign({}, ...all.map((part) => pick(part, "properties"))),
    required: all.flatMap((part) => pickList(part, "required")),
  };
}

function unescape(step: string): string {
  return decodeName(step).replaceAll("~1", "/").replaceAll("~0", "~");
}
