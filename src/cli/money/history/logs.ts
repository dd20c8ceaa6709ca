// The agents' logs, as commands read them: with a line of progress on a terminal, and with a word on what could not be read.

import type { History, LoggingTool } from "../../../billing/history/entry.ts";
import { readHistory } from "../../../billing/history/read-history.ts";
import { readLoggedUsage } from "../../../dialects/meters/logged.ts";
import { printNote } from "../../terminal/terminal.ts";
import { formatCount } from "../../terminal/text.ts";

export function readLogs(tools?: readonly LoggingTool[]): History {
  const progress = new Progress();
  const history = readHistory({
    ...(tools !== undefined && { tools }),
    env: process.env,
    usageOf: readLoggedUsage,
    onProgress: (done, all) => progress.show(done, all),
  });
  progress.clear();
  return history;
}

const EACH_MS = 100;
const MB = 1e6;
/** Less is read before anybody could see it. */
const MIN_BYTES = 32 * MB;

/** On stderr, and only on a terminal. */
class Progress {
  #shown = Number.NEGATIVE_INFINITY;
  #hasText = false;

  show(done: number, all: number): void {
    if (!process.stderr.isTTY || all < MIN_BYTES || performance.now() - this.#shown < EACH_MS) return;
    this.#shown = performance.now();
    this.#hasText = true;
    const [read, size] = [done, all].map((bytes) => Math.round(bytes / MB).toLocaleString("en-US"));
    process.stderr.write(`\r\u001B[KReading logs: ${read} of ${size} MB`);
  }

  clear(): void {
    if (this.#hasText) process.stderr.write("\r\u001B[K");
  }
}

export function reportUnread({ unread, damaged, tooLong }: History): void {
  const [first] = unread;
  if (first !== undefined)
    printNote(
      `${formatCount(unread.length, "file")} of the logs could not be read: ${first}${unread.length > 1 ? ", …" : ""}.`,
    );
  if (damaged > 0)
    printNote(
      `${formatCount(damaged, "line")} of the logs ${damaged === 1 ? "is" : "are"} damaged and not counted.`,
    );
  if (tooLong > 0)
    printNote(
      `${formatCount(tooLong, "line")} of the logs ${tooLong === 1 ? "is" : "are"} too long to be read, and not counted.`,
    );
}
