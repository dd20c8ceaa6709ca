// Makes a price book out of what the maintained price package publishes and overlay.json. `bun run prices` does so
// for the built-in book, `gateway prices update` for a newer one.

import overlay from "./overlay.json";
import {
  type PublishedEntry,
  type PublishedPeriod,
  type PublishedData,
  type PublishedRates,
  readProvider,
} from "./published.ts";
import { isMovingName, LATEST } from "./names.ts";

interface Rule {
  readonly provider: string;
  readonly models: readonly string[];
}

/** An object of the overlay, as TypeScript sees one of several that differ in their members. */
type OverlayObject = Readonly<Record<string, string | undefined>>;

function readRates(written: OverlayObject): PublishedRates {
  return Object.fromEntries(
    Object.entries(written).flatMap(([kind, rate]) => (rate === undefined ? [] : [[kind, rate]])),
  );
}

/** The overlay's rules were written for the package that the built-in book is made from. */
interface Making {
  readonly entries: readonly PublishedEntry[];
  /** A rule that is about no model has gone stale. Only the built-in book's maker can do something about it. */
  readonly strict: boolean;
}

function entriesOf(rule: Rule, { entries, strict }: Making): PublishedEntry[] {
  const globs = rule.models.map(
    (model) => new RegExp(`^${model.replace(/[.]/g, "\\.").replaceAll("*", ".*")}$`),
  );
  const found = entries.filter(
    (entry) => entry.provider === rule.provider && globs.some((glob) => glob.test(entry.ids[0] ?? "")),
  );
  if (found.length < 1 && strict)
    throw new Error(`overlay: no model is meant by ${rule.provider} ${rule.models.join(", ")}`);
  return found;
}

function changeIds(making: Making): void {
  for (const rule of overlay.ids) {
    for (const entry of entriesOf(rule, making)) {
      const kept = entry.ids.filter((id) => !(rule.remove ?? []).includes(id));
      entry.ids = [...new Set([...kept, ...(rule.add ?? [])])];
    }
  }
}

/** What the package says itself is not touched where it is newer than the overlay. */
function addRates(making: Making): void {
  for (const rule of overlay.rates) {
    const rates = readRates(rule.rates);
    const long = readRates("over" in rule && rule.over !== undefined ? rule.over : rule.rates);
    for (const period of entriesOf(rule, making).flatMap((entry) => periodsWithin(entry, rule))) {
      addTo(period.rates, rates, making.strict);
      for (const tier of period.tiers ?? []) addTo(tier.rates, long, making.strict);
    }
  }
}

/** From a moment on, or until then: the periods are divided there. */
interface Span {
  readonly from?: string | undefined;
  readonly until?: string | undefined;
}

function periodsWithin(entry: PublishedEntry, { from, until }: Span): readonly PublishedPeriod[] {
  for (const moment of [from, until]) if (moment !== undefined) beginPeriod(entry, moment);
  return entry.periods.filter(
    (period) =>
      (from === undefined || beginningOf(period) >= Date.parse(from)) &&
      (until === undefined || beginningOf(period) < Date.parse(until)),
  );
}

function beginningOf({ from }: PublishedPeriod): number {
  return from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
}

/** The last period is paid until then, and goes on as one of its own. */
function beginPeriod({ provider, ids, periods }: PublishedEntry, from: string): void {
  const last = periods.at(-1);
  if (last === undefined || beginningOf(last) === Date.parse(from)) return;
  if (beginningOf(last) > Date.parse(from) || last.until !== undefined)
    throw new Error(`overlay: ${provider} ${ids[0]} has a later price than ${from}`);
  periods.push({ ...structuredClone(last), from });
}

function addTo(rates: PublishedRates, added: PublishedRates, replaces: boolean): void {
  for (const [kind, rate] of Object.entries(added))
    if (replaces || rates[kind] === undefined) rates[kind] = rate;
}

function flatten(making: Making): void {
  for (const rule of overlay.flat) {
    for (const entry of entriesOf(rule, making)) {
      const last = entry.periods.at(-1);
      if (last?.tiers !== undefined) entry.periods.push({ from: rule.from, rates: { ...last.rates } });
    }
  }
}

function addFactors(making: Making): void {
  for (const rule of overlay.factors) {
    for (const entry of entriesOf(rule, making)) addFactor(entry, rule);
  }
}

function addFactor(
  entry: PublishedEntry,
  rule: { readonly from?: string; readonly factors: OverlayObject },
): void {
  const factors = readRates(rule.factors);
  if (rule.from === undefined) {
    Object.assign(entry.factors, factors);
    return;
  }
  for (const period of periodsWithin(entry, rule)) period.factors = { ...period.factors, ...factors };
}

/** Google has one price for text, images, video and audio wherever it does not list audio apart. */
function nameAudio({ entries }: Making): void {
  const all = entries.filter((entry) => entry.provider === "google").flatMap((entry) => entry.periods);
  for (const { rates } of all.flatMap((period) => [period, ...(period.tiers ?? [])])) {
    const { input, cache_read } = rates;
    if (input === undefined || rates["input_audio"] !== undefined) continue;
    rates["input_audio"] = input;
    if (cache_read !== undefined) rates["cache_read_audio"] = cache_read;
  }
}

/**
 * `…-latest` never has a fixed price for ever. Where the name says a version, the version's price is found by the name
 * without its end (names.ts). Otherwise the name moves: only prices with a date are kept. Without one, the model that
 * the answer names is priced.
 */
function dateMovingNames({ entries }: Making): PublishedEntry[] {
  const known = new Set(entries.flatMap(({ provider, ids }) => ids.map((id) => `${provider} ${id}`)));
  return entries.flatMap((entry): PublishedEntry[] => {
    const { provider, ids, periods } = entry;
    const moving = ids.filter(isMovingName);
    const dated = periods.filter(({ from }) => from !== undefined);
    const fixed = ids
      .filter((id) => !moving.includes(id))
      .flatMap((id) => {
        const version = id.endsWith(LATEST) ? id.slice(0, -LATEST.length) : id;
        return version !== id && known.has(`${provider} ${version}`) ? [] : [version];
      });
    const aliases = moving.length > 0 && dated.length > 0 ? [{ ...entry, ids: moving, periods: dated }] : [];
    return [{ ...entry, ids: fixed }, ...aliases];
  });
}

interface WrittenPeriod {
  readonly from?: string;
  readonly until?: string;
  readonly rates: OverlayObject;
  readonly tiers?: readonly { readonly over: number; readonly rates: OverlayObject }[];
  readonly peak?: Peak;
}

/** Other prices in some hours of the day (UTC). */
interface Peak {
  readonly hours: readonly (readonly string[])[];
  readonly rates: OverlayObject;
  /** On workdays in China only. Absent: on all days. */
  readonly workdays?: string;
}

/** The last of those that apply is paid: peak hours come after the day's price, and days without a peak after them. */
function readPeriod({ from, until, rates, tiers, peak }: WrittenPeriod): PublishedPeriod[] {
  const base: PublishedPeriod = {
    ...(from === undefined ? {} : { from }),
    ...(until === undefined ? {} : { until }),
    rates: readRates(rates),
    ...(tiers === undefined
      ? {}
      : { tiers: tiers.map((tier) => ({ over: tier.over, rates: readRates(tier.rates) })) }),
  };
  if (peak === undefined) return [base];
  const peaks = peak.hours.flatMap(([start, end]) =>
    start === undefined || end === undefined
      ? []
      : [{ ...base, hours: [start, end] as const, rates: readRates(peak.rates) }],
  );
  if (peak.workdays === undefined) return [base, ...peaks];
  const { offset, holidays } = overlay.workdays.china;
  const free = holidays
    .filter(([, end = ""]) => Date.parse(end) > beginningOf(base))
    .map(([start = "", end = ""]) => ({
      ...base,
      from: from !== undefined && Date.parse(from) >= Date.parse(start) ? from : start,
      until: end,
    }));
  return [base, ...peaks, { ...base, weekend: offset }, ...free];
}

/** Models that the package lacks, or whose prices it can't express. Where it is not strict, it is the newer of the two: it
 *  keeps the names that it has a price for. */
function addModels(making: Making): PublishedEntry[] {
  const { entries, strict } = making;
  const kept = strict ? [] : dateMovingNames(making);
  const known = new Set(kept.flatMap(({ provider, ids }) => ids.map((id) => `${provider} ${id}`)));
  const added = overlay.add.map(({ periods, provider, ids, source }): PublishedEntry => {
    const fresh = ids.filter((id) => !known.has(`${provider} ${id}`));
    return { provider, ids: fresh, periods: periods.flatMap(readPeriod), factors: {}, context: null, source };
  });
  return [...entries, ...added];
}

export interface BookDetails {
  /** 2026-11-21 */
  readonly date: string;
  /** Where the package's prices are from. */
  readonly source: string;
  /** For the built-in book: a rule of the overlay that fits nothing, or an id that occurs twice, is a mistake. */
  readonly strict?: boolean;
}

/** The book's entries, by provider. */
function makeEntries(published: PublishedData, strict: boolean): PublishedEntry[] {
  const read = published.flatMap(readProvider);
  const dropping: Making = { entries: read, strict };
  // A newer book has newer prices than those that the overlay puts in their place.
  const rules = overlay.drop.filter((rule) => strict || !("only" in rule));
  const dropped = new Set(rules.flatMap((rule) => entriesOf(rule, dropping)));
  const left: Making = { entries: read.filter((entry) => !dropped.has(entry)), strict };
  const added: Making = { entries: addModels(left), strict };
  changeIds(added);
  const making: Making = { entries: dateMovingNames(added), strict };
  addRates(making);
  flatten(making);
  addFactors(making);
  nameAudio(making);
  const priced = making.entries.filter(
    ({ ids, periods }) => ids.length > 0 && periods.every(({ rates }) => rates["input"] !== undefined),
  );
  return refuseTwins(priced, strict).toSorted((a, b) => compare(a.provider, b.provider));
}

function refuseTwins(entries: readonly PublishedEntry[], strict: boolean): readonly PublishedEntry[] {
  const seen = new Set<string>();
  const twice: string[] = [];
  const kept = entries.map((entry) => ({
    ...entry,
    ids: entry.ids.filter((id) => {
      const key = `${entry.provider} ${id}`;
      if (seen.has(key)) twice.push(key);
      return seen.has(key) ? false : seen.add(key);
    }),
  }));
  if (strict && twice.length > 0) throw new Error(`ids that stand twice: ${twice.join(", ")}`);
  return kept.filter(({ ids }) => ids.length > 0);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** One JSON object a line: what book it is, then its models. */
export function makeBook(published: PublishedData, { date, source, strict = false }: BookDetails): string {
  const entries = makeEntries(published, strict);
  const listed = new Set(entries.map(({ provider }) => provider));
  const own = Object.entries(overlay.providers).map(([id, makers]) => ({
    id,
    fallback_model_providers: makers,
  }));
  const providers = Object.fromEntries(
    [...own, ...published].flatMap(({ id, fallback_model_providers: fallbacks }) =>
      listed.has(id) || (fallbacks ?? []).length > 0 ? [[id, fallbacks ?? []]] : [],
    ),
  );
  const lines = entries.map(({ provider, ids, periods, factors, context, source: own }) =>
    JSON.stringify({
      provider,
      ids,
      periods,
      ...(Object.keys(factors).length === 0 ? {} : { factors }),
      ...(context === null ? {} : { context }),
      ...(own === null ? {} : { source: own }),
    }),
  );
  return [JSON.stringify({ date, source, providers }), ...lines, ""].join("\n");
}
