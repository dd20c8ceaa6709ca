// A row for each session: its sums, which limits and the status line need at a start, however long the ledger is. They
// are kept as text, because an amount may have any size.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { formatUsd, parseUsd } from "../../lib/money.ts";
import type { Entry } from "../ledger/sums/entry.ts";
import {
  addEntry,
  joinRises,
  type MutableSum,
  openSum,
  type SessionSum,
  type WindowRise,
} from "../ledger/sums/session-sums.ts";
import type { LedgerIndex } from "./ledger-index.ts";
import type { IndexDatabase } from "./schema.ts";

const sumSchema = z.lazy(() =>
  z.object({
    charged: z.string(),
    estimated: z.string(),
    requests: z.number(),
    input: z.number(),
    cached: z.number(),
    key: z.string(),
    model: z.string(),
    lastUsed: z.string(),
    windows: z
      .record(z.string(), z.object({ first: z.number(), last: z.number(), rise: z.number() }))
      .default({}),
  }),
);

interface Change {
  readonly sum: MutableSum;
  /** The number of its last line. */
  line: number;
}

/** The sums of the sessions that new lines have. */
export class SessionChanges {
  readonly #changes = new Map<string, Change>();

  add(entry: Entry, line: number, database: IndexDatabase): void {
    const { session, usage } = entry;
    if (session === undefined) return;
    const change = this.#changes.get(session) ?? { sum: readSum(session, database), line: 0 };
    this.#changes.set(session, change);
    addEntry(change.sum, entry);
    // A correction does not use the session.
    if (usage !== null) change.line = line;
  }

  write(database: IndexDatabase): void {
    const query = database.query(
      "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET sums = excluded.sums, line = max(line, excluded.line)",
    );
    for (const [session, { sum, line }] of this.#changes) query.run(session, encodeSum(sum), line);
    this.#changes.clear();
  }
}

function readSum(session: string, database: IndexDatabase): MutableSum {
  const [[text] = []] = database.query("SELECT sums FROM sessions WHERE session = ?").values(session);
  return typeof text === "string" ? decodeSum(text) : openSum();
}

function encodeSum({ charged, estimated, ...sum }: SessionSum): string {
  return JSON.stringify({ ...sum, charged: formatUsd(charged), estimated: formatUsd(estimated) });
}

function decodeSum(text: string): MutableSum {
  const { charged, estimated, ...sum } = sumSchema.parse(parseJson(text));
  return { ...sum, charged: parseUsd(charged), estimated: parseUsd(estimated) };
}

/** By how much the windows of a plan rose while the session ran. */
export function sumRises({ parts }: LedgerIndex, session: string): Record<string, number> {
  const rises: Record<string, WindowRise> = {};
  for (const part of parts)
    for (const [text] of part.list("SELECT sums FROM sessions WHERE session = ?", session))
      for (const [name, rise] of Object.entries(decodeSum(String(text)).windows))
        rises[name] = rises[name] === undefined ? rise : joinRises(rises[name], rise);
  return Object.fromEntries(Object.entries(rises).map(([name, { rise }]) => [name, rise]));
}

/** The sessions of the last lines but `skip`, at most `most`, the last one at the end. */
export function listSessionSums(
  { parts }: LedgerIndex,
  most: number,
  skip = 0,
): [id: string, sum: MutableSum][] {
  const sql = "SELECT session, sums FROM sessions ORDER BY line DESC LIMIT ? OFFSET ?";
  return parts.flatMap((part) =>
    part
      .list(sql, most, skip)
      .toReversed()
      .map(([session, sums]): [string, MutableSum] => [String(session), decodeSum(String(sums))]),
  );
}
