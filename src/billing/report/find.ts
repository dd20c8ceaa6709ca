// Finds the id of a request from the part of it that a person has: the beginning, or
// that the request was the last one.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { readLastLines } from "../ledger/follow.ts";
import { readLines } from "../ledger/reader.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";

const ID_PREFIX = "req_";

/** The ids that begin with `start`, which may lack `req_`. At most `most`. An id that equals it is the only one. */
export function listRequestIds(path: string, start: string, most: number): string[] {
  const starts = [start, ID_PREFIX + start];
  const marks = starts.map((each) => `"id":${JSON.stringify(each).slice(0, -1)}`);
  const found = new Set<string>();
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { text } of readLines(source)) {
      if (!marks.some((mark) => text.includes(mark))) continue;
      const id = readRequestId(text);
      if (id === null || !starts.some((each) => id.startsWith(each))) continue;
      if (starts.includes(id)) return [id];
      if (found.size < most) found.add(id);
    }
  }
  return [...found];
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

/** Null for a correction, a damaged line, and a line of another key. */
function readRequestId(text: string, key: string | null = null): string | null {
  const line = parseJson(text);
  if (!isObject(line) || line["corrects"] !== undefined) return null;
  if (key !== null && line["key"] !== key) return null;
  const { id } = line;
  return typeof id === "string" ? id : null;
}
