// Finds the requests of a ledger that would have other amounts with the current
// prices: those without a price, and those whose price was wrong. The caller
// writes the corrections.

import { parseJson } from "../../lib/json/json.ts";
import { formatDecimal } from "../../lib/money.ts";
import { REPORTED } from "../charge.ts";
import { type Line, lineSchema, type Repricing } from "../ledger/line.ts";
import { type LineOfRow, listLines } from "../store/lines.ts";
import type { Parameters, Table, Value } from "../store/open.ts";
import { chargeLine, type CurrentPrices } from "./line-charge.ts";
import { addAmount, describeScope } from "./sums.ts";

export interface RepriceQuery extends CurrentPrices {
  /** ISO times; null: all. */
  readonly since: string | null;
  readonly until: string | null;
}

/** One draft for each request whose amounts would change. A priced request never becomes unpriced. */
export function* findCorrections(table: Table, query: RepriceQuery): Generator<DueCorrection, void> {
  const { sql, values } = describeScope({ since: query.since, until: query.until });
  for (const { line, now } of listRequestLines(table, `basis <> 'unknown' AND ${sql}`, values)) {
    if (line === null || line.price_source === REPORTED) continue;
    const draft = reprice(line, now, query);
    if (draft !== null) yield draft;
  }
}

/** A correction without its id. */
export type DueCorrection = Omit<Repricing, "id">;

/** With its corrections. */
export interface CurrentAmounts {
  readonly official_usd: string | null;
  readonly charge_usd: string | null;
  readonly limit_usd?: string | undefined;
}

interface RequestLine extends Pick<LineOfRow, "values"> {
  /** Null: it cannot be read. */
  readonly line: Line | null;
  readonly now: CurrentAmounts;
}

/** `more`: further columns. */
export function* listRequestLines(
  table: Table,
  where: string,
  values: Parameters,
  more: readonly string[] = [],
): Generator<RequestLine, void> {
  const columns = ["official", "charge", "counted", "corrections", "exact", ...more];
  for (const found of listLines(table, { more: columns, where, values })) {
    const [official = null, charge = null, limit = null, corrections, text, ...rest] = found.values;
    const line = lineSchema.safeParse(parseJson(found.text)).data ?? null;
    const exact = [parseJson(String(text))];
    const write = (sum: Value, name: string): string | null =>
      sum === null ? null : formatDecimal(addAmount(sum, exact, name));
    yield {
      line,
      now: {
        official_usd: write(official, "official"),
        charge_usd: write(charge, "charge"),
        limit_usd:
          corrections === null ? line?.limit_usd : line?.paid_by && (write(limit, "counted") ?? undefined),
      },
      values: rest,
    };
  }
}

function reprice(line: Line, was: CurrentAmounts, query: RepriceQuery): DueCorrection | null {
  const charge = chargeLine(line, query);
  if (charge === null) return null;
  if (charge.official === null || charge.charge === null) return null;
  if (charge.official === was.official_usd && charge.charge === was.charge_usd) return null;
  const { id, time, key, group, platform, channel, model, multiplier, client } = line;
  return {
    corrects: id,
    request_time: time,
    key,
    group,
    platform,
    channel,
    model,
    client,
    usage: line.usage,
    ...(line.parts === undefined ? {} : { parts: [...charge.parts] }),
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier,
    charge_usd: charge.charge,
    ...(line.paid_by === undefined ? {} : { paid_by: line.paid_by, limit_usd: countForLimits(line, query) }),
    was: { official_usd: was.official_usd, charge_usd: was.charge_usd, limit_usd: was.limit_usd },
  };
}

/** Limits count the official amount of what a plan pays for. */
function countForLimits(line: Line, query: RepriceQuery): string | undefined {
  return chargeLine({ ...line, multiplier: "1" }, query)?.charge ?? undefined;
}
