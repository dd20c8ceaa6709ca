// Reading values that others wrote: a field that is not there, or is not what it should be, is simply not there.

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The member of an object; undefined for everything else. */
export function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? value[name] : undefined;
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A text that is short enough to be a name; undefined for everything else. */
export function nameOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" && value.length <= 200 ? value : undefined;
}

/** A whole number from 0 to 2^53: what a count can be. Anything else was not reported. */
export function countOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The value of a JSON text; undefined where it is none. */
export function parseJson(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}
