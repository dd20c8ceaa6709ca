// The gateway notes the end of its ledger in two files beside it: in the journal, right after it has written lines, and in
// the sums. A ledger that ends earlier has lost lines. A power cut may take lines that were not synced, and nothing else
// may: what a sync brought to the disk is safe, and a power cut starts the machine again.

import { z } from "zod";

import { readBootId } from "../../lib/files/boot-id.ts";
import type { Position } from "./rotation.ts";

export const positionSchema = z.lazy(() => z.object({ offset: z.int().nonnegative(), prev: z.string() }));

export interface NotedEnd {
  /** After the last written line. */
  readonly end: Position;
  /** After the last line that is certainly on the disk. Null: none is known. */
  readonly synced: Position | null;
  /** The start of the machine during which this was noted. Null: not known. */
  readonly boot: string | null;
}

export type EndState = "whole" | "taken by a power cut" | "unexplained";

/** `isThere`: the line before the position is in the ledger, or one that follows it: then the ledger shows whether something
 *  is missing between them, and its end is later. */
export function judgeEnd(
  { end, synced, boot }: NotedEnd,
  isThere: (position: Position) => boolean,
): EndState {
  if (synced !== null && !isThere(synced)) return "unexplained";
  if (isThere(end)) return "whole";
  return boot !== null && boot === readBootId() ? "unexplained" : "taken by a power cut";
}
