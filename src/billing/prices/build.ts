// `bun run prices`: makes book.json out of the maintained price package and
// overlay.json. Runs by hand and in a test, never in the gateway. The package
// keeps prices as numbers: each becomes the shortest decimal that gives that
// number, which is what its authors wrote.

import { writeFileSync } from "node:fs";
import { findProvider, type MatchLogic, type ModelInfo, type ModelPrice } from "@pydantic/genai-prices";
import overlay from "./overlay.json";

type Provider = "anthropic" | "openai" | "google";
type Rates = Record<string, string>;

interface Period {
  from?: string;
  rates: Rates;
  tiers?: { over: number; rates: Rates }[];
}

interface Entry {
  provider: string;
  ids: string[];
  periods: Period[];
  factors: Record<string, string>;
  source: string;
}

const PACKAGE = "@pydantic/genai-prices 0.1.8";

const KINDS: Readonly<Record<string, string>> = {
  input_mtok: "input",
  output_mtok: "output",
  cache_read_mtok: "cache_read",
  cache_write_1h_mtok: "cache_write_1h",
  input_audio_mtok: "input_audio",
  input_image_mtok: "input_image",
  input_video_mtok: "input_video",
  cache_audio_read_mtok: "cache_read_audio",
  cache_image_read_mtok: "cache_read_image",
  output_audio_mtok: "output_audio",
  output_image_mtok: "output_image",
  output_video_mtok: "output_video",
  web_searches_kcount: "web_search_per_1k",
  storage_searches_kcount: "file_search_per_1k",
};

/** Only Anthropic's writes have a lifetime. */
function kindOf(key: string, provider: Provider): string | undefined {
  if (key === "cache_write_mtok") return provider === "anthropic" ? "cache_write_5m" : "cache_write";
  return KINDS[key];
}

function writeDecimal(value: number): string {
  const text = String(value);
  if (!/^\d+(\.\d+)?$/.test(text)) throw new Error(`no plain decimal: ${text}`);
  return text;
}

/** OpenAI's long context begins above 272 000 tokens; the package says "from 272 000 on" for some of the models. */
function limitOf(start: number): number {
  return start === 271_999 ? 272_000 : start;
}

function periodOf(price: ModelPrice, provider: Provider, from: string | undefined): Period {
  const rates: Rates = {};
  const starts = new Set<number>();
  for (const [key, value] of Object.entries(price)) {
    const kind = kindOf(key, provider);
    if (kind === undefined || value === undefined) continue;
    rates[kind] = writeDecimal(typeof value === "number" ? value : value.base);
    if (typeof value !== "number") for (const tier of value.tiers) starts.add(tier.start);
  }
  const tiers = [...starts]
    .toSorted((a, b) => a - b)
    .map((start) => {
      const tier = { ...rates };
      for (const [key, value] of Object.entries(price)) {
        const kind = kindOf(key, provider);
        const own =
          typeof value === "object" ? value.tiers.findLast((each) => each.start <= start) : undefined;
        if (kind !== undefined && own !== undefined) tier[kind] = writeDecimal(own.price);
      }
      return { over: limitOf(start), rates: tier };
    });
  return { ...(from === undefined ? {} : { from }), rates, ...(tiers.length > 0 ? { tiers } : {}) };
}

function periodsOf(model: ModelInfo, provider: Provider): Period[] {
  if (!Array.isArray(model.prices)) return [periodOf(model.prices, provider, undefined)];
  return model.prices.map(({ constraint, prices }) => {
    if (constraint !== undefined && constraint.type !== "start_date")
      throw new Error(`${model.id}: prices by time of day`);
    return periodOf(prices, provider, constraint?.start_date);
  });
}

/** Whole ids only: what the package takes for the beginning of an id is taken for an id. */
function idsOf(model: ModelInfo): string[] {
  const ids = [model.id, ...wordsOf(model.match)].map((id) => id.replace(/[-@]+$/, ""));
  // Fine-tuned models have an owner in their id; halves of dates and versions are no ids.
  return [...new Set(ids)].filter((id) => !/^ft:|\.ft$|^claude-.*-20\d\d$|flash-0$|thinking$/.test(id));
}

function wordsOf(match: MatchLogic): string[] {
  if ("or" in match) return match.or.flatMap(wordsOf);
  if ("and" in match) return match.and.flatMap(wordsOf);
  if ("equals" in match) return [match.equals];
  if ("starts_with" in match) return [match.starts_with];
  if ("ends_with" in match) return [match.ends_with];
  return "contains" in match ? [match.contains] : [];
}

function readPackage(provider: Provider): Entry[] {
  const models = findProvider({ providerId: provider })?.models ?? [];
  return models.map((model) => ({
    provider,
    ids: idsOf(model),
    periods: periodsOf(model, provider),
    factors: {},
    source: PACKAGE,
  }));
}

interface Rule {
  readonly provider: string;
  readonly models: readonly string[];
}

/** An object of the overlay, as TypeScript sees one of several that differ in their members. */
type Written = Readonly<Record<string, string | undefined>>;

function readRates(written: Written): Rates {
  return Object.fromEntries(
    Object.entries(written).flatMap(([kind, rate]) => (rate === undefined ? [] : [[kind, rate]])),
  );
}

/** The entries that a rule of the overlay is about; a rule that is about none has gone stale. */
function entriesOf(rule: Rule, entries: readonly Entry[]): Entry[] {
  const globs = rule.models.map(
    (model) => new RegExp(`^${model.replace(/[.]/g, "\\.").replaceAll("*", ".*")}$`),
  );
  const found = entries.filter(
    (entry) => entry.provider === rule.provider && globs.some((glob) => glob.test(entry.ids[0] ?? "")),
  );
  if (found.length < 1)
    throw new Error(`overlay: no model is meant by ${rule.provider} ${rule.models.join(", ")}`);
  return found;
}

function dropEntries(entries: readonly Entry[]): Entry[] {
  const dropped = new Set(overlay.drop.flatMap((rule) => entriesOf(rule, entries)));
  return entries.filter((entry) => !dropped.has(entry));
}

function changeIds(entries: readonly Entry[]): void {
  for (const rule of overlay.ids) {
    for (const entry of entriesOf(rule, entries)) {
      entry.ids = [...entry.ids.filter((id) => !(rule.remove ?? []).includes(id)), ...(rule.add ?? [])];
    }
  }
}

function addRates(entries: readonly Entry[]): void {
  for (const rule of overlay.rates) {
    const rates = readRates(rule.rates);
    for (const period of entriesOf(rule, entries).flatMap((entry) => entry.periods)) {
      Object.assign(period.rates, rates);
      for (const tier of period.tiers ?? []) Object.assign(tier.rates, rates);
    }
  }
}

function flatten(entries: readonly Entry[]): void {
  for (const rule of overlay.flat) {
    for (const entry of entriesOf(rule, entries)) {
      const last = entry.periods.at(-1);
      if (last !== undefined) entry.periods.push({ from: rule.from, rates: { ...last.rates } });
    }
  }
}

function addFactors(entries: readonly Entry[]): void {
  for (const rule of overlay.factors) {
    for (const entry of entriesOf(rule, entries)) Object.assign(entry.factors, readRates(rule.factors));
  }
}

/** Google has one price for text, images, video and audio wherever it does not list audio apart. */
function nameAudio(entries: readonly Entry[]): void {
  const all = entries.filter((entry) => entry.provider === "google").flatMap((entry) => entry.periods);
  for (const { rates } of all.flatMap((period) => [period, ...(period.tiers ?? [])])) {
    const { input, cache_read } = rates;
    if (input === undefined || rates["input_audio"] !== undefined) continue;
    rates["input_audio"] = input;
    if (cache_read !== undefined) rates["cache_read_audio"] = cache_read;
  }
}

interface WrittenPeriod {
  readonly from?: string;
  readonly rates: Written;
  readonly tiers?: readonly { readonly over: number; readonly rates: Written }[];
}

function readPeriod({ from, rates, tiers }: WrittenPeriod): Period {
  return {
    ...(from === undefined ? {} : { from }),
    rates: readRates(rates),
    ...(tiers === undefined
      ? {}
      : { tiers: tiers.map((tier) => ({ over: tier.over, rates: readRates(tier.rates) })) }),
  };
}

export function buildBook(): string {
  const read = (["anthropic", "openai", "google"] as const).flatMap(readPackage);
  const added = overlay.add.map(({ periods, provider, ids, source }): Entry => {
    return { provider, ids, periods: periods.map(readPeriod), factors: {}, source };
  });
  const entries = [...dropEntries(read), ...added];
  changeIds(entries);
  addRates(entries);
  flatten(entries);
  addFactors(entries);
  nameAudio(entries);
  const priced = entries.filter(
    ({ ids, periods }) => ids.length > 0 && periods.every(({ rates }) => rates["input"] !== undefined),
  );
  const ids = priced.flatMap((entry) => entry.ids);
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  if (twice.length > 0) throw new Error(`ids that stand twice: ${twice.join(", ")}`);
  const lines = priced.map((entry) => JSON.stringify(entry));
  return `{"revision":${JSON.stringify(overlay.revision)},"models":[\n${lines.join(",\n")}\n]}\n`;
}

if (import.meta.main) writeFileSync(new URL("book.json", import.meta.url), buildBook());
