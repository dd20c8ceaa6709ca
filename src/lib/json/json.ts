// Reads values from JSON that others wrote. The wrong type counts as missing.

export function isObject(value: unknown): value is Table<unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export type Table<Value> = Readonly<Record<string, Value>>;

/** A word from outside may name something
 *  that all objects have (`constructor`). */
export function lookUp<Value>(table: Table<Value>, word: unknown): Value | undefined {
  return typeof word === "string" && Object.hasOwn(table, word) ? table[word] : undefined;
}

export function getField(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

const EMPTY: readonly unknown[] = [];

export function getList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : EMPTY;
}

export function getText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function textIn(value: unknown, name: string): string {
  return getText(getField(value, name));
}

export function listIn(value: unknown, name: string): readonly unknown[] {
  return getList(getField(value, name));
}

/** The string itself, or the JSON.
 *  `String` throws for exact numbers and `{"toString":1}`. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

export function getName(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= 200 ? value : undefined;
}

export function getCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

export function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}

/** JSON.stringify takes seconds for a depth of 30,000. */
export const MAX_DEPTH = 500;

export function isNestedDeeply(value: unknown, levels = MAX_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((each) => isNestedDeeply(each, levels - 1));
  // A list of the values would take longer than the parsing.
  for (const name in value) if (isNestedDeeply(getField(value, name), levels - 1)) return true;
  return false;
}

/** Undefined if the text is no JSON,
 *  or is nested too deeply to be written again. */
export function parseFlatJson(text: string): unknown {
  const value = parseJson(text);
  return text.length > MAX_DEPTH && isNestedDeeply(value) ? undefined : value;
}
