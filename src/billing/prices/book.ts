// The price book: who sells which model, under which names, at what price from when on. One JSON object a line: first what
// book it is, then its models. A provider's lines are read when they are needed. `gateway prices update` writes a newer book
// next to the config, whose first line has the SHA-256 of the rest, so that a damaged one is not used.

import { readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { getErrorCode } from "../../lib/errors.ts";
import { ForeignFile, readOwn, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { lookUp } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import builtIn from "./book.jsonl" with { type: "file" };

/** Kind of usage → USD: per million tokens, or, with `_per_1k` at the end, per thousand calls. */
export type Rates = Readonly<Record<string, string>>;

export interface Tier {
  over: number;
  rates: Record<string, string>;
}

/** A price, and when it is paid. */
export interface Period {
  /** The first moment; absent: always. */
  from?: string | undefined;
  /** The moment at which it ends. */
  until?: string | undefined;
  /** Hours of the day (UTC), such as `01:00`, from and until which it is paid. */
  hours?: (readonly string[])[] | undefined;
  /** It is paid on workdays only, of this country. */
  workdays?: string | undefined;
  rates: Record<string, string>;
  /** What all of a request with more than `over` tokens of input costs. Ascending. */
  tiers?: Tier[] | undefined;
  /** `service_tier=flex` → what all tokens' prices are multiplied by. */
  factors?: Record<string, string> | undefined;
}

/** A line of the book. */
export interface BookedModel {
  provider: string;
  ids: readonly string[];
  /** The last of those that apply at a moment counts. */
  periods: Period[];
  /** The tokens of its context window. */
  context?: number | undefined;
  /** Where its prices are from; absent: where the book is from. */
  source?: string | undefined;
}

/** What is paid at a moment. */
export interface Price {
  /** As the ledger names it: `book 2026-11-21 anthropic`, `config`. */
  readonly source: string;
  readonly rates: Rates;
  readonly tiers: readonly Readonly<Tier>[];
  readonly factors: Rates;
}

/** The form of the lines. */
export const FORM = 2;

/** The first line. */
export interface BookHead {
  readonly form: typeof FORM;
  /** The day that it is of: 2026-11-21. */
  readonly date: string;
  readonly source: string;
  /** With those whose models each sells at their own prices. */
  readonly providers: Readonly<Record<string, readonly string[]>>;
  /** By country: hours ahead of UTC, and when holidays begin and end. */
  readonly workdays: Readonly<Record<string, { readonly offset: number; readonly holidays: string[][] }>>;
  /** Absent: it is the built-in one. */
  readonly sha256?: string;
}

type ProviderList = ReturnType<typeof readProvider>;

export class PriceBook {
  readonly #read: () => string;
  #opened: { readonly text: string; readonly head: BookHead } | null = null;
  readonly #lists = new Map<string, ProviderList>();

  /** `read`: gives the text, which has been checked, when a price is needed. */
  constructor(read: () => string) {
    this.#read = read;
  }

  get #open() {
    if (this.#opened !== null) return this.#opened;
    const text = this.#read();
    const head: BookHead = JSON.parse(text.slice(0, text.indexOf("\n")));
    return (this.#opened = { text, head });
  }

  get head(): BookHead {
    return this.#open.head;
  }

  get date(): string {
    return this.head.date;
  }

  /** As lines name it: `book 2026-11-21`; one that is not built in, with the beginning of its hash. */
  get label(): string {
    const { date, sha256 } = this.head;
    return sha256 === undefined ? `book ${date}` : `book ${date}#${sha256.slice(0, 8)}`;
  }

  get providers(): readonly string[] {
    return Object.keys(this.head.providers);
  }

  /** Providers that sell other makers' models at the makers' own prices. */
  fallbacksOf(provider: string): readonly string[] {
    return lookUp(this.head.providers, provider) ?? [];
  }

  /** The model that has this name, in any case, in this provider's list; null: there is none. */
  find(provider: string, id: string): BookedModel | null {
    return this.#listOf(provider).byId.get(id.toLowerCase()) ?? null;
  }

  listModels(provider: string): readonly BookedModel[] {
    return this.#listOf(provider).models;
  }

  #listOf(provider: string): ProviderList {
    return this.#lists.getOrInsertComputed(provider, () => readProvider(this.#open.text, provider));
  }
}

/** A provider's lines follow one another. */
function readProvider(text: string, provider: string) {
  const start = `\n{"provider":${JSON.stringify(provider)},`;
  const models: BookedModel[] = [];
  for (let at = text.indexOf(start); at >= 0 && text.startsWith(start, at);) {
    const end = text.indexOf("\n", at + 1);
    models.push(JSON.parse(text.slice(at + 1, end)));
    at = end;
  }
  return {
    models,
    /** In lower case: a maker may write `MiniMax-M3`, and a price list `minimax-m3`. */
    byId: new Map(models.flatMap((model) => model.ids.map((id) => [id.toLowerCase(), model]))),
  };
}

let loaded: PriceBook | null = null;

/** The book that the program was made with. Costs nothing until a price is needed. */
function loadBuiltInBook(): PriceBook {
  return (loaded ??= new PriceBook(() => readFileSync(builtIn, "utf8")));
}

/** `gateway.yaml` → `gateway.prices.jsonl` in the same folder. */
export function placeOfBook(configPath: string): string {
  return join(dirname(configPath), `${basename(configPath, extname(configPath))}.prices.jsonl`);
}

/** The built-in book, or a newer one next to the config. */
export function loadPriceBook(configPath: string | null = null): PriceBook {
  const own = loadBuiltInBook();
  const stored = configPath === null ? null : readStored(placeOfBook(configPath));
  return stored === null || stored.head.form !== FORM || stored.date < own.date ? own : stored;
}

function readStored(path: string): PriceBook | null {
  let text: string | null;
  try {
    // A link, or somebody else's file, is refused: prices would change unnoticed.
    text = requireOwn(path) === null ? null : readOwn(path);
  } catch (error) {
    const why = error instanceof ForeignFile ? error.message : getErrorCode(error) || String(error);
    throw new Error(`The price book ${path} cannot be read: ${why}.`, { cause: error });
  }
  if (text === null) return null;
  if (!isSealed(text))
    throw new Error(
      `The price book ${path} is damaged: it has another hash than it says. \`gateway prices update\` writes it again; without it, the built-in book counts.`,
    );
  return new PriceBook(() => text);
}

function isSealed(text: string): boolean {
  const [, hash] = /^\{.*,"sha256":"([0-9a-f]{64})"\}\n/.exec(text) ?? [];
  return hash === sha256Hex(text.slice(text.indexOf("\n") + 1));
}

/** Adds the hash of a book that makeBook made. */
export function sealBook(text: string): string {
  const end = text.indexOf("\n");
  const rest = text.slice(end + 1);
  return `${text.slice(0, end).replace(/\}$/, `,"sha256":"${sha256Hex(rest)}"}`)}\n${rest}`;
}

/** In one step: a reader gets the old one or the new one, never a mixture. */
export function writeBook(path: string, sealed: string): void {
  replaceFile(path, sealed, { mode: 0o600, durable: true });
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
const HOUR_MS = 3_600_000;
const WEEKEND = new Set([0, 6]);

/** `16:30` → 990. */
export function readMinute(text = ""): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}

/** Whether a price is paid at a moment. */
export function isPaidAt({ from, until, hours, workdays }: Period, { head }: PriceBook) {
  const start = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
  const end = until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until);
  const spans = hours?.map(([first, last]) => [readMinute(first), readMinute(last)] as const);
  const { offset, holidays } = (workdays && head.workdays[workdays]) || { offset: 0, holidays: [] };
  const isFree = (moment: number): boolean =>
    WEEKEND.has(new Date(moment + offset * HOUR_MS).getUTCDay()) ||
    holidays.some(([first = "", last = ""]) => moment >= Date.parse(first) && moment < Date.parse(last));
  return (at: Date): boolean => {
    const moment = at.getTime();
    if (moment < start || moment >= end) return false;
    if (spans === undefined) return true;
    const minute = Math.floor(moment / MINUTE_MS) % DAY_MINUTES;
    // Over midnight where it ends before it begins.
    const isIn = spans.some(
      ([first, last]) =>
        (minute - first + DAY_MINUTES) % DAY_MINUTES < (last - first + DAY_MINUTES) % DAY_MINUTES,
    );
    return isIn && (workdays === undefined || !isFree(moment));
  };
}
