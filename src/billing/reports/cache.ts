// `gateway cache`: what prompts missed in their caches, by session and model, and by cause.

import { compareDecimals, formatDecimal } from "../../lib/money.ts";
import type { Zone } from "../../lib/text/zone.ts";
import type { Table } from "../store/open.ts";
import { adviseOn, type Cause } from "./words.ts";
import { addAmount, describeHead, describeScope, type Head, readList, type Scope } from "./sums.ts";

export interface MissTotals {
  readonly misses: number;
  readonly missed_tokens: number;
  readonly usd: string;
  /** Tokens whose cost is not known. */
  readonly unpriced_tokens: number;
}

export type CauseRow = Cause & MissTotals;

/** The misses of one model in one session. */
export interface MissRow extends MissTotals {
  /** Null: the lines name no session. */
  readonly session: string | null;
  readonly tool: string | null;
  readonly label: string | null;
  readonly model: string;
  readonly channel: string;
  /** The most expensive first. */
  readonly causes: readonly CauseRow[];
}

export interface CacheReport extends Head {
  /** Requests in the period, with or without a miss. */
  readonly requests: number;
  /** Those of them whose lines name no session, as those of 0.1.0 do. No prompt of theirs was analysed. */
  readonly unanalysed: number;
  /** The most expensive first. */
  readonly rows: readonly MissRow[];
  readonly causes: readonly CauseRow[];
  /** Causes that come again and again in a session. */
  readonly persistent: readonly (CauseRow &
    Pick<MissRow, "session" | "channel" | "model"> & {
      /** What helps; null: nothing that the user could do. */
      readonly help: string | null;
    })[];
  readonly total: MissTotals;
  readonly unreadable: number;
}

const PLACE = ["session", "tool", "label", "model", "channel"] as const;
/** Each message is another one, and so is where it changed. */
const CAUSE = ["because", "part", "detail", "from"].map((name) => `miss ->> '${name}'`);
const AT = "CASE WHEN miss ->> 'because' <> 'messages_changed' THEN miss ->> 'at' END";

/** A cause that comes this often in one session is not an accident. */
const PERSISTENT_MISSES = 3;

export function reportCache(table: Table, scope: Scope, zone: Zone): CacheReport {
  const { sql, values: wanted } = describeScope(scope);
  const counts = `SELECT COUNT(*), COUNT(*) - COUNT(session) FROM requests WHERE ${sql}`;
  const [[requests, unnamed] = []] = table.list(counts, wanted);
  const nameOf = (values: readonly unknown[]): string => JSON.stringify(values.slice(0, PLACE.length));
  const byPlace = Map.groupBy(listMisses(table, scope, [...PLACE, ...CAUSE, AT]), ({ values }) =>
    nameOf(values),
  );
  const rows = listMisses(table, scope, PLACE).map(({ values, totals }): MissRow => {
    const names = values.map((value) => (value === null ? null : String(value)));
    const [session = null, tool = null, label = null, model, channel] = names;
    const causes = (byPlace.get(nameOf(values)) ?? []).map(describeRow);
    return { session, tool, label, model: model ?? "", channel: channel ?? "", ...totals, causes };
  });
  return {
    ...describeHead(scope, zone),
    requests: Number(requests),
    unanalysed: scope.only?.session === undefined ? Number(unnamed) : 0,
    rows,
    causes: listMisses(table, scope, [...CAUSE, AT]).map(describeRow),
    persistent: rows.flatMap(({ session, channel, model, causes }) =>
      causes
        .filter(({ misses }) => misses >= PERSISTENT_MISSES)
        .map((cause) => ({ session, channel, model, ...cause, help: adviseOn(cause) })),
    ),
    total: listMisses(table, scope, [])[0]?.totals ?? NONE,
    unreadable: table.unreadable,
  };
}

const NONE: MissTotals = { misses: 0, missed_tokens: 0, usd: "0", unpriced_tokens: 0 };

/** The most expensive first. */
function listMisses(table: Table, scope: Scope, by: readonly string[]) {
  const { sql, values } = describeScope(scope);
  const found = table.list(
    `SELECT ${by.map((name) => `${name}, `).join("")}COUNT(*), SUM(miss ->> 'missed'), SUM(missed),
       COALESCE(SUM(miss ->> 'missed') FILTER (WHERE miss ->> 'usd' IS NULL), 0),
       group_concat(exact)
     FROM requests WHERE miss IS NOT NULL AND ${sql}
     GROUP BY ${by.length === 0 ? "NULL" : by.map((_, index) => index + 1).join(", ")} ORDER BY MIN(line)`,
    values,
  );
  const rows = found.map((row) => {
    const [misses, tokens, cost = null, others, exact] = row.slice(by.length);
    const usd = addAmount(cost, readList(exact ?? null), "missed");
    const totals = {
      misses: Number(misses),
      missed_tokens: Number(tokens),
      usd: formatDecimal(usd),
      unpriced_tokens: Number(others),
    };
    return { values: row.slice(0, by.length), usd, totals };
  });
  return rows.toSorted(
    (a, b) => compareDecimals(b.usd, a.usd) || b.totals.missed_tokens - a.totals.missed_tokens,
  );
}

/** The values of a cause are the last ones. */
function describeRow({
  values,
  totals,
}: {
  readonly values: readonly unknown[];
  readonly totals: MissTotals;
}): CauseRow {
  const [because, part, detail, from, at] = values.slice(-CAUSE.length - 1);
  return {
    because: String(because),
    ...(at !== null && { at: Number(at) }),
    ...(typeof part === "string" && { part }),
    ...(typeof detail === "string" && { detail }),
    ...(typeof from === "string" && { from }),
    ...totals,
  };
}
