// Nearly all events of a stream differ from the one before only in a piece of text. These are not
// parsed: parsing takes longer than all other work on them.

import { getText, parseJson } from "../lib/json/json.ts";

/** What JSON allows between two quotes. */
const TEXT = /(?:[ !#-[\]-\uffff]|\\["\\/bfnrt]|\\u[\da-fA-F]{4})*/y;
const NUMBER = /0|[1-9]\d{0,14}/y;
const NOTHING = /(?:)/y;
/** An event's texts and names, and its number. */
const TOKEN = /(?<="sequence_number"\s*:\s*)\d+|"(?:[^"\\]|\\.)*"/g;
/** A filler, which nobody reads. */
const FILLER = /^"obfuscation"\s*:\s*$/;

/** An event without the values that may differ: the text before each, and its pattern. */
export type TextForm = readonly (readonly [before: string, value: RegExp, isPiece: boolean])[];

/** A search in longer ones would take milliseconds. */
const MAX_EVENT_LENGTH = 16_384;

/** Empty if the place of the piece is not clear. */
export function formOf(event: string, data: string, piece: string): TextForm {
  const form: [string, RegExp, boolean][] = [];
  const head = event.lastIndexOf(data);
  const isOnce = event.indexOf(data) === head && event.startsWith(`${data}\n\n`, head);
  if (!isOnce || event.length > MAX_EVENT_LENGTH) return [];
  let from = 0;
  let last = 0;
  for (const { 0: token, index } of data.matchAll(TOKEN)) {
    const quote = token.startsWith('"') ? 1 : 0;
    const isPiece = quote === 1 && read(token.slice(1, -1)) === piece;
    if (quote === 0 || isPiece || FILLER.test(data.slice(last, index))) {
      const start = head + index + quote;
      form.push([event.slice(from, start), quote === 1 ? TEXT : NUMBER, isPiece]);
      from = start + token.length - 2 * quote;
    }
    last = index;
  }
  const isClear = form.filter(([, , isPiece]) => isPiece).length === 1;
  return isClear ? [...form, [event.slice(from), NOTHING, false]] : [];
}

/** The piece of the event at `from`, and where the event ends. Null: another form. */
export function matchForm(form: TextForm, text: string, from: number): readonly [string, number] | null {
  let at = from;
  let piece = "";
  for (const [before, value, isPiece] of form) {
    value.lastIndex = at + before.length;
    if (!text.startsWith(before, at) || !value.test(text)) return null;
    if (isPiece) piece = text.slice(at + before.length, value.lastIndex);
    at = value.lastIndex;
  }
  return at === from ? null : [read(piece), at];
}

function read(written: string): string {
  return written.includes("\\") ? getText(parseJson(`"${written}"`)) : written;
}
