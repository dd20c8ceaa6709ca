// How far a table has read its ledger, and whether it is still this ledger.

import { fstatSync, statSync } from "node:fs";
import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { positionSchema } from "../ledger/noted-end.ts";
import { findLastLineEnd, type Source } from "../ledger/reader.ts";
import { findPlace } from "../ledger/rotation.ts";
import type { TableDatabase } from "./schema.ts";

const readSchema = z.lazy(() =>
  z.object({
    /** How far each file of the ledger is read, the oldest first; and the number of its first line. */
    files: z.array(positionSchema.unwrap().extend({ first: z.int() })),
    lines: z.int(),
  }),
);

export type Position = z.infer<typeof readSchema>;

export const NOTHING_READ: Position = { files: [], lines: 0 };

/** Null: the table does not say it. */
export function readPosition(database: TableDatabase): Position | null {
  const [[text] = []] = database.query("SELECT position FROM state").values();
  return readSchema.safeParse(parseJson(String(text))).data ?? null;
}

/** Whether the ledger still has the lines that were read, with new ones at most behind them. A file that was removed,
 *  replaced, cut or put back changes what the ledger contains. */
export function fitsLedger({ files }: Position, sources: readonly Source[]): boolean {
  return files.every((place, index) => {
    const source = sources[index];
    if (source === undefined) return false;
    if (index < files.length - 1 && place.offset !== findLastLineEnd(source)) return false;
    return findPlace(source, place.offset)?.prev === place.prev;
  });
}

/** In bytes. */
export function measureUnread({ files }: Position, sources: readonly Source[]): number {
  return sources.reduce<number>((sum, source, index) => {
    if (index < files.length - 1) return sum;
    const { size } = typeof source === "number" ? fstatSync(source) : statSync(source);
    return sum + Math.max(0, size - (files[index]?.offset ?? 0));
  }, 0);
}
