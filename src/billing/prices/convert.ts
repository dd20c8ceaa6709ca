// Makes a price book from genai-prices' data and overlay.json.

import { type BookedModel, type BookHead, FORM, type Period } from "./book.ts";
import { isMovingName, LATEST } from "./names.ts";
import overlay from "./overlay.json";
import { type PublishedData, readProvider } from "./published.ts";

interface Rule {
  readonly provider: string;
  /** Patterns for a model's first id. `*` is any text. */
  readonly models: readonly string[];
}

/** A change divides the period in which it begins or ends. */
interface Change extends Rule {
  readonly from?: string;
  readonly until?: string;
  readonly rates?: Written;
  readonly over?: Written;
  readonly factors?: Written;
  /** Long prompts have the same price. */
  readonly flat?: boolean;
}

type Written = Readonly<Record<string, string | undefined>>;

/** With `strict`, a rule of the overlay must fit a model,
 *  or it is an error. */
interface Making {
  readonly models: readonly BookedModel[];
  readonly strict: boolean;
}

function modelsOf(rule: Rule, { models, strict }: Making): BookedModel[] {
  const globs = rule.models.map(
    (model) => new RegExp(`^${model.replace(/[.]/g, "\\.").replaceAll("*", ".*")}$`),
  );
  const found = models.filter(
    ({ provider, ids }) => provider === rule.provider && globs.some((glob) => glob.test(ids[0] ?? "")),
  );
  if (found.length < 1 && strict)
    throw new Error(`overlay: no model fits ${rule.provider} ${rule.models.join(", ")}`);
  return found;
}

function changeIds(making: Making): void {
  for (const rule of overlay.ids) {
    for (const model of modelsOf(rule, making)) {
      const kept = model.ids.filter((id) => !(rule.remove ?? []).includes(id));
      model.ids = [...new Set([...kept, ...(rule.add ?? [])])];
    }
  }
}

function changePeriods(making: Making): void {
  const changes: readonly Change[] = overlay.change;
  for (const { rates = {}, over = rates, factors, flat, ...rule } of changes) {
    for (const period of modelsOf(rule, making).flatMap((model) =>
      periodsWithin(model, rule, making.strict),
    )) {
      addTo(period.rates, rates, making.strict);
      for (const tier of period.tiers ?? []) addTo(tier.rates, over, making.strict);
      if (flat === true) delete period.tiers;
      if (factors !== undefined) addTo((period.factors ??= {}), factors, true);
    }
  }
}

/** Without `replaces`, a rate of genai-prices stays: it is newer. */
function addTo(rates: Record<string, string>, added: Written, replaces: boolean): void {
  for (const [kind, rate] of Object.entries(added))
    if (rate !== undefined && (replaces || rates[kind] === undefined)) rates[kind] = rate;
}

function periodsWithin(model: BookedModel, { from, until }: Change, strict: boolean): readonly Period[] {
  for (const moment of [from, until]) if (moment !== undefined) beginPeriod(model, moment, strict);
  return model.periods.filter(
    (period) =>
      (from === undefined || beginningOf(period) >= Date.parse(from)) &&
      (until === undefined || beginningOf(period) < Date.parse(until)),
  );
}

function beginningOf({ from }: Period): number {
  return from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
}

function beginPeriod({ provider, ids, periods }: BookedModel, from: string, strict: boolean): void {
  const last = periods.at(-1);
  if (last === undefined || beginningOf(last) === Date.parse(from)) return;
  if (beginningOf(last) < Date.parse(from) && last.until === undefined)
    periods.push({ ...structuredClone(last), from });
  else if (strict) throw new Error(`overlay: ${provider} ${ids[0]} has a later price than ${from}`);
}

/** Google charges audio like text, unless it lists a price for audio. */
function nameAudio({ models }: Making): void {
  const all = models.filter(({ provider }) => provider === "google").flatMap(({ periods }) => periods);
  for (const { rates } of all.flatMap((period) => [period, ...(period.tiers ?? [])])) {
    const { input, cache_read } = rates;
    if (input === undefined || rates["input_audio"] !== undefined) continue;
    rates["input_audio"] = input;
    if (cache_read !== undefined) rates["cache_read_audio"] = cache_read;
  }
}

/** A name that moves to newer models keeps only its dated prices. */
function dateMovingNames({ models }: Making): BookedModel[] {
  const known = new Set(models.flatMap(({ provider, ids }) => ids.map((id) => `${provider} ${id}`)));
  return models.flatMap((model): BookedModel[] => {
    const { provider, ids, periods } = model;
    const moving = ids.filter(isMovingName);
    const dated = periods.filter(({ from }) => from !== undefined);
    const fixed = ids
      .filter((id) => !moving.includes(id))
      .flatMap((id) => {
        const version = id.endsWith(LATEST) ? id.slice(0, -LATEST.length) : id;
        return version !== id && known.has(`${provider} ${version}`) ? [] : [version];
      });
    const aliases = moving.length > 0 && dated.length > 0 ? [{ ...model, ids: moving, periods: dated }] : [];
    return [{ ...model, ids: fixed }, ...aliases];
  });
}

function addModels(making: Making): BookedModel[] {
  const kept = making.strict ? [] : dateMovingNames(making);
  const known = new Set(kept.flatMap(({ provider, ids }) => ids.map((id) => `${provider} ${id}`)));
  const added = overlay.add.map(({ periods, provider, ids, source }): BookedModel => {
    const fresh = ids.filter((id) => !known.has(`${provider} ${id}`));
    return { provider, ids: fresh, periods: periods.map(readPeriod), source };
  });
  return [...making.models, ...added];
}

function readPeriod({ rates, ...period }: Omit<Period, "rates"> & { readonly rates: Written }): Period {
  const own: Record<string, string> = {};
  addTo(own, rates, true);
  return { ...structuredClone(period), rates: own };
}

function makeModels(published: PublishedData, strict: boolean): BookedModel[] {
  const read: Making = { models: published.flatMap(readProvider), strict };
  // Rules with `only` are for the built-in book.
  const rules = overlay.drop.filter((rule) => strict || !("only" in rule));
  const dropped = new Set(rules.flatMap((rule) => modelsOf(rule, read)));
  const left: Making = { models: read.models.filter((model) => !dropped.has(model)), strict };
  const added: Making = { models: addModels(left), strict };
  changeIds(added);
  const making: Making = { models: dateMovingNames(added), strict };
  changePeriods(making);
  nameAudio(making);
  const priced = making.models.filter(({ periods }) =>
    periods.every(({ rates }) => rates["input"] !== undefined),
  );
  return refuseTwins(priced, strict).toSorted((a, b) =>
    a.provider < b.provider ? -1 : Number(a.provider > b.provider),
  );
}

function refuseTwins(models: readonly BookedModel[], strict: boolean): readonly BookedModel[] {
  const seen = new Set<string>();
  const kept = models.map((model) => ({
    ...model,
    ids: model.ids.filter((id) => {
      const key = `${model.provider} ${id}`;
      if (strict && seen.has(key)) throw new Error(`an id that occurs twice: ${key}`);
      return seen.has(key) ? false : seen.add(key);
    }),
  }));
  return kept.filter(({ ids }) => ids.length > 0);
}

export function makeBook(
  published: PublishedData,
  { strict = false, ...details }: Pick<BookHead, "date" | "source"> & { readonly strict?: boolean },
): string {
  const models = makeModels(published, strict);
  const listed = new Set(models.map(({ provider }) => provider));
  const sellers = [
    ...Object.entries(overlay.providers),
    ...published.map(({ id, fallback_model_providers: makers }) => [id, makers ?? []] as const),
  ].filter(([id, makers]) => listed.has(id) || makers.length > 0);
  const { China: china } = overlay.workdays;
  const head: BookHead = {
    form: FORM,
    ...details,
    providers: Object.fromEntries(sellers),
    workdays: { China: { offset: china.offset, holidays: china.holidays } },
  };
  const lines = models.map(({ provider, ids, periods, context, source }) => {
    return { provider, ids, periods, context, source };
  });
  return [...[head, ...lines].map((line) => JSON.stringify(line)), ""].join("\n");
}
