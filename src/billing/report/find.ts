// Finds a request or a session from the part of its id that a person has: the beginning, or that it was the last one.

import { getField, parseJson } from "../../lib/json/json.ts";
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

/** The sessions that begin with `start`, at most `most`. A session that equals it is the only one. */
export function listSessions(index: LedgerIndex, start: string, most: number): string[] {
  const sql =
    "SELECT session FROM senders WHERE session <> '' AND session >= ?1 AND session < ?1 || char(1114111) ORDER BY id";
  const found = index.parts.flatMap((part) => part.list(sql, start).map(([session]) => String(session)));
  return found.includes(start) ? [start] : [...new Set(found)].slice(0, most);
}

const FIRST_LOOK = 64;

/** What the last line says of which `read` knows something. Null: there is no such line. */
function findLast(path: string, read: (line: unknown) => string | null): string | null {
  for (let count = FIRST_LOOK; ; count *= 8) {
    const texts = readLastLines(path, count);
    for (const text of texts.toReversed()) {
      const line = parseJson(text);
      const isRequest = getField(line, "corrects") === undefined && getField(line, "mark") === undefined;
      const found = isRequest ? read(line) : null;
      if (found !== null) return found;
    }
    if (texts.length < count) return null;
  }
}

/** Of the key, if one is given. Null if there is no such request. */
export function findLastRequestId(path: string, key: string | null): string | null {
  return findLast(path, (line) =>
    key === null || getField(line, "key") === key ? readText(line, "id") : null,
  );
}

/** The session of the last request that has one. Null: no request has one. */
export function findLastSession(path: string): string | null {
  return findLast(path, (line) => readText(getField(line, "client"), "session"));
}

function readText(value: unknown, name: string): string | null {
  const text = getField(value, name);
  return typeof text === "string" ? text : null;
}
