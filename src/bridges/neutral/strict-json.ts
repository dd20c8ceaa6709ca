// Refuses what is missing or wrong in a client's JSON, with OpenAI's codes.

import { isObject } from "../../lib/json/json.ts";
import { refuseBody } from "./notes.ts";

export type Json = Record<string, unknown>;

export function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

export function requireRecord(value: unknown, path: string): Json {
  return isObject(value) ? value : refuseBody(path, "expected an object.", codeOf(value));
}

export function requireList(value: unknown, path: string): readonly unknown[] {
  if (!Array.isArray(value)) refuseBody(path, "expected a list.", codeOf(value));
  return value.length > 0 ? value : refuseBody(path, "the list is empty.", "empty_array");
}

function codeOf(value: unknown): string {
  return value === undefined ? "missing_required_parameter" : "invalid_type";
}
