// Writes long texts as JSON.

/** Pieces of a text. Each piece is made when it is read.
 *  A plain string is not allowed: it would be read character by character. */
export type Slices = Iterable<string> & object;

const SLICE_LENGTH = 65_536;
/** JSON.stringify never escapes a hyphen, so no other text looks like this. */
const PLACE = '"\\u002d"';

/** A long text becomes JSON slice by slice.
 *  A cut surrogate pair becomes two escapes. */
export function* writeSlices(parts: readonly unknown[]): Generator<string> {
  let short = "";
  for (const part of parts) {
    const long: string[] = [];
    const replace = (_: string, value: unknown): unknown => {
      const isLong = typeof value === "string" && value.length > SLICE_LENGTH;
      return isLong && long.push(value) > 0 ? JSON.rawJSON(PLACE) : value;
    };
    const json = typeof part === "string" ? part : JSON.stringify(part, replace);
    for (const [index, between] of json.split(PLACE).entries()) {
      const text = long[index - 1] ?? "";
      for (let at = 0; at < text.length; at += SLICE_LENGTH) {
        yield short + JSON.stringify(text.slice(at, at + SLICE_LENGTH)).slice(1, -1);
        short = "";
      }
      short += (index > 0 ? '"' : "") + between + (index < long.length ? '"' : "");
    }
  }
  yield short;
}
