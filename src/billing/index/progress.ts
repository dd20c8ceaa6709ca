// How far an index has read its ledger, and whether it is still this ledger.

import { fstatSync, statSync } from "node:fs";
import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { positionSchema } from "../ledger/noted-end.ts";
import { findLastLineEnd, type Source } from "../ledger/reader.ts";
import { findPlace } from "../ledger/rotation.ts";
import { type IndexDatabase, READ_PROGRESS } from "./schema.ts";

const progressSchema = z.lazy(() =>
  z.object({
    /** How far each file of the ledger is read, the oldest first; and the number of its first line. */
    files: z.array(positionSchema.unwrap().extend({ first: z.int() })),
    /** All lines, and those that cannot be read. */
    lines: z.int(),
    unreadable: z.int(),
  }),
);

export type Progress = z.infer<typeof progressSchema>;

export const NOTHING_READ: Progress = { files: [], lines: 0, unreadable: 0 };

/** Throws if the index does not say it: then some of its rows may be missing, too. */
export function readProgress(database: IndexDatabase): Progress {
  const [[text] = []] = database.query(READ_PROGRESS).values();
  if (typeof text !== "string") throw new Error("it does not say how far it has read");
  return progressSchema.parse(parseJson(text));
}

/** Whether the ledger still has the lines that were read, with new ones at most behind them. A file that was removed,
 *  replaced, cut or put back changes what the ledger contains. */
export function fitsLedger({ files }: Progress, sources: readonly Source[]): boolean {
  return files.every((place, index) => {
    const source = sources[index];
    if (source === undefined) return false;
    if (index < files.length - 1 && place.offset !== findLastLineEnd(source)) return false;
    return findPlace(source, place.offset)?.prev === place.prev;
  });
}

/** In bytes. */
export function measureUnread({ files }: Progress, sources: readonly Source[]): number {
  return sources.reduce<number>((sum, source, index) => {
    if (index < files.length - 1) return sum;
    const { size } = typeof source === "number" ? fstatSync(source) : statSync(source);
    return sum + Math.max(0, size - (files[index]?.offset ?? 0));
  }, 0);
}

/** More than this takes longer than a moment. */
const LONG_BYTES = 64 << 20;

/** `report` gets a line for people, who wait for a start or a command meanwhile. */
export function reportLongReading(bytes: number, report: (text: string) => void): void {
  if (bytes > LONG_BYTES) report(`Reading ${Math.round(bytes / 1e6)} MB of the ledger that its index lacks.`);
}
