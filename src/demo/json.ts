// Lenient reading of untyped JSON: what is absent, or of another type, reads as empty.

import { isObject } from "../lib/json/json.ts";

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

/** Content as the wire formats have it: a string, or a list of parts with a `text`. */
export function readText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => pickText(part, "text")).join("\n");
}

/** A name as it stands in a path; one that is wrongly escaped stays as it is. */
export function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
