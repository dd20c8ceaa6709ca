// Reads a client's JSON strictly. A missing field, a wrong type or an unknown field is refused with the text and code of
// the native endpoint.

import { GatewayError } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/json/exact-json.ts";
import { isNestedDeeply, isObject } from "../../lib/json/json.ts";

export type Json = Record<string, unknown>;

/** `fault`: what the client hears if it is not JSON. */
export function readBody(body: Uint8Array, fault: string): Json {
  let value: unknown;
  try {
    value = parseExactJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (cause) {
    throw new GatewayError("bad_request", fault, { cause });
  }
  if (isNestedDeeply(value))
    throw new GatewayError("bad_request", "The JSON body of the request is nested too deeply.");
  if (isObject(value)) return { ...value };
  throw new GatewayError("bad_request", "The JSON body of a request must be an object.");
}

/** In both APIs, null means the same as an absent optional field. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function refuse(wireCode: string, param: string, message: string): never {
  throw new GatewayError("bad_request", message, { param, wireCode });
}

/** For fields that Responses does not have. */
export function refuseUnsupported(param: string): never {
  const message = `Unsupported parameter: '${param}' is not supported with this model.`;
  throw new GatewayError("unsupported", message, { param, wireCode: "unsupported_parameter" });
}

export function refuseUnsupportedValue(param: string, value: string, hint = ""): never {
  const message = `Unsupported value: '${param}' does not support ${value} with this model.${hint}`;
  throw new GatewayError("unsupported", message, { param, wireCode: "unsupported_value" });
}

export function refuseMissing(param: string): never {
  refuse("missing_required_parameter", param, `Missing required parameter: '${param}'.`);
}

export function refuseType(param: string, expected: string, value: unknown): never {
  if (value === undefined) refuseMissing(param);
  const message = `Invalid type for '${param}': expected ${expected}, but got ${nameType(value)} instead.`;
  refuse("invalid_type", param, message);
}

export function refuseValue(param: string, value: unknown, supported: readonly string[]): never {
  const names = supported.map((name) => `'${name}'`);
  const last = names.pop() ?? "";
  const list = names.length === 0 ? last : `${names.join(", ")}${names.length > 1 ? "," : ""} and ${last}`;
  refuse("invalid_value", param, `Invalid value: '${String(value)}'. Supported values are: ${list}.`);
}

/** No field of a client is dropped silently. */
export function rejectUnknown(record: Json, known: ReadonlySet<string>, path: string): void {
  for (const key of Object.keys(record)) {
    if (known.has(key)) continue;
    refuseUnknown(path === "" ? key : `${path}.${key}`);
  }
}

function refuseUnknown(param: string): never {
  refuse("unknown_parameter", param, `Unknown parameter: '${param}'.`);
}

/** A tool is a function or a custom tool, never both. */
export function rejectSecondKind(record: Json, type: "function" | "custom", path: string): void {
  const other = type === "function" ? "custom" : "function";
  if (!isAbsent(record[other])) refuseUnknown(`${path}.${other}`);
}

export function requireRecord(value: unknown, path: string): Json {
  return isObject(value) ? value : refuseType(path, "an object", value);
}

export function requireString(value: unknown, path: string): string {
  return typeof value === "string" ? value : refuseType(path, "a string", value);
}

/** A list with at least one element. */
export function requireList(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) refuseType(path, "an array", value);
  if (value.length > 0) return value;
  const expected = "Expected an array with minimum length 1, but got an empty array instead.";
  return refuse("empty_array", path, `Invalid '${path}': empty array. ${expected}`);
}

export function readString(value: unknown, path: string): string | null {
  return isAbsent(value) ? null : requireString(value, path);
}

export function readBoolean(value: unknown, path: string): boolean | null {
  if (isAbsent(value) || typeof value === "boolean") return value ?? null;
  return refuseType(path, "a boolean", value);
}

export function readInteger(value: unknown, path: string): number | null {
  if (isAbsent(value)) return null;
  return typeof value === "number" && Number.isInteger(value) ? value : refuseType(path, "an integer", value);
}

/** The fields of these names that are present. */
export function pickPresent(record: Json, names: Iterable<string>): Json {
  const present: Json = {};
  for (const name of names) if (!isAbsent(record[name])) present[name] = record[name];
  return present;
}

function nameType(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "number") return Number.isInteger(value) ? "an integer" : "a decimal";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
