// Reads a client's JSON strictly: a missing field or a wrong type is refused by its name.

import { GatewayError } from "../../lib/errors.ts";
import { parseExactJson } from "../../lib/json/exact-json.ts";
import { isNestedDeeply, isObject, parseFlatJson } from "../../lib/json/json.ts";

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

/** A run of digits that a double may not hold. */
const LONG_NUMBER = /\d{16}/;

/** What is written again keeps the digits of its numbers. Undefined if it is not JSON, or nested too deeply. */
export function parseExact(text: string): unknown {
  if (!LONG_NUMBER.test(text)) return parseFlatJson(text);
  try {
    const value = parseExactJson(text);
    return isNestedDeeply(value) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Null means the same as an absent field. */
export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function requireRecord(value: unknown, path: string): Json {
  return isObject(value) ? value : refuseType(path, "an object", value);
}

/** A list with at least one element. */
export function requireList(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) refuseType(path, "an array", value);
  return value.length > 0 ? value : refuse("empty_array", path, `'${path}' is an empty array.`);
}

function refuseType(param: string, expected: string, value: unknown): never {
  if (value === undefined)
    refuse("missing_required_parameter", param, `Missing required parameter: '${param}'.`);
  refuse("invalid_type", param, `Invalid type for '${param}': expected ${expected}.`);
}

function refuse(wireCode: string, param: string, message: string): never {
  throw new GatewayError("bad_request", message, { param, wireCode });
}
