// Nearly all events of a stream differ only in a piece of text. These are not
// parsed: parsing takes longer than all other work on them.

import { getText, parseJson } from "../lib/json/json.ts";

/** A text without half of a character, which may belong to the next piece. */
const TEXT = /[ !#-[\]-\uffff]*(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[\da-fA-F]{4})[ !#-[\]-\uffff]*)*/y;
const NUMBER = /0|[1-9]\d{0,14}/y;
const NOTHING = /(?:)/y;
const TOKEN = /(?<="sequence_number"\s*:\s*)\d+|"(?:[^"\\]|\\.)*"/g;
/** The name of a filler, which nobody reads. */
const FILLER = /^"obfuscation"\s*:\s*$/;

export type TextForm = readonly (readonly [before: string, value: RegExp, isPiece: boolean])[];

/** Searching a longer event would take milliseconds. */
const MAX_EVENT_LENGTH = 16_384;

/** Empty if the piece has no clear place. */
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

/** The pieces from `from` on, and their end. Null: another form. */
export function matchForm(form: TextForm, text: string, from: number): readonly [string, number] | null {
  let pieces = "";
  for (let [at, end] = [from, from]; ; end = at) {
    let piece = "";
    for (const [before, value, isPiece] of form) {
      value.lastIndex = at + before.length;
      if (!text.startsWith(before, at) || !value.test(text)) return end === from ? null : [pieces, end];
      if (isPiece) piece = text.slice(at + before.length, value.lastIndex);
      at = value.lastIndex;
    }
    if (at === end) return null;
    pieces += read(piece);
  }
}

function read(written: string): string {
  return written.includes("\\") ? getText(parseJson(`"${written}"`)) : written;
}
