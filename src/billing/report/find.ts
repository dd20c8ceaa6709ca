// Finds the id of a request from the part of it that a person has: the beginning, or
// that the request was the last one.

import { isObject, parseJson } from "../../lib/json/json.ts";
import type { LedgerIndex } from "../index/ledger-index.ts";
import { readLastLines } from "../ledger/follow.ts";

const ID_PREFIX = "req_";

/** The ids that begin with `start`, which may lack `req_`. At most `most`. An id that equals it is the only one. */
export function listRequestIds({ parts }: LedgerIndex, start: string, most: number): string[] {
  const sql =
    "SELECT id, line FROM requests WHERE id >= ?1 AND id < ?1 || char(1114111) AND corrects IS NULL";
  const starts = [start, ID_PREFIX + start];
  const found = starts.flatMap((each) => parts.flatMap((part) => part.list(sql, each)));
  const inOrder = found.toSorted(([, a], [, b]) => Number(a) - Number(b)).map(([id]) => String(id));
  const exact = inOrder.find((id) => starts.includes(id));
  return exact === undefined ? [...new Set(inOrder)].slice(0, most) : [exact];
}

const FIRST_LOOK = 64;

/** Of the key, if one is given. Null if there is no such request. */
export function findLastRequestId(path: string, key: string | null): string | null {
  for (let count = FIRST_LOOK; ; count *= 8) {
    const { texts } = readLastLines(path, count);
    for (const text of texts.toReversed()) {
      const id = readRequestId(text, key);
      if (id !== null) return id;
    }
    if (texts.length < count) return null;
  }
}

/** Null for a correction, a mark, a damaged line, and a line of another key. */
function readRequestId(text: string, key: string | null = null): string | null {
  const line = parseJson(text);
  if (!isObject(line) || line["corrects"] !== undefined || line["mark"] !== undefined) return null;
  if (key !== null && line["key"] !== key) return null;
  const { id } = line;
  return typeof id === "string" ? id : null;
}
