// The agents' logs, as commands read them: with a line of progress on a terminal, and with a word on what could not be read.

import type { History } from "../../../billing/history/entry.ts";
import { readHistory } from "../../../billing/history/read-history.ts";
import { readLoggedUsage } from "../../../dialects/meters/logged.ts";
import { printNote } from "../../terminal/terminal.ts";
import { formatCount } from "../../terminal/text.ts";

const EACH_MS = 100;
const MB = 1e6;
/** Less is read before anybody could see it. */
const MIN_BYTES = 32 * MB;
const CLEAR_LINE = "\r\u001B[K";

export function readLogs(): History {
  let [shown, size] = [Number.NEGATIVE_INFINITY, 0];
  const onProgress = (done: number, all: number): void => {
    size = all;
    if (!process.stderr.isTTY || all < MIN_BYTES || performance.now() - shown < EACH_MS) return;
    shown = performance.now();
    const [read, whole] = [done, all].map((bytes) => Math.round(bytes / MB).toLocaleString("en-US"));
    process.stderr.write(`${CLEAR_LINE}Reading logs: ${read} of ${whole} MB`);
  };
  const history = readHistory({ env: process.env, usageOf: readLoggedUsage, onProgress });
  if (shown > 0) process.stderr.write(CLEAR_LINE);
  // What reading leaves behind would stand in memory next to the sums, a third as much again.
  if (size >= MIN_BYTES) Bun.gc(true);
  return history;
}

export function reportUnread({ unread, damaged, tooLong }: History): void {
  const [first, ...others] = unread;
  const more = others.length > 0 ? `; and ${formatCount(others.length, "file")} more` : "";
  if (first !== undefined) printNote(`A log could not be read: ${first}${more}.`);
  if (damaged > 0) printNote(`${formatCount(damaged, "damaged line")} of the logs not counted.`);
  if (tooLong > 0)
    printNote(`${formatCount(tooLong, "line")} of the logs too long to be read, and not counted.`);
}
