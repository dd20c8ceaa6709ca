// A row for each session: its sums, which limits and the status line need at a start, however long the ledger is. They
// are kept as text, because an amount may have any size.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { addUsd, formatUsd, joinUsd, parseUsd, type Usd } from "../../lib/money.ts";
import type { Entry } from "../ledger/sums/entry.ts";
import {
  addEntry,
  joinRises,
  type MutableSum,
  openSum,
  type SessionSum,
  type WindowRise,
} from "../ledger/sums/session-sums.ts";
import { readOdd } from "./cells.ts";
import { LAST, type TimeRange } from "./groups.ts";
import type { IndexPart, LedgerIndex } from "./ledger-index.ts";
import type { IndexDatabase } from "./schema.ts";
import type { Traits } from "./traits.ts";

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
    const open = (): Change => ({ sum: readSum(session, database), line: 0 });
    const change = this.#changes.getOrInsertComputed(session, open);
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

export interface SessionChoice extends TimeRange {
  /** Which kinds of requests. */
  readonly wants: (traits: Traits) => boolean;
  /** By their last request, or by what was charged for them. */
  readonly order: "newest" | "charge";
  readonly most: number;
}

interface Choice {
  readonly session: string;
  last: string;
  charge: Usd;
}

/** The first ones in this order of the sessions that have such requests in a range. */
export function chooseSessions({ parts }: LedgerIndex, { order, most, ...choice }: SessionChoice): string[] {
  const chosen = new Map<string, Choice>();
  for (const each of parts.flatMap((part) => listChoices(part, choice))) {
    const own = chosen.getOrInsert(each.session, each);
    if (own === each) continue;
    own.last = each.last > own.last ? each.last : own.last;
    own.charge = addUsd(own.charge, each.charge);
  }
  const compare = order === "newest" ? compareTimes : compareCharges;
  return [...chosen.values()]
    .sort(compare)
    .slice(0, most)
    .map(({ session }) => session);
}

function compareTimes(a: Choice, b: Choice): number {
  return a.last === b.last ? 0 : a.last < b.last ? 1 : -1;
}

/** The newest first among equals. */
function compareCharges(a: Choice, b: Choice): number {
  return a.charge === b.charge ? compareTimes(a, b) : a.charge > b.charge ? -1 : 1;
}

/** A share that is wholly in the range has its sums. Of the others, the requests are added up. */
function listChoices(part: IndexPart, { since, until, wants }: Omit<SessionChoice, "order" | "most">) {
  const ids = part.list("SELECT id FROM traits").map(([id]) => Number(id));
  const wanted = ids.filter((id) => wants(part.traitsOf(id)));
  const among = wanted.length === ids.length ? "" : `AND trait IN (${wanted.join(", ")})`;
  const isIn = "since >= ?1 AND until < ?2";
  const isNamed = "root NOT IN (SELECT root FROM senders WHERE session = '')";
  const times = [since ?? "", until ?? LAST];
  const rows = [
    `SELECT session, last, milli, pico FROM (
       SELECT root, MAX(until) AS last, SUM(charge_milli) AS milli, SUM(charge_pico) AS pico FROM shares
       WHERE ${isIn} AND ${isNamed} ${among} GROUP BY root) AS own JOIN senders ON senders.id = own.root`,
    `SELECT session, MAX(time), SUM(charge_milli), SUM(charge_pico) FROM (
       SELECT root, sender, trait FROM shares
       WHERE until >= ?1 AND since < ?2 AND NOT (${isIn}) AND ${isNamed} ${among}) AS cut
     JOIN requests USING (sender, trait) JOIN senders ON senders.id = cut.root
     WHERE odd IS NULL AND time >= ?1 AND time < ?2 GROUP BY cut.root`,
  ].flatMap((sql) => part.list(sql, ...times));
  const odd = part.list(
    `SELECT session, time, odd FROM requests JOIN senders ON senders.id = sender
     WHERE odd IS NOT NULL AND session <> '' ${among} AND time >= ?1 AND time < ?2`,
    ...times,
  );
  return [
    ...rows.map(([session, last, milli, pico]): Choice => {
      const charge = joinUsd(BigInt(Number(milli)), BigInt(Number(pico)));
      return { session: String(session), last: String(last), charge };
    }),
    ...odd.map(([session, last, text]): Choice => {
      const { charge } = readOdd(String(text));
      return { session: String(session), last: String(last), charge };
    }),
  ];
}
