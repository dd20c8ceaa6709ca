// Updates a table from its ledger. SQLite lets one process at a time do so.

import { fstatSync, statSync } from "node:fs";
import { z } from "zod";
import { parseJson } from "../../lib/json/json.ts";
import { hashLine } from "../ledger/line.ts";
import { positionSchema } from "../ledger/journal.ts";
import { findLastLineEnd, readLines, type Source } from "../ledger/reader.ts";
import { findPlace } from "../ledger/rotation.ts";
import { Inserter } from "./insert.ts";
import { hasTables, makeTables, type TableDatabase } from "./schema.ts";
import { isZero, weighRows } from "./weights.ts";

const readSchema = z.lazy(() =>
  z.object({
    /** For each file, the oldest first: how far it is read,
     *  and the number of its first line. */
    files: z.array(positionSchema.unwrap().extend({ first: z.int() })),
    lines: z.int(),
  }),
);

export type FollowPosition = z.infer<typeof readSchema>;

export const NOTHING_READ: FollowPosition = { files: [], lines: 0 };

export function readPosition(database: TableDatabase): FollowPosition | null {
  const [[text] = []] = database.query("SELECT position FROM state").values();
  return readSchema.safeParse(parseJson(String(text))).data ?? null;
}

function fitsLedger({ files }: FollowPosition, sources: readonly Source[]): boolean {
  return files.every((place, index) => {
    const source = sources[index];
    if (source === undefined) return false;
    if (index < files.length - 1 && place.offset !== findLastLineEnd(source)) return false;
    return findPlace(source, place.offset)?.prev === place.prev;
  });
}

export function measureUnread({ files }: FollowPosition, sources: readonly Source[]): number {
  return sources.reduce<number>((sum, source, index) => {
    if (index < files.length - 1) return sum;
    const { size } = typeof source === "number" ? fstatSync(source) : statSync(source);
    return sum + Math.max(0, size - (files[index]?.offset ?? 0));
  }, 0);
}

/** Reads about `most` bytes of new lines in one transaction. True: all are read. */
export function follow(database: TableDatabase, sources: readonly Source[], most = Infinity): boolean {
  const seen = findPosition(database, sources);
  if (seen?.files.length === sources.length && measureUnread(seen, sources) === 0) return true;
  database.run("BEGIN IMMEDIATE");
  try {
    // Another process may have read more meanwhile.
    let position = findPosition(database, sources);
    if (position === null) {
      makeTables(database);
      position = NOTHING_READ;
    }
    const isAll = readOn(database, position, sources, most);
    database.run("COMMIT");
    return isAll;
  } catch (error) {
    if (database.inTransaction) database.run("ROLLBACK");
    throw error;
  }
}

/** Returns null if the tables are missing,
 *  of another version or from another ledger. */
function findPosition(database: TableDatabase, sources: readonly Source[]): FollowPosition | null {
  const position = hasTables(database) ? readPosition(database) : null;
  return position !== null && fitsLedger(position, sources) ? position : null;
}

function readOn(
  database: TableDatabase,
  start: FollowPosition,
  sources: readonly Source[],
  most: number,
): boolean {
  let position = start;
  const inserter = new Inserter(database, start.lines);
  database.run("UPDATE state SET edited = 1");
  let left = most;
  for (const [index, source] of sources.entries()) {
    if (left <= 0) break;
    if (index < position.files.length - 1) continue;
    const { files, lines } = position;
    const from = files[index] ?? { offset: 0, prev: findPlace(source, 0)?.prev ?? "", first: lines + 1 };
    let [at, line, last] = [from.offset, lines, ""];
    for (const { text, next, whole } of readLines(source, from.offset)) {
      if (!whole || at - from.offset >= left) break;
      line += 1;
      inserter.add(parseJson(text), { line, place: at });
      last = text;
      at = next;
    }
    const place = { ...from, offset: at, prev: line > lines ? hashLine(last) : from.prev };
    position = { files: [...files.slice(0, index), place], lines: line };
    left -= at - from.offset;
  }
  database.query(NOTE_TIMES).run(start.lines);
  const { weight, paid } = weighRows(database, "lines WHERE line > $line", start.lines);
  database.query(NOTE_READ).run(JSON.stringify(position), weight + inserter.weight, paid + inserter.paid);
  database.run("UPDATE state SET edited = 0");
  return left > 0;
}

const NOTE_TIMES = `UPDATE names SET first_at = (SELECT MIN(at) FROM lines WHERE who = names.who),
  last_at = (SELECT MAX(at) FROM lines WHERE who = names.who) WHERE who IN (SELECT who FROM lines WHERE line > ?)`;

const NOTE_READ = "UPDATE state SET position = ?, weight = weight + ?, paid = paid + ?";

/** False: somebody has changed the rows. */
export function hasItsSums(database: TableDatabase): boolean {
  const [[weight, paid] = []] = database.query("SELECT weight, paid FROM state").values();
  const found = weighRows(database, "lines INDEXED BY by_who");
  const isSame = isZero(found.weight - Number(weight)) && isZero(found.paid - Number(paid));
  return isUnedited(database) && isSame && found.hasTimes;
}

export function isUnedited(database: TableDatabase): boolean {
  return database.query("SELECT edited FROM state").values()[0]?.[0] !== 1;
}
