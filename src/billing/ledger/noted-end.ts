// The gateway notes the end of its ledger in two files beside it: in the journal, right after it has written lines, and
// now and then in a small file of its own. A ledger that ends earlier has lost lines. A power cut may take lines that were not synced, and nothing else
// may: what a sync brought to the disk is safe, and a power cut starts the machine again.

import { z } from "zod";

import { readBootId } from "../../lib/files/platform.ts";
import { readOwn, removeOwn, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { parseJson } from "../../lib/json/json.ts";
import { hashLine } from "./line.ts";
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

const END_STATES = ["unexplained", "taken by a power cut", "whole"] as const;
export type EndState = (typeof END_STATES)[number];

/** `isThere`: the line before the position is in the ledger, or one that follows it: then the ledger shows whether something
 *  is missing between them, and its end is later. */
export function judgeEnd(noted: NotedEnd, isThere: (position: Position) => boolean): EndState {
  const { end, synced } = noted;
  if (synced !== null && !isThere(synced)) return "unexplained";
  if (isThere(end)) return "whole";
  return isFromThisStart(noted) ? "unexplained" : "taken by a power cut";
}

/** The worst of what all notes say. */
export function judgeEnds(ends: readonly NotedEnd[], isThere: (position: Position) => boolean): EndState {
  const states = ends.map((noted) => judgeEnd(noted, isThere));
  return END_STATES.find((state) => states.includes(state)) ?? "whole";
}

/** The machine has not been started again since: no power cut explains what is missing. */
export function isFromThisStart({ boot }: NotedEnd): boolean {
  return boot !== null && boot === readBootId();
}

/** What the file beside the ledger notes. */
export interface FiledEnd {
  readonly noted: NotedEnd;
  /** A gateway wrote it that notes the end of the ledger in its journal, too. */
  readonly hasJournal: boolean;
}

const endSchema = z.lazy(() =>
  z.object({ end: positionSchema, synced: positionSchema.nullable(), boot: z.string().nullable() }),
);

/** Version 0.1 noted the end in its sums. Its first releases had no `synced`. */
const formerSchema = z.lazy(() =>
  z.object({
    from: positionSchema,
    synced: positionSchema.nullable().optional(),
    boot: z.string().nullable().optional(),
  }),
);

/** Files of version 0.1 that this version does not write. */
const FORMER_FILES = [".sums", ".hours"];

/** Notes the end, and removes what version 0.1 left. If that fails, the journal still notes it. */
export function writeEnd(path: string, { end, synced, boot }: NotedEnd): void {
  const body = JSON.stringify({ end, synced, boot });
  try {
    replaceFile(`${path}.end`, `${hashLine(body)}\n${body}\n`);
    for (const file of FORMER_FILES) removeOwn(path + file);
  } catch {
    // The journal notes it, too.
  }
}

/** What the files beside the ledger note. The sums of version 0.1 are there only if it was used since. */
export function readEnds(path: string): FiledEnd[] {
  const former = formerSchema.safeParse(readChecked(`${path}.sums`)).data;
  const filed = endSchema.safeParse(readChecked(`${path}.end`)).data;
  const ends: FiledEnd[] = [];
  if (former !== undefined) {
    const { from, synced = null, boot = null } = former;
    ends.push({ noted: { end: from, synced, boot }, hasJournal: former.synced !== undefined });
  }
  if (filed !== undefined) ends.push({ noted: filed, hasJournal: true });
  return ends;
}

/** The sums of a million names. A larger file is not the gateway's. */
const MAX_BYTES = 128 << 20;

/** Null if it is not what was written, to its end: it begins with a hash. */
function readChecked(path: string): unknown {
  try {
    if ((requireOwn(path)?.size ?? 0n) > BigInt(MAX_BYTES)) return null;
    const [check, body] = (readOwn(path) ?? "").split("\n");
    return body === undefined || hashLine(body) !== check ? null : parseJson(body);
  } catch {
    return null;
  }
}
