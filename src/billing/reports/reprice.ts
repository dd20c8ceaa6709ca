// The cost of ledger lines at today's prices.

import { getField, parseJson } from "../../lib/json/json.ts";
import { formatDecimal } from "../../lib/money.ts";
import { UNBILLED_REFUSAL } from "../assess.ts";
import { type Charge, computeCharge, REPORTED } from "../charge.ts";
import { type Line, lineSchema } from "../ledger/line.ts";
import { ANY_SELLER, findPrice, type Overrides, type PriceBook, type Seller } from "../prices.ts";
import { type CellValue, listLines, type Table } from "../store/open.ts";
import { FACTOR } from "../tariff.ts";
import { ALL_KINDS, type Part, sumUsage, type Tariff, type Usage } from "../usage.ts";
import { addAmount, type Condition, describeScope, type Scope } from "./sums.ts";

export interface CurrentPrices {
  readonly book: PriceBook;
  readonly overrides: Overrides;
  /** Undefined: the config has no such channel. */
  readonly sellerOf: (channel: string) => Seller | undefined;
  /** The usage of each call in a server tool's loop. */
  readonly readCalls: (rawUsage: unknown) => readonly Usage[];
}

/** No correction makes a priced request unpriced. */
export function* findCorrections(table: Table, scope: Scope, prices: CurrentPrices) {
  const { sql, values } = describeScope(scope);
  for (const { line, now } of listRequestLines(table, { sql: `basis <> 'unknown' AND ${sql}`, values })) {
    if (line === null || line.price_source === REPORTED) continue;
    const charge = chargeLine(line, prices);
    if (charge === null || charge.official === null || charge.charge === null) continue;
    if (charge.official === now.official_usd && charge.charge === now.charge_usd) continue;
    const { id, time, key, group, platform, channel, model, client, usage, multiplier } = line;
    yield {
      corrects: id,
      request_time: time,
      key,
      group,
      platform,
      channel,
      model,
      client,
      usage,
      ...(line.parts !== undefined && { parts: [...charge.parts] }),
      prices: charge.prices,
      price_source: charge.priceSource,
      tier: charge.tier,
      official_usd: charge.official,
      multiplier,
      charge_usd: charge.charge,
      ...countForLimits(line, prices),
      was: now,
    };
  }
}

function countForLimits(line: Line, prices: CurrentPrices) {
  const { paid_by } = line;
  if (paid_by === undefined) return {};
  return { paid_by, limit_usd: chargeLine({ ...line, multiplier: "1" }, prices)?.charge ?? undefined };
}

export type RequestLine = ReturnType<typeof listRequestLines> extends Iterable<infer Each> ? Each : never;

export function* listRequestLines(
  table: Table,
  { sql: where, values }: Required<Condition>,
  more: readonly string[] = [],
) {
  const columns = ["official", "charge", "counted", "corrections", "exact", ...more];
  for (const found of listLines(table, { more: columns, where, values })) {
    const [official = null, charge = null, counted = null, corrections, text, ...rest] = found.values;
    const line = lineSchema.safeParse(parseJson(found.text)).data ?? null;
    const exact = [parseJson(String(text))];
    const write = (sum: CellValue, name: string): string | null =>
      sum === null ? null : formatDecimal(addAmount(sum, exact, name));
    const now = {
      official_usd: write(official, "official"),
      charge_usd: write(charge, "charge"),
      limit_usd:
        corrections === null ? line?.limit_usd : line?.paid_by && (write(counted, "counted") ?? undefined),
    };
    yield { line, now, values: rest };
  }
}

/** If `other` names a model, all usage has that model's prices: those of the channel's seller, or else of any
 *  seller. Returns null for an unknown kind of usage. */
export function chargeLine(line: Line, prices: CurrentPrices, other: string | null = null): Charge | null {
  const { book, overrides } = prices;
  const parts = readParts(line, prices.readCalls(line.raw_usage));
  if (parts === null) return null;
  const at = new Date(line.time);
  const own = prices.sellerOf(line.channel);
  const requested = getField(line, "requested_model");
  return computeCharge({
    parts: other === null ? parts : parts.map((part) => ({ ...part, model: null })),
    tariff: readTariff(line, own),
    model: other ?? line.upstream_model,
    requested: other !== null ? null : typeof requested === "string" ? requested : line.model,
    book,
    overrides,
    seller: other === null ? own : findSeller({ book, overrides, seller: own }, other, at),
    unbilled: line.price_source === UNBILLED_REFUSAL ? UNBILLED_REFUSAL : undefined,
    at,
    multiplier: line.multiplier,
  });
}

/** A local model is free, but the same usage elsewhere is not. */
function findSeller(sources: Parameters<typeof findPrice>[0], model: string, at: Date): Seller {
  const billed = { ...(sources.seller ?? ANY_SELLER), free: false };
  return findPrice({ ...sources, seller: billed }, model, at) === null ? ANY_SELLER : billed;
}

const KINDS: readonly string[] = ALL_KINDS;

function readParts(line: Line, calls: readonly Usage[]): readonly Part[] | null {
  const none =
    Object.keys(line.usage).length === 0 ? [] : [{ model: null, pass: "message", usage: line.usage }];
  const own = line.parts ?? none;
  if (own.some(({ usage }) => Object.keys(usage).some((kind) => !KINDS.includes(kind)))) return null;
  const parts = own.map(({ model, pass, usage }): Part => {
    const known = KINDS.flatMap((kind) => (usage[kind] === undefined ? [] : [[kind, usage[kind]]]));
    return { model: model === line.upstream_model ? null : model, pass, usage: Object.fromEntries(known) };
  });
  // A line has a part for each call only if its price had tiers.
  // Otherwise its only part gets the calls here.
  const [part, second] = parts;
  if (part === undefined || second !== undefined || calls.length < 2) return parts;
  const sum = sumUsage(calls.map((usage) => ({ ...part, usage })));
  const isSame = ALL_KINDS.every((kind) => (sum[kind] ?? 0) === (part.usage[kind] ?? 0));
  return isSame ? [{ ...part, calls }] : parts;
}

function readTariff(line: Line, seller: Seller | undefined): Tariff {
  const recorded = getField(line, "tariff");
  const factors = Object.keys(line.prices ?? {}).filter((name) => name.startsWith(FACTOR));
  const served = Object.fromEntries(factors.map((name) => name.slice(FACTOR.length).split(/=(.*)/s)));
  const read = (name: string): unknown => getField(recorded, name) ?? getField(served, name);
  const tariff: Record<string, string> = {};
  for (const [name, camel] of TARIFF_FIELDS) {
    const value = read(name) ?? getField(line.raw_usage, name) ?? getField(line.raw_usage, camel);
    if (typeof value === "string") tariff[name] = value;
  }
  const region = read("region") ?? seller?.region;
  return typeof region === "string" ? { ...tariff, region } : tariff;
}

const TARIFF_FIELDS = [
  ["service_tier", "serviceTier"],
  ["inference_geo", "inferenceGeo"],
  ["speed", "speed"],
  ["traffic_type", "trafficType"],
] as const;
