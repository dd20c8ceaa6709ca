// Chooses the unit prices of one part of an answer. The line keeps them,
// so that its amounts can be derived again.

import type { Price, Rates } from "./prices.ts";
import { CALL_KINDS } from "../config/call-kinds.ts";
import { type Counts, countTokens, PROMPT_KINDS, type Tariff, type Usage } from "./usage.ts";

export interface TariffChoice {
  /** The entry `factor:service_tier=flex` multiplies the price of every token. */
  readonly prices: Readonly<Record<string, string>>;
  /** `standard`, or what differs: `flex`, `fast+us`, `standard+over_272000`. */
  readonly tier: string;
  /** Used kinds without a price, by their names in price lists. */
  readonly unpriced: readonly string[];
}

export const FACTOR = "factor:";
export const PER_1K = "_per_1k";

interface Missing {
  /** A way of serving that has no price: all tokens are unpriced. */
  readonly missing: string;
}

export function chooseTariff(price: Price, usage: Usage, tariff: Tariff): TariffChoice | Missing {
  const tokens = price.tiers === undefined ? 0 : countTokens(usage, PROMPT_KINDS);
  const tier = price.tiers?.findLast(({ over }) => tokens > over);
  const { chosen: prices, unpriced } = chooseRates(tier?.rates ?? price.rates, usage);
  const words: string[] = [];
  for (const served of servedAs(tariff)) {
    const factor = price.factors?.[served];
    // A region without a factor costs no more.
    if (factor === undefined && /^(?:inference_geo|region)=/.test(served)) continue;
    if (factor === undefined) return { missing: served };
    words.push(served.slice(served.indexOf("=") + 1));
    prices[FACTOR + served] = factor;
  }
  if (words.length === 0) words.push("standard");
  if (tier !== undefined) words.push(`over_${tier.over}`);
  return { prices, tier: words.join("+"), unpriced };
}

export function chooseNothing(usage: Counts): TariffChoice {
  const kinds = Object.keys(usage).filter((kind) => kind !== "reasoning");
  return {
    prices: Object.fromEntries(kinds.map((kind) => [nameOf(kind), "0"])),
    tier: "standard",
    unpriced: [],
  };
}

function nameOf(kind: string): string {
  return CALLS.has(kind) ? `${kind}${PER_1K}` : kind;
}

function chooseRates(rates: Rates, usage: Counts) {
  const chosen: Record<string, string> = {};
  const unpriced: string[] = [];
  for (const kind in usage) {
    // Reasoning is a part of the output, which is priced.
    if (kind === "reasoning") continue;
    const name = nameOf(kind);
    const rate = rateOf(rates, name);
    if (rate !== undefined) chosen[name] = rate;
    else if ((usage[kind] ?? 0) > 0) unpriced.push(name);
  }
  return { chosen, unpriced };
}

const CALLS: ReadonlySet<string> = new Set(CALL_KINDS);

/**
 * A kind without a price is charged like another kind, where platforms do so:
 * - pictures and video in the prompt, and what tools put into it, are ordinary input;
 * - cached tokens pay the full price if no cached price is listed (OpenAI's pro models);
 * - a cache write of unknown lifetime is charged like one that lasts five minutes, or
 *   like ordinary input if writes have no price (OpenAI before GPT-5.6);
 * - Google charges searches by the query or by the prompt: the way without a price is free.
 * Other kinds without a price stay unpriced.
 */
const STAND_INS: Readonly<Record<string, readonly string[]>> = {
  tool_prompt: ["input"],
  input_image: ["input"],
  input_video: ["input"],
  cache_read: ["input"],
  cache_read_audio: ["input_audio"],
  cache_read_image: ["input_image", "cache_read", "input"],
  cache_read_video: ["input_video", "cache_read", "input"],
  cache_write: ["cache_write_5m", "input"],
  cache_write_5m: ["cache_write"],
};

const EITHER: Readonly<Record<string, string>> = {
  google_search_per_1k: "google_search_prompt_per_1k",
  google_search_prompt_per_1k: "google_search_per_1k",
};

function rateOf(rates: Rates, name: string): string | undefined {
  const own = rates[name];
  if (own !== undefined) return own;
  const other = EITHER[name];
  if (other !== undefined && rates[other] !== undefined) return "0";
  const standIn = STAND_INS[name]?.find((kind) => rates[kind] !== undefined);
  return standIn === undefined ? undefined : rates[standIn];
}

const STANDARD = new Set(["standard", "default", "auto", "unspecified", "on_demand"]);

function servedAs({ service_tier, traffic_type, inference_geo, speed, region }: Tariff): readonly string[] {
  const place: string[] = [];
  if (speed !== undefined && speed !== "standard") place.push(`speed=${speed}`);
  if (inference_geo !== undefined) place.push(`inference_geo=${inference_geo}`);
  if (region !== undefined) place.push(`region=${region}`);
  const queue = queueOf(service_tier, traffic_type);
  return queue === null ? place : [queue, ...place];
}

function queueOf(service_tier: string | undefined, traffic_type: string | undefined): string | null {
  const tier = service_tier?.toLowerCase().replace(/^service_tier_/, "") ?? "standard";
  const traffic = traffic_type?.toLowerCase() ?? "on_demand";
  // Vertex names its tiers by traffic: on_demand_flex, on_demand_priority.
  if (traffic.startsWith("on_demand_")) return `service_tier=${traffic.slice("on_demand_".length)}`;
  if (!STANDARD.has(traffic) && !traffic.endsWith("_unspecified")) return `traffic_type=${traffic}`;
  return STANDARD.has(tier) ? null : `service_tier=${tier}`;
}
