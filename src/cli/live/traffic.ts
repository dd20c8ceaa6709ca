// The status line: open streams, tokens per second, and the spending of the day.

import { formatAmount, measure } from "../terminal/text.ts";

export interface Status {
  readonly open: number;
  readonly tokensPerSecond: number;
  /** A decimal in USD. */
  readonly today: string;
}

/** The longest form that fits. */
export function describeStatus({ open, tokensPerSecond, today }: Status, room: number): string {
  const spent = `$${formatAmount(today)}`;
  const forms = [
    [`${open} open ${open === 1 ? "stream" : "streams"}`, `${tokensPerSecond} tokens/s`, `${spent} today`],
    [`${open} open`, `${tokensPerSecond} tok/s`, spent],
  ].map((parts) => parts.join(" · "));
  return forms.find((form) => measure(form) <= room) ?? forms.at(-1) ?? "";
}
