// An anchor later proves that a ledger still has its lines: their number, and the hash of the last
// line, which covers all lines before it. Users keep it away from those who can change the ledger.

import { GENESIS } from "../ledger/line.ts";
import type { Table } from "../store/open.ts";

export interface Anchor {
  readonly lines: number;
  readonly hash: string;
}

export function takeAnchor({ position: { lines, files } }: Table): Anchor {
  return { lines, hash: files.findLast(({ offset }) => offset > 0)?.prev ?? GENESIS };
}

export function formatAnchor({ lines, hash }: Anchor): string {
  return `${lines}:${hash}`;
}

/** Null: not an anchor. */
export function parseAnchor(text: string): Anchor | null {
  const [, lines = "", hash = ""] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase()) ?? [];
  return hash === "" ? null : { lines: Number(lines), hash };
}
