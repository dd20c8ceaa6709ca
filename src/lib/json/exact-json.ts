// JSON.parse for values that are written out again. A number that a double cannot hold (64-bit limits in schemas) keeps
// its digits.

declare global {
  interface JSON {
    rawJSON(text: string): object;
    parse(
      text: string,
      reviver: (key: string, value: unknown, place: { readonly source?: string }) => unknown,
    ): unknown;
  }
}

/** The slow path is only for texts that contain something like such a number. */
const SUSPECT = /[:,[\s]-?\d{16}|\d[eE][+-]?\d{3}/;

export function parseExactJson(text: string): unknown {
  return SUSPECT.test(text) ? JSON.parse(text, keepNumber) : JSON.parse(text);
}

function keepNumber(_key: string, value: unknown, place: { readonly source?: string }): unknown {
  if (typeof value !== "number" || place.source === undefined) return value;
  const exact = Number.isSafeInteger(value) || (Number.isFinite(value) && !/^-?\d{16}/.test(place.source));
  return exact ? value : JSON.rawJSON(place.source);
}
