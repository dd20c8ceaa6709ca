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
import { describeHead, type Scope, type SumRow, sumRequests } from "./sums.ts";
import { compareCharges } from "./usage.ts";
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
  const { total } = sumRequests(table, {
    ...scope,
    by: [],
    of: ["requests"],
    sums: { unanalysed: "SUM(requests) FILTER (WHERE session IS NULL)" },
  });
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
    requests: total.count("requests"),
    /** Requests without a session, as in 0.1.0: their prompts were not analysed. */
    unanalysed: scope.only?.session === undefined ? total.count("unanalysed") : 0,
    rows,
    causes: misses.causes,
    persistent: rows.flatMap(({ session, channel, model, causes }) =>
      causes
        .filter(({ misses }) => misses >= PERSISTENT_MISSES)
        // What helps. Null: the user can do nothing.
        .map((cause) => ({ session, channel, model, ...cause, help: adviseOn(cause) })),
    ),
    total: misses.total,
    unreadable: table.unreadable,
  };
}

export type CacheReport = ReturnType<typeof reportCache>;

/** The most expensive causes come first. */
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
  });
  const sort = (each: readonly SumRow[]) =>
    each.map(describeMisses).toSorted((a, b) => {
      if (a.cost !== b.cost) return a.cost > b.cost ? -1 : 1;
      return b.totals.missed_tokens - a.totals.missed_tokens || a.first - b.first;
    });
  return { causes: sort(rows).map(describeRow), also: also.map(sort), total: describeMisses(total).totals };
}

function describeMisses(row: SumRow) {
  const { names, values } = row;
  const [misses = 0, missed_tokens = 0, unpriced_tokens = 0, first = 0] = values.map(Number);
  const totals = { misses, missed_tokens, usd: row.write("missed"), unpriced_tokens };
  return { names, cost: roundUsd(row.add("missed")), first, totals };
}

export type Misses = ReturnType<typeof describeMisses>;
export type MissTotals = Readonly<Misses["totals"]>;

/** The last names are the cause's. */
function describeRow({ names, totals }: Misses): Cause & MissTotals {
  const [because = "", part = "", detail = "", from = "", at = ""] = names.slice(-Object.keys(CAUSE).length);
  return {
    because,
    ...(at !== "" && { at: Number(at) }),
    ...(part !== "" && { part }),
    ...(detail !== "" && { detail }),
    ...(from !== "" && { from }),
    ...totals,
  };
}

export type CauseRow = ReturnType<typeof describeRow>;

const HOUR_MS = 3_600_000;
const WORTH = parseUsd("0.01");

/** The time since the previous prompt with a cached end. */
const PAUSE = `at - (SELECT MAX(earlier.at) FROM requests AS earlier WHERE earlier.session = names.session
  AND earlier.at < lines.at AND earlier.agent IS names.agent
  AND earlier.channel IS names.channel AND earlier.model IS names.model
  AND ${addColumns([...READ_KINDS, ...WRITE_KINDS])} > 0)`;

/** What a lifetime of an hour would have saved, by tool and label: a cent and 1 % or more.
 *  Prompts after five minutes would be read; other writes would cost `hour` more. */
export function findHourSavings(table: Table, scope: Scope) {
  const by = ["tool", "label"];
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
  const gains = new Map(passed.rows.map((row) => [row.names.join("\n"), row.add("read")]));
  const { rows } = sumRequests(table, {
    ...scope,
    by,
    of: ["charge", "charge_usd"],
    sums: { hour: "SUM(hour)" },
    where: { sql: isWritten },
  });
  return rows.toSorted(compareCharges).flatMap((row) => {
    const [tool = "", label = ""] = row.names;
    const gain = gains.get(row.names.join("\n")) ?? ZERO_DECIMAL;
    const saved = roundUsd(subtractDecimals(gain, row.add("hour")));
    const { charge_usd } = row.totals;
    const isWorth = saved >= WORTH && isShareReached(saved, parseUsd(charge_usd), 1);
    return isWorth ? [{ tool, label, saved_usd: formatUsd(saved), charge_usd }] : [];
  });
}
