// An anchor proves later that a ledger still has the lines that it had: their number, and the hash of the last one, which
// stands for all before it. A user keeps it where nobody who can change the ledger can change it.

import { GENESIS } from "../ledger/line.ts";
import type { Table } from "../store/open.ts";

export interface Anchor {
  /** How many lines the ledger had. */
  readonly lines: number;
  /** Of the last line. */
  readonly hash: string;
}

export function takeAnchor({ position: { lines, files } }: Table): Anchor {
  return { lines, hash: files.findLast(({ offset }) => offset > 0)?.prev ?? GENESIS };
}

export function formatAnchor({ lines, hash }: Anchor): string {
  return `${lines}:${hash}`;
}

/** Null if the text is not an anchor. */
export function parseAnchor(text: string): Anchor | null {
  const [, lines = "", hash = ""] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase()) ?? [];
  return hash === "" ? null : { lines: Number(lines), hash };
}
