// `gateway cache`: missed tokens by session and model, and by cause.

import {
  formatUsd,
  isShareReached,
  parseUsd,
  roundUsd,
  subtractDecimals,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import type { Zone } from "../../lib/text/zone.ts";
import type { Table } from "../store/open.ts";
import { addColumns } from "../store/schema.ts";
import { READ_KINDS, WRITE_KINDS } from "../usage.ts";
import {
  addExact,
  addSum,
  describeHead,
  describeScope,
  orderUsd,
  type Scope,
  sumRequests,
  type SumRow,
} from "./sums.ts";
import { orderRows } from "./usage.ts";
import { adviseOn, type Cause } from "./words.ts";

const PLACE = ["session", "tool", "label", "model", "channel"];
const CAUSE = {
  cause: "cause",
  part: "part",
  detail: "detail",
  from_channel: "from_channel",
  /** For messages, the place of a change differs each time. */
  changed: "CASE WHEN cause <> 'messages_changed' THEN changed_at END",
};

const PERSISTENT_MISSES = 3;

export function reportCache(table: Table, scope: Scope, zone: Zone) {
  const { sql, values } = describeScope(scope);
  const counts = `SELECT COUNT(*), COUNT(*) FILTER (WHERE session IS NULL) FROM requests WHERE ${sql}`;
  const [[requests = 0, unanalysed = 0] = []] = table.list(counts, values);
  const misses = sumMisses(table, scope, PLACE, [...PLACE, ...Object.keys(CAUSE)]);
  const [places = [], causes = []] = misses.also;
  const byPlace = Map.groupBy(causes, ({ names }) => JSON.stringify(names.slice(0, PLACE.length)));
  const rows = places.map(({ names, totals }) => {
    const [session = "", tool = "", label = "", model = "", channel = ""] = names;
    const place = { session: session || null, tool: tool || null, label: label || null, model, channel };
    return { ...place, ...totals, causes: (byPlace.get(JSON.stringify(names)) ?? []).map(describeRow) };
  });
  return {
    ...describeHead(scope, zone),
    requests: Number(requests),
    /** Requests without a session, as in 0.1.0: their prompts were not analysed. */
    unanalysed: scope.only?.session === undefined ? Number(unanalysed) : 0,
    rows,
    causes: misses.causes,
    persistent: rows.flatMap(({ session, channel, model, causes }) =>
      causes
        .filter(({ misses }) => misses >= PERSISTENT_MISSES)
        .map((cause) => ({ session, channel, model, ...cause, help: adviseOn(cause) })),
    ),
    total: misses.total,
    unreadable: table.unreadable,
  };
}

export type CacheReport = ReturnType<typeof reportCache>;

export function sumMisses(table: Table, scope: Scope, ...lists: readonly (readonly string[])[]) {
  const { rows, also, total } = sumRequests(table, {
    ...scope,
    by: [],
    columns: CAUSE,
    also: lists,
    from: "lines INDEXED BY by_miss",
    of: [],
    byWho: { unpriced_tokens: "SUM(missed_tokens) FILTER (WHERE missed IS NULL)" },
    sums: { missed: "SUM(missed)", missed_usd: "SUM(missed)" },
    values: ["SUM(requests)", "SUM(missed_tokens)", "SUM(unpriced_tokens)", "MIN(first_line)"],
    where: { sql: "cause IS NOT NULL" },
    order: `${orderUsd("missed", "missed")}, v1 DESC, v3`,
  });
  const causes = rows.map(describeMisses).map(describeRow);
  return { causes, also: also.map((each) => each.map(describeMisses)), total: describeMisses(total).totals };
}

function describeMisses(row: SumRow) {
  const [misses = 0, missed_tokens = 0, unpriced_tokens = 0] = row.values.map(Number);
  return {
    names: row.names,
    totals: {
      misses,
      missed_tokens,
      usd: addExact(row.sums["missed_usd"] ?? "0", row.exact, "missed"),
      unpriced_tokens,
    },
  };
}

export type Misses = ReturnType<typeof describeMisses>;
export type MissTotals = Readonly<Misses["totals"]>;

function describeRow({ names, totals }: Misses): Cause & MissTotals {
  const [because = "", part = "", detail = "", from = "", at = ""] = names.slice(-Object.keys(CAUSE).length);
  const cause: { -readonly [Name in keyof Cause]: Cause[Name] } = { because };
  if (at !== "") cause.at = Number(at);
  if (part !== "") cause.part = part;
  if (detail !== "") cause.detail = detail;
  if (from !== "") cause.from = from;
  return Object.assign(cause, totals);
}

export type CauseRow = ReturnType<typeof describeRow>;

const HOUR_MS = 3_600_000;
const WORTH = parseUsd("0.01");

/** The time since the agent's previous prompt that read or wrote the cache. */
const PAUSE = `at - (SELECT MAX(earlier.at) FROM requests AS earlier WHERE earlier.session = names.session
  AND earlier.at < lines.at AND earlier.agent IS names.agent
  AND earlier.channel IS names.channel AND earlier.model IS names.model
  AND ${addColumns([...READ_KINDS, ...WRITE_KINDS])} > 0)`;

/** Finds tools and labels for which a cache lifetime of an hour would save at least a cent and 1 %.
 *  Misses after a pause would then be cache reads, and the other writes would cost `hour` more. */
export function findHourSavings(table: Table, scope: Scope) {
  const by = ["tool", "label"] as const;
  const isWritten = "paid_by IS NULL AND hour IS NOT NULL";
  const passed = sumRequests(table, {
    ...scope,
    by,
    of: [],
    from: "lines INDEXED BY by_miss",
    byWho: { read: "SUM(missed + hour - hour * MAX(0, cache_write_5m - missed_tokens) / cache_write_5m)" },
    sums: { read: "SUM(read)" },
    where: { sql: `cause = 'lifetime_passed' AND ${PAUSE} <= ${HOUR_MS} AND ${isWritten}` },
  });
  const gains = new Map(passed.rows.map((row) => [row.names.join("\n"), addSum(row, "read")]));
  const { rows } = sumRequests(table, {
    ...scope,
    by,
    of: ["charge"],
    sums: { hour: "SUM(hour)", charged: "SUM(charge)" },
    order: orderRows(by, orderUsd("charged", "charge")),
    where: { sql: isWritten },
  });
  return rows.flatMap((row) => {
    const { names, totals } = row;
    const [tool = "", label = ""] = names;
    const gain = gains.get(names.join("\n")) ?? ZERO_DECIMAL;
    const saved = roundUsd(subtractDecimals(gain, addSum(row, "hour")));
    const isWorth = saved >= WORTH && isShareReached(saved, parseUsd(totals.charge_usd), 1);
    return isWorth ? [{ tool, label, saved_usd: formatUsd(saved), charge_usd: totals.charge_usd }] : [];
  });
}
