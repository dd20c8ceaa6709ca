// Reads a line by the order in which the gateway writes its fields, many times
// faster than JSON does: reports read a million of them. Exact, not a guess: what
// does not look just so is no match, and is read as JSON. Only what no report needs
// is passed over unread: `raw_usage`, and whether `prev` is a hash.

import { type Bytes, Pieces } from "./bytes.ts";
import { fillForm, type Form } from "./form.ts";
import { learnForm } from "./pattern.ts";

/** Holds until the next line is scanned. Its texts stay in the bytes until they are asked for. */
export interface ScannedLine {
  readonly form: Form;
  /** First those of the form's kinds, in their order. */
  readonly counts: ArrayLike<number>;
  /** In pico-dollars; null where the form has no prices. */
  readonly official: number | null;
  readonly charge: number | null;
  readonly bytes: Buffer;
  readonly idTo: number;
  readonly timeTo: number;
  readonly keyTo: number;
}

/** What stands before the id, the time and the key, and behind them. */
const HEAD = ['{"v":1,"id":"', '","time":"', '","key":"', '",'] as const;
const PIECES = new Pieces(HEAD);
const [ID, TIME, KEY, REST] = [0, 1, 2, 3] as const;
const QUOTE = 34;
const BRACE = 123;
const BACKSLASH = 92;
const FIRST_PRINTED = 32;

const GROUPS_KEPT = 4096;
/** Forms that are alike to the index: requests of one model that ended otherwise, used other kinds, went elsewhere first. */
const FORMS_KEPT = 8;

export class LineScanner {
  readonly #forms = new Map<number, Form[]>();

  /** The line from `from` to its newline at `to`. Null: read it as JSON. */
  scan(bytes: Bytes, from: number, to: number): ScannedLine | null {
    const idTo = passText(bytes, from, ID);
    const timeTo = passText(bytes, idTo, TIME);
    const keyTo = passText(bytes, timeTo, KEY);
    const at = PIECES.pass(bytes, keyTo, REST);
    if (at < 0) return null;
    const forms = this.#formsAt(bytes, at);
    const form = fillKnown(forms, bytes, at, to) ?? fillNew(forms, bytes, at, to);
    if (form === null) return null;
    const { numbers, isPriced, behindRaw } = form;
    return {
      form,
      counts: numbers,
      official: isPriced ? (numbers[behindRaw] ?? null) : null,
      charge: isPriced ? (numbers[behindRaw + 1] ?? null) : null,
      bytes: bytes.buffer,
      idTo,
      timeTo,
      keyTo,
    };
  }

  #formsAt(bytes: Bytes, from: number): Form[] {
    const index = indexOf(bytes.buffer, from);
    const known = this.#forms.get(index);
    if (known !== undefined) return known;
    if (this.#forms.size >= GROUPS_KEPT) this.#forms.clear();
    const forms: Form[] = [];
    this.#forms.set(index, forms);
    return forms;
  }
}

export function timeOf({ bytes, idTo, timeTo }: ScannedLine): string {
  return bytes.toString("utf8", idTo + HEAD[TIME].length, timeTo);
}

export function keyOf({ bytes, timeTo, keyTo }: ScannedLine): string {
  return bytes.toString("utf8", timeTo + HEAD[KEY].length, keyTo);
}

/** Where the text that follows a piece ends; -1: there is none, or it is not plain. */
function passText(bytes: Bytes, from: number, piece: number): number {
  let at = PIECES.pass(bytes, from, piece);
  if (at < 0) return -1;
  for (;;) {
    const code = bytes.buffer[at] ?? 0;
    if (code === QUOTE) return at;
    if (code < FIRST_PRINTED || code === BACKSLASH) return -1;
    at += 1;
  }
}

const STRIDE = 5;

/** Of every few characters before the usage: of who was asked for what. */
function indexOf(bytes: Buffer, from: number): number {
  const end = bytes.indexOf(BRACE, from);
  let index = end - from;
  for (let at = from; at < end; at += STRIDE) index = Math.imul(index, 31) + (bytes[at] ?? 0);
  return index;
}

/** A form that is met moves forward by one: frequent ones are tried first. */
function fillKnown(forms: Form[], bytes: Bytes, from: number, to: number): Form | null {
  for (let index = 0; index < forms.length; index += 1) {
    const form = forms[index];
    if (form === undefined || !fillForm(form, bytes, from, to)) continue;
    const before = forms[index - 1];
    if (before !== undefined) {
      forms[index] = before;
      forms[index - 1] = form;
    }
    return form;
  }
  return null;
}

function fillNew(forms: Form[], bytes: Bytes, from: number, to: number): Form | null {
  const form = learnForm(bytes.buffer.toString("utf8", from, to));
  if (form === null || !fillForm(form, bytes, from, to)) return null;
  if (forms.length >= FORMS_KEPT) forms.pop();
  forms.push(form);
  return form;
}
