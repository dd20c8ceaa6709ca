// The fields of a head in their order: names in lower case.

export type Field = readonly [name: string, value: string];

export class Malformed extends Error {
  override readonly name = "Malformed";
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const FORBIDDEN_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
/** Only framing code writes these. */
export const FRAMING_FIELDS = new Set(["connection", "keep-alive", "content-length", "transfer-encoding"]);
/** The runtime compares each name with all before it:
 *  5,000 names would take 200 ms. */
const MAX_FIELDS = 256;

export class Fields implements Iterable<Field> {
  readonly #list: Field[] = [];
  /** Has a bit for each name's length (modulo 32),
   *  so that `get` seldom searches for a missing name. */
  #lengths = 0;

  /** Refuses a folded line, a name with a blank, and a lone CR or LF. */
  static read(lines: string): Fields {
    const fields = new Fields();
    const all = lines === "" ? [] : lines.split("\r\n");
    if (all.length > MAX_FIELDS) throw new Malformed(`more than ${MAX_FIELDS} fields`);
    for (const line of all) {
      const colon = line.indexOf(":");
      if (colon < 0) throw new Malformed("a field without a name");
      fields.add(line.slice(0, colon).toLowerCase(), line.slice(colon + 1));
    }
    return fields;
  }

  /** The first value. `name` is in lower case. */
  get(name: string): string | undefined {
    if ((this.#lengths & (1 << name.length)) === 0) return undefined;
    for (const field of this.#list) if (field[0] === name) return field[1];
    return undefined;
  }

  getAll(name: string): readonly string[] {
    const values: string[] = [];
    for (const field of this.#list) if (field[0] === name) values.push(field[1]);
    return values;
  }

  [Symbol.iterator](): Iterator<Field> {
    return this.#list[Symbol.iterator]();
  }

  add(name: string, value: string): this {
    requireHarmless(name, value);
    return this.push([name, value.trim()]);
  }

  /** For fields that cannot break a head: ours and received ones. */
  push(field: Field): this {
    this.#lengths |= 1 << field[0].length;
    this.#list.push(field);
    return this;
  }

  addAll(fields: Iterable<Field>): this {
    for (const [name, value] of fields) this.add(name, value);
    return this;
  }

  copy(rename: (name: string, value: string) => string | null): Fields {
    const copy = new Fields();
    for (const field of this.#list) {
      const name = rename(field[0], field[1]);
      if (name !== null) copy.push(name === field[0] ? field : [name, field[1]]);
    }
    return copy;
  }

  without(names: ReadonlySet<string>): Fields {
    return this.copy((name) => (names.has(name) ? null : name));
  }
}

export type SentFields = Fields | readonly Field[];

/** Writes latin-1, without framing fields. */
export function writeFields(fields: SentFields): string {
  let lines = "";
  for (const field of fields) {
    if (FRAMING_FIELDS.has(field[0])) continue;
    requireHarmless(field[0], field[1]);
    lines += `${field[0]}: ${field[1]}\r\n`;
  }
  return lines;
}

function requireHarmless(name: string, value: string): void {
  if (TOKEN.test(name) && !FORBIDDEN_IN_VALUE.test(value)) return;
  throw new Malformed(`a forbidden character in the field ${JSON.stringify(name)}`);
}
