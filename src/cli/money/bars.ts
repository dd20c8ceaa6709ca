// Amounts as bars: for eyes, to an eighth of a cell.

import { paint } from "../terminal.ts";
import { measure } from "../text.ts";

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** `most` fills all cells. */
export function drawBar(part: bigint, most: bigint, cells: number): string {
  if (most <= 0n || part <= 0n || cells <= 0) return "";
  const eighths = Number((part * BigInt(cells) * 8n) / most);
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

const GAP = 2;
/** A shorter bar compares nothing. */
const MIN_CELLS = 4;
/** Where the lines may be as long as they like. */
const ENDLESS_CELLS = 40;

/** Gives each line a bar of its amount, in the cells that the longest line leaves. */
export function appendBars(lines: readonly string[], amounts: readonly bigint[], room: number): string[] {
  const width = Math.max(0, ...lines.map(measure));
  const cells = room === Number.POSITIVE_INFINITY ? ENDLESS_CELLS : room - width - GAP;
  if (cells < MIN_CELLS) return [...lines];
  const most = amounts.reduce((high, amount) => (amount > high ? amount : high), 0n);
  return lines.map((line, index) => {
    const bar = drawBar(amounts[index] ?? 0n, most, cells);
    return bar === "" ? line : line + " ".repeat(width - measure(line) + GAP) + paint("cyan", bar);
  });
}
