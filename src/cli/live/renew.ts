// Shows lines on a terminal, and renews them.

import { cutText } from "../terminal/text.ts";
import { paint, readSize } from "../terminal/terminal.ts";

const REFRESH_MS = 500;
const CLEAR = "\u001B[2J";
const HOME = "\u001B[H";
const CLEAR_LINE = "\u001B[K";
const CLEAR_BELOW = "\u001B[J";
const FOOT = "Ctrl-C ends it.";

export async function renew<T>(
  first: T,
  look: () => Promise<T>,
  draw: (seen: T, columns: number) => readonly string[],
): Promise<void> {
  const { stdout: out } = process;
  const end = (): never => process.exit(0);
  process.once("SIGINT", end);
  process.once("exit", () => out.write("\n"));
  out.write(CLEAR);
  for (let seen = first; !out.destroyed; seen = await look()) {
    const { columns, rows } = readSize();
    const lines = draw(seen, columns).slice(0, Math.max(0, rows - 1));
    // CLEAR_LINE after a full line would delete its last character.
    const shown = [...lines, paint("dim", cutText(FOOT, columns))].map((line) => CLEAR_LINE + line);
    out.write(HOME + shown.join("\r\n") + CLEAR_BELOW);
    await Bun.sleep(REFRESH_MS);
  }
}
