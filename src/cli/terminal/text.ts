// Text for a terminal: measured in cells, cut, and aligned. Pure.

import { formatRounded, parseDecimal } from "../../lib/money.ts";

export function measure(text: string): number {
  return Bun.stringWidth(text);
}

/** Cuts between whole characters, and ends with an ellipsis if anything is missing. */
export function cutText(text: string, room: number): string {
  if (measure(text) <= room) return text;
  let cut = "";
  let width = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += measure(segment);
    if (width > room - 1) break;
    cut += segment;
  }
  return room < 1 ? "" : `${cut}…`;
}

export function alignText(text: string, room: number, align: "left" | "right" = "left"): string {
  const shown = cutText(text, room);
  const blank = " ".repeat(Math.max(0, room - measure(shown)));
  return align === "right" ? blank + shown : shown + blank;
}

/** `1 key`, `10,000 keys`. */
export function formatCount(count: number, word: string): string {
  return `${count.toLocaleString("en-US")} ${word}${count === 1 ? "" : "s"}`;
}

/** The part of a request's id that people need: its time. `gateway ledger show` accepts it. */
export function shortenId(id: string): string {
  return id.replace(/^req_/, "").slice(0, 9);
}

const INFERRED = /^inferred-/;

/** The part of a session's id that people need. `~`: the tool did not name the session. Commands accept both. */
export function shortenSession(id: string, length = 8): string {
  return INFERRED.test(id) ? `~${id.replace(INFERRED, "").slice(0, length)}` : id.slice(0, length);
}

export function lengthenSession(words: string): string {
  return words.replace(/^~/, "inferred-");
}

const AMOUNT_PLACES = 6;

/** An amount in USD for people. The number of decimals is always the same, so that amounts in a column compare. */
export function formatAmount(usd: string): string {
  return formatRounded(parseDecimal(usd), AMOUNT_PLACES);
}
