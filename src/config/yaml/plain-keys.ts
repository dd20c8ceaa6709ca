// A config can have ten thousand keys, and the YAML parser takes about 0.1 ms for each. Keys as `gateway keys add`
// writes them, one `- { name: …, … }` per line, are read here instead. The YAML parser does not see their lines.

export interface PlainKeys {
  /** The file without the lines of the keys read here. The last plain key stays. */
  readonly rest: string;
  /** Where that key's line begins in the file, and in `rest`. From there on both are the same. */
  readonly resume: { readonly text: number; readonly rest: number };
  readonly entries: ReadonlyArray<Readonly<Record<string, string>>>;
  /** The offsets of the entries' braces in the file. */
  readonly starts: readonly number[];
  /** The offset in `rest` of the brace of the key that stays: the parser must find it as the list's first item. */
  readonly firstLeft: number;
}

/** Below this, the parser is fast enough. */
const MIN_LENGTH = 20_000;

const HEADING = /^keys:[ \t]*(?:#.*)?\r?\n/m;
/** Values that mean themselves in YAML: no quotes, no references, no `null`. */
const VALUE = String.raw`(?!null\b|Null\b|NULL\b)[A-Za-z0-9](?:[\w.+/:-]*[\w.+/-])?`;
const PAIR = String.raw`[a-z_\d]+: ${VALUE}`;
const ENTRY = new RegExp(String.raw`( +)- \{ (${PAIR}(?:, ${PAIR})*) \}[ \t]*(?: #[^\n]*)?\r?\n`, "y");

/** Null where there is nothing to gain. */
export function extractPlainKeys(text: string, minLength = MIN_LENGTH): PlainKeys | null {
  if (text.length < minLength) return null;
  const heading = HEADING.exec(text);
  if (heading === null) return null;
  const from = heading.index + heading[0].length;
  const lines = readEntries(text, from);
  const last = lines.pop();
  if (last === undefined || lines.length === 0) return null;
  const begin = text.slice(0, from);
  return {
    rest: begin + text.slice(last.lineStart),
    resume: { text: last.lineStart, rest: begin.length },
    entries: lines.map(({ entry }) => entry),
    starts: lines.map(({ start }) => start),
    firstLeft: last.start - last.lineStart + begin.length,
  };
}

interface PlainLine {
  readonly lineStart: number;
  readonly start: number;
  readonly entry: Readonly<Record<string, string>>;
}

function readEntries(text: string, from: number): PlainLine[] {
  const lines: PlainLine[] = [];
  let margin: string | null = null;
  ENTRY.lastIndex = from;
  for (;;) {
    const lineStart = ENTRY.lastIndex;
    const match = ENTRY.exec(text);
    const [, indent = "", pairs = ""] = match ?? [];
    if (match === null || (margin !== null && indent !== margin)) return lines;
    const entry = readPairs(pairs);
    if (entry === null) return lines;
    margin = indent;
    lines.push({ lineStart, start: lineStart + indent.length + 2, entry });
  }
}

/** Null where a name is repeated, which the parser reports. */
function readPairs(text: string): Readonly<Record<string, string>> | null {
  const pairs = text.split(", ").map((pair) => {
    const mark = pair.indexOf(": ");
    return [pair.slice(0, mark), pair.slice(mark + 2)] as const;
  });
  const entry = Object.fromEntries(pairs);
  return Object.keys(entry).length === pairs.length ? entry : null;
}

/** The line and column of a setting of a plain key; of the key itself without a name, or with an unknown one. */
export function locatePlainKey(
  text: string,
  start: number,
  name: string | null,
  part: "key" | "value",
): { readonly line: number; readonly column: number } {
  const lineStart = text.lastIndexOf("\n", start) + 1;
  const entry = text.slice(start, text.indexOf("\n", start));
  const at = name === null ? -1 : entry.search(new RegExp(`[{,] ${name.replaceAll(/\W/g, "")}: `));
  const shift = at < 0 ? 0 : at + 2 + (part === "key" ? 0 : (name ?? "").length + 2);
  return { line: text.slice(0, start).split("\n").length, column: start - lineStart + shift + 1 };
}
