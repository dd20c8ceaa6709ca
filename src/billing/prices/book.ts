// The price book: who sells which model, under which names, at what price from when on. A text of one JSON object
// a line, the first of which says what book it is. An entry is read when its provider's prices are first needed:
// a gateway with one channel never reads the other forty lists. It is made by convert.ts.

import { readFileSync } from "node:fs";
import { getCount, getField, isObject, getList, parseJson } from "../../lib/json/json.ts";
import builtIn from "./book.jsonl" with { type: "file" };

/** Kind of usage → USD, a decimal: per million tokens, or, with `_per_1k` at the kind's end, per thousand calls. */
export type Rates = Readonly<Record<string, string>>;

export interface Price {
  /** As the ledger names it: `book 2026-11-21 anthropic`, `config`. */
  readonly source: string;
  readonly rates: Rates;
  /** The whole request costs these rates when its input is of more than `over` tokens. Ascending. */
  readonly tiers: readonly { readonly over: number; readonly rates: Rates }[];
  /** `service_tier=flex` → what all tokens' prices are multiplied by. */
  readonly factors: Rates;
}

/** A price, and when it is paid. */
export interface Period {
  /** The first moment; -Infinity: always. */
  readonly from: number;
  /** The moment at which it ends; Infinity: it has no known end. */
  readonly until: number;
  /** Minutes of the day (UTC) from and until which it is paid; null: all day. */
  readonly hours: readonly [from: number, until: number] | null;
  /** Paid at weekends only, in a time zone this many hours ahead of UTC; null: on every day. */
  readonly weekend: number | null;
  readonly price: Omit<Price, "source">;
}

export interface BookedModel {
  readonly provider: string;
  readonly ids: readonly string[];
  /** The last of those that apply at a moment counts. */
  readonly periods: readonly Period[];
  /** The tokens of its context window; null: not known. */
  readonly context: number | null;
  /** Where its prices are from. */
  readonly source: string;
}

export interface PriceBook {
  /** The day that it is of: 2026-11-21. */
  readonly date: string;
  /** As ledger lines name it: `book 2026-11-21`; with the beginning of its hash where it is not the built-in one. */
  readonly label: string;
  readonly providers: readonly string[];
  /** Providers that sell other makers' models at the makers' own prices. */
  fallbacksOf(provider: string): readonly string[];
  /** The model that has this name, in any case, in this provider's list; null: there is none. */
  find(provider: string, id: string): BookedModel | null;
  listModels(provider: string): readonly BookedModel[];
}

let loaded: PriceBook | null = null;

/** The book that the program was made with. Costs nothing until a price is needed. */
export function loadBuiltInBook(): PriceBook {
  loaded ??= openLazily(() => readFileSync(builtIn, "utf8"));
  return loaded;
}

/** The text has been checked. */
export function openBook(text: string): PriceBook {
  return openLazily(() => text);
}

interface OpenBook {
  readonly text: string;
  readonly head: unknown;
}

function openLazily(read: () => string): PriceBook {
  let opened: OpenBook | null = null;
  const open = (): OpenBook => {
    if (opened !== null) return opened;
    const text = read();
    return (opened = { text, head: parseJson(text.slice(0, text.indexOf("\n"))) });
  };
  const lists = new Map<string, ProviderList>();
  const listOfProvider = (provider: string): ProviderList =>
    lists.getOrInsertComputed(provider, () => readProvider(open(), provider));
  return {
    get date() {
      return String(getField(open().head, "date"));
    },
    get label() {
      const { head } = open();
      const hash = getField(head, "sha256");
      const date = String(getField(head, "date"));
      return typeof hash === "string" ? `book ${date}#${hash.slice(0, 8)}` : `book ${date}`;
    },
    get providers() {
      return Object.keys(providersOf(open()));
    },
    fallbacksOf: (provider) =>
      getList(providersOf(open())[provider]).filter((name) => typeof name === "string"),
    find: (provider, id) => listOfProvider(provider).byId.get(id.toLowerCase()) ?? null,
    listModels: (provider) => listOfProvider(provider).models,
  };
}

function providersOf({ head }: OpenBook): Readonly<Record<string, unknown>> {
  const providers = getField(head, "providers");
  return isObject(providers) ? providers : {};
}

interface ProviderList {
  readonly models: readonly BookedModel[];
  /** In lower case: a maker may write `MiniMax-M3`, and a price list `minimax-m3`. */
  readonly byId: ReadonlyMap<string, BookedModel>;
}

/** A provider's lines follow one another. */
function readProvider({ text, head }: OpenBook, provider: string): ProviderList {
  const start = `\n{"provider":${JSON.stringify(provider)},`;
  const models: BookedModel[] = [];
  const source = String(getField(head, "source"));
  for (let at = text.indexOf(start); at >= 0 && text.startsWith(start, at);) {
    const end = text.indexOf("\n", at + 1);
    const line = parseJson(text.slice(at + 1, end < 0 ? undefined : end));
    models.push(readModel(line, provider, source));
    at = end < 0 ? -1 : end;
  }
  const byId = new Map(models.flatMap((model) => model.ids.map((id) => [id.toLowerCase(), model])));
  return { models, byId };
}

function readModel(line: unknown, provider: string, source: string): BookedModel {
  const factors = readRates(getField(line, "factors"));
  const own = getField(line, "source");
  return {
    provider,
    ids: getList(getField(line, "ids")).filter((id) => typeof id === "string"),
    periods: getList(getField(line, "periods")).map((period) => readPeriod(period, factors)),
    context: getCount(getField(line, "context")) ?? null,
    source: typeof own === "string" ? own : source,
  };
}

function readPeriod(period: unknown, factors: Rates): Period {
  const from = getField(period, "from");
  const until = getField(period, "until");
  const [start, end] = getList(getField(period, "hours")).map(readMinute);
  const weekend = getField(period, "weekend");
  const tiers = getList(getField(period, "tiers")).map((tier) => ({
    over: Number(getField(tier, "over")),
    rates: readRates(getField(tier, "rates")),
  }));
  return {
    from: typeof from === "string" ? Date.parse(from) : Number.NEGATIVE_INFINITY,
    until: typeof until === "string" ? Date.parse(until) : Number.POSITIVE_INFINITY,
    hours: start === undefined || end === undefined ? null : [start, end],
    weekend: typeof weekend === "number" ? weekend : null,
    price: {
      rates: readRates(getField(period, "rates")),
      tiers,
      factors: { ...factors, ...readRates(getField(period, "factors")) },
    },
  };
}

/** `16:30` → 990. */
function readMinute(text: unknown): number {
  const [hours = 0, minutes = 0] = String(text).split(":").map(Number);
  return hours * 60 + minutes;
}

function readRates(value: unknown): Rates {
  const entries = isObject(value) ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.flatMap(([kind, rate]) => (typeof rate === "string" ? [[kind, rate]] : [])),
  );
}

/** What is paid at a moment; null: the model had no price then. */
function priceAt<T extends Period>(periods: readonly T[], at: Date): T["price"] | null {
  return periods.findLast((period) => isPaid(period, at))?.price ?? null;
}

/** Keeps the price that was asked for last while it is paid: requests come one after the other. */
export function keepPrice<T extends Period>(periods: readonly T[]): (at: Date) => T["price"] | null {
  let price: T["price"] | null = null;
  let stretch: Stretch = { since: Number.POSITIVE_INFINITY, until: Number.NEGATIVE_INFINITY };
  return (at) => {
    const moment = at.getTime();
    if (moment >= stretch.since && moment < stretch.until) return price;
    price = priceAt(periods, at);
    stretch = findStretch(periods, moment);
    return price;
  };
}

/** From the first moment until before the second, the same price is paid. */
interface Stretch {
  readonly since: number;
  readonly until: number;
}

/** Hours of the day and weekends begin and end with a minute. */
function findStretch(periods: readonly Period[], moment: number): Stretch {
  const hasClock = periods.some(({ hours, weekend }) => hours !== null || weekend !== null);
  const minute = Math.floor(moment / MINUTE_MS) * MINUTE_MS;
  let since = hasClock ? minute : Number.NEGATIVE_INFINITY;
  let until = hasClock ? minute + MINUTE_MS : Number.POSITIVE_INFINITY;
  for (const change of periods.flatMap((period) => [period.from, period.until])) {
    if (change <= moment) since = Math.max(since, change);
    else until = Math.min(until, change);
  }
  return { since, until };
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
const HOUR_MS = 3_600_000;
const WEEKEND = new Set([0, 6]);

function isPaid({ from, until, hours, weekend }: Period, at: Date): boolean {
  if (at.getTime() < from || at.getTime() >= until) return false;
  if (weekend !== null && !WEEKEND.has(new Date(at.getTime() + weekend * HOUR_MS).getUTCDay())) return false;
  if (hours === null) return true;
  const [start, end] = hours;
  const minute = at.getUTCHours() * 60 + at.getUTCMinutes();
  // Over midnight where it ends before it begins.
  return (minute - start + DAY_MINUTES) % DAY_MINUTES < (end - start + DAY_MINUTES) % DAY_MINUTES;
}
