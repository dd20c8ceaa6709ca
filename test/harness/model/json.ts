// Reads untyped JSON leniently. A missing value, or one of the wrong type, reads as empty.

import { isObject } from "../../../src/lib/json/json.ts";

export type Json = Readonly<Record<string, unknown>>;

export function pick(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((at, key) => (isObject(at) ? at[key] : undefined), value);
}

export function pickText(value: unknown, ...path: readonly string[]): string {
  const found = pick(value, ...path);
  return typeof found === "string" ? found : "";
}

export function pickList(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = pick(value, ...path);
  return Array.isArray(found) ? found : [];
}

export function pickNumber(value: unknown, ...path: readonly string[]): number | null {
  const found = pick(value, ...path);
  return typeof found === "number" ? found : null;
}

/** Content in the wire formats is a string, or a list of parts with a `text`. */
export function readText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => pickText(part, "text")).join("\n");
}

/** Decodes a name in a path. A name with invalid escapes stays as it is. */
export function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
