// The price book: who sells which model, under which names, with dated prices.
// The book that `gateway prices update` writes begins with its own SHA-256.

import { readFileSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { ForeignFile, readOwn, requireOwn } from "../../lib/files/own-file.ts";
import { lookUp } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import builtIn from "./book.jsonl" with { type: "file" };

/** USD per million tokens, or with `_per_1k` per thousand calls. */
export type Rates = Readonly<Record<string, string>>;

export interface Period {
  /** The first moment. Absent: always. */
  from?: string | undefined;
  /** The first moment after the period. */
  until?: string | undefined;
  /** The times of day (UTC) with this price.
   *  `[["01:00", "04:00"]]` is from 1 until 4 o'clock. */
  hours?: (readonly string[])[] | undefined;
  /** Only on workdays of this country. */
  workdays?: string | undefined;
  rates: Record<string, string>;
  /** For more than `over` input tokens, in ascending order. */
  tiers?: { over: number; rates: Record<string, string> }[] | undefined;
  /** `service_tier=flex` → a factor for all tokens. */
  factors?: Record<string, string> | undefined;
}

export interface BookedModel {
  provider: string;
  ids: readonly string[];
  /** The last applicable period counts. */
  periods: Period[];
  context?: number | undefined;
  /** Absent: the book's source. */
  source?: string | undefined;
}

/** `source`: `book 2026-11-21 anthropic`, `config`. */
export type Price = Omit<Readonly<Period>, "from" | "until" | "hours" | "workdays"> & {
  readonly source: string;
};

export const FORM = 2;

export interface BookHead {
  readonly form: typeof FORM;
  readonly date: string;
  readonly source: string;
  /** Each provider, with the makers whose models it sells at their prices. */
  readonly providers: Readonly<Record<string, readonly string[]>>;
  /** By country: hours ahead of UTC, and holidays. */
  readonly workdays: Readonly<Record<string, { readonly offset: number; readonly holidays: string[][] }>>;
  /** Absent: the built-in book. */
  readonly sha256?: string;
}

type ProviderList = ReturnType<typeof readProvider>;

export class PriceBook {
  readonly #read: () => string;
  #opened: { readonly text: string; readonly head: BookHead } | null = null;
  readonly #lists = new Map<string, ProviderList>();

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

  get label(): string {
    const { date, sha256 } = this.head;
    return sha256 === undefined ? `book ${date}` : `book ${date}#${sha256.slice(0, 8)}`;
  }

  get providers(): readonly string[] {
    return Object.keys(this.head.providers);
  }

  fallbacksOf(provider: string): readonly string[] {
    return lookUp(this.head.providers, provider) ?? [];
  }

  find(provider: string, id: string): BookedModel | null {
    return this.#listOf(provider).byId.get(id.toLowerCase()) ?? null;
  }

  listModels(provider: string): readonly BookedModel[] {
    return this.#listOf(provider).models;
  }

  /** All models' names, as JSON. Parsing the book would take longer. */
  get ids(): string {
    return this.#open.text.match(/(?<="ids":)\[".*?"\]/g)?.join() ?? "";
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
    /** A maker may write `MiniMax-M3`, and a list `minimax-m3`. */
    byId: new Map(models.flatMap((model) => model.ids.map((id) => [id.toLowerCase(), model]))),
  };
}

const BUILT_IN = new PriceBook(() => readFileSync(builtIn, "utf8"));

export function placeOfBook(configPath: string): string {
  return join(dirname(configPath), `${basename(configPath, extname(configPath))}.prices.jsonl`);
}

export function loadBook(configPath: string | null = null): PriceBook {
  const stored = configPath === null ? null : readStored(placeOfBook(configPath));
  return stored === null || stored.head.form !== FORM || stored.date < BUILT_IN.date ? BUILT_IN : stored;
}

function readStored(path: string): PriceBook | null {
  let text: string | null;
  try {
    // Another user's file could change prices unnoticed.
    text = requireOwn(path) === null ? null : readOwn(path);
  } catch (error) {
    const why = error instanceof ForeignFile ? error.message : codeOf(error) || String(error);
    throw new Error(`The price book ${path} cannot be read: ${why}.`, { cause: error });
  }
  if (text === null) return null;
  const [, hash] = /^\{.*,"sha256":"([0-9a-f]{64})"\}\n/.exec(text) ?? [];
  if (hash !== sha256Hex(text.slice(text.indexOf("\n") + 1)))
    throw new Error(
      `The price book ${path} is damaged: its hash is wrong. \`gateway prices update\` writes it again; without it, the built-in one counts.`,
    );
  return new PriceBook(() => text);
}

export function sealBook(text: string): string {
  const end = text.indexOf("\n");
  const rest = text.slice(end + 1);
  return `${text.slice(0, end).replace(/\}$/, `,"sha256":"${sha256Hex(rest)}"}`)}\n${rest}`;
}

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1440;
const HOUR_MS = 3_600_000;
const WEEKEND = new Set([0, 6]);

export function readMinute(text = ""): number {
  const [hours = 0, minutes = 0] = text.split(":").map(Number);
  return hours * 60 + minutes;
}

export function isPaidAt({ from, until, hours, workdays }: Period, { head }: PriceBook) {
  const start = from === undefined ? Number.NEGATIVE_INFINITY : Date.parse(from);
  const end = until === undefined ? Infinity : Date.parse(until);
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
    // A span that ends before it begins goes over midnight.
    const isIn = spans.some(
      ([first, last]) =>
        (minute - first + DAY_MINUTES) % DAY_MINUTES < (last - first + DAY_MINUTES) % DAY_MINUTES,
    );
    return isIn && (workdays === undefined || !isFree(moment));
  };
}
