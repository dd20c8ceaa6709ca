// The journal notes the ledger's end, with the next request or after a sync. A ledger that ends
// earlier has lost lines. Only a power cut, which restarts the machine, may take unsynced lines.

import { z } from "zod";

import { readOwn, removeOwn, requireOwn } from "../../lib/files/own-file.ts";
import { readBootId } from "../../lib/files/platform.ts";
import { parseJson } from "../../lib/json/json.ts";
import { hashLine } from "./line.ts";
import type { Position } from "./rotation.ts";

export const positionSchema = z.lazy(() => z.object({ offset: z.int().nonnegative(), prev: z.string() }));

export interface NotedEnd {
  /** After the last written line. */
  readonly end: Position;
  /** After the last line that is certainly on the disk. Null: unknown. */
  readonly synced: Position | null;
  /** The start of the machine in which this was noted. Null: unknown. */
  readonly boot: string | null;
  /** A sync failed during this start of the machine. */
  readonly failed?: true | undefined;
}

const END_STATES = ["unexplained", "taken by a power cut", "whole"] as const;
export type EndState = (typeof END_STATES)[number];

/** `isThere`: the ledger has the line before the position, or a later line that shows a gap. */
export function judgeEnd(noted: NotedEnd, isThere: (position: Position) => boolean): EndState {
  const { end, synced } = noted;
  if (synced !== null && !isThere(synced)) return "unexplained";
  if (isThere(end)) return "whole";
  return isFromThisStart(noted) ? "unexplained" : "taken by a power cut";
}

export function judgeEnds(ends: readonly NotedEnd[], isThere: (position: Position) => boolean): EndState {
  const states = ends.map((noted) => judgeEnd(noted, isThere));
  return END_STATES.find((state) => states.includes(state)) ?? "whole";
}

/** The machine was not restarted since: no power cut explains missing lines. */
export function isFromThisStart({ boot }: NotedEnd): boolean {
  return boot !== null && boot === readBootId();
}

/** Files of versions 0.1 and 0.2 next to the ledger. */
const OLD_FILES = [".end", ".sums", ".hours"];

const oldSchema = z.lazy(() =>
  z.object({ end: positionSchema, synced: positionSchema.nullable(), boot: z.string().nullable() }),
);

/** The end that version 0.2 noted, in a file that begins with a hash of the rest. */
export function readOldEnd(path: string): NotedEnd | null {
  try {
    const [check, body = ""] = (readOwn(`${path}.end`) ?? "").split("\n");
    return hashLine(body) === check ? (oldSchema.safeParse(parseJson(body)).data ?? null) : null;
  } catch {
    return null;
  }
}

/** Call this when the journal notes the end. Returns the names of the removed files. */
export function removeOldFiles(path: string): string[] {
  return OLD_FILES.filter((name) => {
    try {
      if (requireOwn(path + name) === null) return false;
      removeOwn(path + name);
      return true;
    } catch {
      // The file is not the gateway's.
      return false;
    }
  });
}
