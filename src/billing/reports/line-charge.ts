// What the usage of a ledger line costs at the prices of today's book and config: the same as recorded, or changed.

import { getField } from "../../lib/json/json.ts";
import { UNBILLED_REFUSAL } from "../assess.ts";
import { type Charge, computeCharge } from "../charge.ts";
import type { Line } from "../ledger/line.ts";
import { ANY_SELLER, findPrice, type Overrides, type PriceBook, type Seller } from "../prices.ts";
import { FACTOR } from "../tariff.ts";
import { CALL_KINDS, type Part, sumUsage, type Tariff, type Usage, USAGE_KINDS } from "../usage.ts";

export interface CurrentPrices {
  readonly book: PriceBook;
  readonly overrides: Overrides;
  /** Whose prices a channel pays, by its name; undefined where the config has no such channel. */
  readonly sellerOf: (channel: string) => Seller | undefined;
  /** What each call of a server tool's loop used, where the upstream's own usage lists them. */
  readonly readCalls: (rawUsage: unknown) => readonly Usage[];
}

/** What is different from the request as it was. */
export interface Change {
  /** All of the usage, on this model. At the channel's provider if it sells the model, else by the model's name. */
  readonly model: string | null;
  /** Counts the usage otherwise; null: as it was. */
  readonly recount: ((usage: Usage) => Usage) | null;
}

export const AS_IT_WAS: Change = { model: null, recount: null };

/** Null if the usage has a kind that this gateway does not know. */
export function chargeLine(line: Line, prices: CurrentPrices, change: Change = AS_IT_WAS): Charge | null {
  const { book, overrides } = prices;
  const recorded = readParts(line);
  if (recorded === null) return null;
  const parts = addCalls(recorded, prices.readCalls(line.raw_usage)).map((part) => changePart(part, change));
  const requested = getField(line, "requested_model");
  const asked = typeof requested === "string" ? requested : line.model;
  const at = new Date(line.time);
  const own = prices.sellerOf(line.channel);
  const seller = change.model === null ? own : findSeller({ book, overrides, seller: own }, change.model, at);
  const model = change.model ?? line.upstream_model;
  return computeCharge({
    parts,
    tariff: readTariff(line, own),
    model,
    requested: change.model === null ? asked : null,
    book,
    overrides,
    seller,
    unbilled: line.price_source === UNBILLED_REFUSAL ? UNBILLED_REFUSAL : undefined,
    at,
    multiplier: line.multiplier,
  });
}

/** Long-prompt prices go by the call. A line has parts for calls only if its own prices depended on them. */
function addCalls(parts: readonly Part[], calls: readonly Usage[]): readonly Part[] {
  const [part, other] = parts;
  if (part === undefined || other !== undefined || calls.length < 2) return parts;
  const sum = sumUsage(calls.map((usage) => ({ ...part, usage })));
  return KINDS.every((kind) => (sum[kind] ?? 0) === (part.usage[kind] ?? 0)) ? [{ ...part, calls }] : parts;
}

/** A local model costs nothing, but the same usage elsewhere does. */
function findSeller(sources: Parameters<typeof findPrice>[0], model: string, at: Date): Seller {
  const { seller = ANY_SELLER } = sources;
  const billed = { ...seller, free: false };
  return findPrice({ ...sources, seller: billed }, model, at) === null ? ANY_SELLER : billed;
}

function changePart(part: Part, { model, recount }: Change): Part {
  const { usage, calls } = part;
  if (model === null && recount === null) return part;
  const count = (each: Usage): Usage => recount?.(each) ?? each;
  return {
    ...part,
    ...(model !== null && { model: null }),
    usage: count(usage),
    ...(calls !== undefined && { calls: calls.map(count) }),
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
