// Amounts as bars: for eyes, to an eighth of a cell.

const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/** `most` fills all cells. */
export function drawBar(part: bigint, most: bigint, cells: number): string {
  if (most <= 0n || part <= 0n || cells <= 0) return "";
  const eighths = Number((part * BigInt(cells) * 8n) / most);
  return "█".repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? "");
}
