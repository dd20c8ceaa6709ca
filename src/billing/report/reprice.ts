// Finds the requests of a ledger that would have other amounts with the current
// prices: those without a price, and those whose price was wrong. The caller
// writes the corrections.

import { getField } from "../../lib/json/json.ts";
import { REPORTED } from "../charge.ts";
import { type Line, lineSchema, type Repricing } from "../ledger/line.ts";
import { holdLedgerFiles, readLinesFrom } from "../ledger/rotation.ts";
import { readRows } from "../ledger/row.ts";
import { chargeLine, type CurrentPrices } from "./line-charge.ts";

export interface RepriceQuery extends CurrentPrices {
  /** ISO times; null: all. */
  readonly since: string | null;
  readonly until: string | null;
}

/** A correction without its id. */
export type DueCorrection = Omit<Repricing, "id">;

export interface CurrentAmounts {
  readonly official_usd: string | null;
  readonly charge_usd: string | null;
  readonly limit_usd?: string | undefined;
}

/** One draft for each request whose amounts would change. A priced request never becomes unpriced. */
export function* findCorrections(path: string, query: RepriceQuery): Generator<DueCorrection, void> {
  using held = holdLedgerFiles(path);
  const corrected = readCorrected(path);
  const { since, until } = query;
  for (const value of readLinesFrom(held.sources)) {
    if (value["corrects"] !== undefined) continue;
    const { success, data: line } = lineSchema.safeParse(value);
    if (!success || line.basis === "unknown" || line.price_source === REPORTED) continue;
    if ((since !== null && line.time < since) || (until !== null && line.time >= until)) continue;
    const draft = reprice(line, corrected.get(line.id) ?? line, query);
    if (draft !== null) yield draft;
  }
}

/** The current amounts of the requests that were corrected. There are few of them. */
export function readCorrected(path: string): ReadonlyMap<string, CurrentAmounts> {
  const corrected = new Map<string, CurrentAmounts>();
  for (const row of readRows(path)) {
    const line = row?.was === null ? null : row?.line;
    const [id, official, charge] = ["corrects", "official_usd", "charge_usd"].map((name) =>
      getField(line, name),
    );
    if (typeof id !== "string" || typeof official !== "string" || typeof charge !== "string") continue;
    const limit = getField(line, "limit_usd");
    const limited = typeof limit === "string" ? { limit_usd: limit } : {};
    corrected.set(id, { official_usd: official, charge_usd: charge, ...limited });
  }
  return corrected;
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
