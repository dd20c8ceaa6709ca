// What the watchdog has noted.

import { existsSync, readFileSync } from "node:fs";
import { z } from "zod";

const stallSchema = z.object({
  /** CPU time of the thread. */
  ms: z.number(),
  /** Our functions that ran, the innermost first. Empty: the runtime itself, such as its collector. */
  names: z.string(),
});

/** The longest first. */
export function readStalls(file: string): z.infer<typeof stallSchema>[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => stallSchema.parse(JSON.parse(line))).toSorted((a, b) => b.ms - a.ms);
}
