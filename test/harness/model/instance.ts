// Makes a value that satisfies a simple JSON schema, for structured answers and the arguments of tool calls.

import { isObject } from "../../../src/lib/json/json.ts";
import { pick, pickList, type Json } from "./json.ts";

const MAX_DEPTH = 8;

export function makeInstance(schema: unknown, name = "answer", depth = 0): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return null;
  if ("const" in schema) return schema["const"];
  const [choice] = pickList(schema, "enum");
  if (choice !== undefined) return choice;
  const [option] = [...pickList(schema, "anyOf"), ...pickList(schema, "oneOf")];
  if (option !== undefined) return makeInstance(option, name, depth + 1);
  const make = MAKERS[readType(schema)];
  return make === undefined ? `demo ${name}` : make(schema, name, depth + 1);
}

const MAKERS: Readonly<Record<string, (schema: Json, name: string, depth: number) => unknown>> = {
  object: (schema, _, depth) => {
    const properties = Object.entries(Object(pick(schema, "properties")));
    return Object.fromEntries(properties.map(([key, each]) => [key, makeInstance(each, key, depth)]));
  },
  array: (schema, name, depth) => [makeInstance(schema["items"] ?? {}, name, depth)],
  integer: () => 1,
  number: () => 1,
  boolean: () => true,
  null: () => null,
};

function readType(schema: Json): string {
  const type = schema["type"];
  const first = Array.isArray(type) ? type.find((each) => each !== "null") : type;
  if (typeof first === "string") return first.toLowerCase();
  return "properties" in schema ? "object" : "string";
}
