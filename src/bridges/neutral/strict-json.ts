// Reads a client's JSON strictly: a missing field or a wrong type is refused by its name.

import { GatewayError } from "../../lib/errors.ts";
import { isObject } from "../../lib/json/json.ts";

export type Json = Record<string, unknown>;

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
