// Draws amounts as bars, to an eighth of a cell.

import { paint } from "../../terminal/terminal.ts";
import { measure } from "../../terminal/text.ts";

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** An amount of `most` fills all cells. */
function drawBar(part: bigint, most: bigint, cells: number): string {
  if (most <= 0n || part <= 0n || cells <= 0) return "";
  const eighths = Number((part * BigInt(cells) * 8n) / most);
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}

const GAP = 2;
/** Shorter bars would not compare anything. */
const MIN_CELLS = 4;
/** The length where lines have no limit. */
const ENDLESS_CELLS = 40;

/** Appends a bar to each line, in the cells that the longest line leaves free. */
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
