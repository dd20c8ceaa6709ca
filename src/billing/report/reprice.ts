// Finds the requests of a ledger that would have other amounts with the current
// prices: those without a price, and those whose price was wrong. The caller
// writes the corrections.

import { getField } from "../../lib/json/json.ts";
import { UNBILLED_REFUSAL } from "../assess.ts";
import { computeCharge } from "../charge.ts";
import { holdLedgerFiles, readLinesFrom } from "../ledger/rotation.ts";
import { type CorrectionDraft, type Line, lineSchema } from "../ledger/line.ts";
import type { Source } from "../ledger/reader.ts";
import type { Overrides, PriceBook, Seller } from "../prices.ts";
import { FACTOR } from "../tariff.ts";
import { CALL_KINDS, type Part, type Tariff, type Usage, USAGE_KINDS } from "../usage.ts";

export interface RepriceQuery {
  /** ISO times; null: all. */
  readonly since: string | null;
  readonly until: string | null;
  readonly book: PriceBook;
  readonly overrides: Overrides;
  /** Whose prices a channel pays, by its name; undefined where the config has no such channel. */
  readonly sellerOf: (channel: string) => Seller | undefined;
}

/** A correction without id and time, which its writer adds. */
export type Repricing = Omit<CorrectionDraft, "id" | "time">;

interface CurrentAmounts {
  readonly official_usd: string | null;
  readonly charge_usd: string | null;
  readonly limit_usd?: string | undefined;
}

/** One draft for each request whose amounts would change. A priced request never becomes unpriced. */
export function* findCorrections(path: string, query: RepriceQuery): Generator<Repricing, void> {
  using held = holdLedgerFiles(path);
  const corrected = readCorrected(held.sources);
  const { since, until } = query;
  for (const value of readLinesFrom(held.sources)) {
    if (value["corrects"] !== undefined) continue;
    const { success, data: line } = lineSchema.safeParse(value);
    if (!success || line.basis === "unknown") continue;
    if ((since !== null && line.time < since) || (until !== null && line.time >= until)) continue;
    const draft = reprice(line, corrected.get(line.id) ?? line, query);
    if (draft !== null) yield draft;
  }
}

/** The current amounts of the requests that were corrected. There are few of them. */
function readCorrected(files: readonly Source[]): Map<string, CurrentAmounts> {
  const corrected = new Map<string, CurrentAmounts>();
  for (const line of readLinesFrom(files)) {
    const { corrects, official_usd, charge_usd } = line;
    if (typeof corrects !== "string") continue;
    if (typeof official_usd !== "string" || typeof charge_usd !== "string") continue;
    corrected.set(corrects, { official_usd, charge_usd });
  }
  return corrected;
}

function reprice(line: Line, was: CurrentAmounts, query: RepriceQuery): Repricing | null {
  const { book, overrides } = query;
  const seller = query.sellerOf(line.channel);
  const parts = readParts(line);
  if (parts === null) return null;
  const requested = getField(line, "requested_model");
  const charge = computeCharge({
    parts,
    tariff: readTariff(line, seller),
    model: line.upstream_model,
    requested: typeof requested === "string" ? requested : line.model,
    book,
    overrides,
    seller,
    unbilled: line.price_source === UNBILLED_REFUSAL ? UNBILLED_REFUSAL : undefined,
    at: new Date(line.time),
    multiplier: line.multiplier,
  });
  if (charge.official === null || charge.charge === null) return null;
  if (charge.official === was.official_usd && charge.charge === was.charge_usd) return null;
  const { id, time, key, group, platform, channel, model, multiplier } = line;
  return {
    corrects: id,
    request_time: time,
    key,
    group,
    platform,
    channel,
    model,
    usage: line.usage,
    ...(line.parts === undefined ? {} : { parts: [...charge.parts] }),
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier,
    charge_usd: charge.charge,
    was: { official_usd: was.official_usd, charge_usd: was.charge_usd, limit_usd: was.limit_usd },
  };
}

/** Null if the usage has a kind that this gateway does not know. */
function readParts(line: Line): Part[] | null {
  const lineParts =
    line.parts ??
    (Object.keys(line.usage).length === 0 ? [] : [{ model: null, pass: "message", usage: line.usage }]);
  const parts: Part[] = [];
  for (const { model, pass, usage } of lineParts) {
    const known = readUsage(usage);
    if (known === null) return null;
    parts.push({ model: model === line.upstream_model ? null : model, pass, usage: known });
  }
  return parts;
}

const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

function readUsage(usage: Readonly<Record<string, number>>): Usage | null {
  const known: Usage = {};
  for (const kind of KINDS) if (usage[kind] !== undefined) known[kind] = usage[kind];
  return Object.keys(known).length === Object.keys(usage).length ? known : null;
}

/** How the response was served: from the line, its factors, or the upstream's own usage. */
function readTariff(line: Line, seller: Seller | undefined): Tariff {
  const recorded = getField(line, "tariff");
  const factors = Object.keys(line.prices ?? {}).filter((name) => name.startsWith(FACTOR));
  const served = new Map(factors.map((name) => splitFactor(name.slice(FACTOR.length))));
  const tariff: Record<string, string> = {};
  for (const [name, camel] of TARIFF_FIELDS) {
    const value =
      getField(recorded, name) ??
      served.get(name) ??
      getField(line.raw_usage, name) ??
      getField(line.raw_usage, camel);
    if (typeof value === "string") tariff[name] = value;
  }
  const region = getField(recorded, "region") ?? served.get("region") ?? seller?.region;
  return typeof region === "string" ? { ...tariff, region } : tariff;
}

const TARIFF_FIELDS = [
  ["service_tier", "serviceTier"],
  ["inference_geo", "inferenceGeo"],
  ["speed", "speed"],
  ["traffic_type", "trafficType"],
] as const;

function splitFactor(factor: string): [string, string] {
  const at = factor.indexOf("=");
  return [factor.slice(0, at), factor.slice(at + 1)];
}
