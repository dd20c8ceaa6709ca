// What the entries of logs cost by the price book, and their sums. The book and the one function of charges are those of
// the ledger. A log does not say who paid: amounts are what the usage costs with a key.

import { addDecimals, type Decimal, parseDecimal, ZERO_DECIMAL } from "../../lib/money.ts";
import { lookUp } from "../../lib/json/json.ts";
import { computeCharge } from "../charge.ts";
import { ANY_SELLER, type Overrides, type PriceBook, type Seller } from "../prices.ts";
import { MAKERS_OF } from "../prices/sellers.ts";
import { countTokens, type Part, PROMPT_KINDS, type Usage } from "../usage.ts";
import type { LogEntry, LoggingTool } from "./entry.ts";

export interface BookPrices {
  readonly book: PriceBook;
  readonly overrides: Overrides;
}

/** A tool's own provider. opencode has many, and names them. */
const MAKERS: Readonly<Record<LoggingTool, readonly string[]>> = {
  "claude-code": MAKERS_OF.messages,
  codex: MAKERS_OF.responses,
  "gemini-cli": MAKERS_OF.content,
  opencode: ANY_SELLER.makers,
};

const sellers = new Map<string, Seller>();

/** opencode's names of providers that the book calls otherwise. */
const PROVIDERS: Readonly<Record<string, string>> = {
  "amazon-bedrock": "aws",
  "fireworks-ai": "fireworks",
  togetherai: "together",
};

/** A provider of the book has its own prices. The names that users give to others say nothing. */
function findSeller({ tool, provider = "" }: LogEntry, book: PriceBook): Seller {
  const known = sellers.get(`${tool} ${provider}`);
  if (known !== undefined) return known;
  const name = lookUp(PROVIDERS, provider) ?? provider;
  const booked = book.providers.includes(name) ? name : null;
  const seller = { ...ANY_SELLER, provider: booked, makers: MAKERS[tool] };
  sellers.set(`${tool} ${provider}`, seller);
  return seller;
}

export interface PricedEntry {
  /** Null: it is not known. */
  readonly official: Decimal | null;
  readonly unpricedBecause: string | null;
}

export function priceEntry(entry: LogEntry, { book, overrides }: BookPrices): PricedEntry {
  const { model, usage, parts, tariff, time, isRest, basis } = entry;
  if (basis === "unknown") return { official: null, unpricedBecause: null };
  const whole: Part = { model: null, pass: "message", usage };
  const { official, unpricedBecause } = computeCharge({
    parts: parts ?? [isRest === true ? { ...whole, calls: divide(usage) } : whole],
    tariff,
    model: model === "" ? null : model,
    requested: null,
    book,
    overrides,
    seller: findSeller(entry, book),
    at: new Date(time),
    multiplier: "1",
  });
  return { official: official === null ? null : parseDecimal(official), unpricedBecause };
}

/** No prompt of these pays a price for long prompts: how long they were, the total does not say. */
const ORDINARY_TOKENS = 100_000;

function divide(usage: Usage): Usage[] {
  const count = Math.ceil(countTokens(usage, PROMPT_KINDS) / ORDINARY_TOKENS) + 1;
  return Array.from({ length: count }, (_, index) => {
    const share = (tokens: number): number => Math.floor(tokens / count) + (index === 0 ? tokens % count : 0);
    return Object.fromEntries(Object.entries(usage).map(([kind, tokens]) => [kind, share(tokens)]));
  });
}

/** A request, or the rest of a session, with what it costs. */
export interface Counted extends Pick<PricedEntry, "official"> {
  readonly place: "only_logs" | "only_ledger" | "both";
  readonly isRest: boolean;
  readonly usage: Usage;
  readonly basis: string;
}

export interface HistoryTotals {
  requests: number;
  /** Kind → count. */
  readonly usage: Map<string, number>;
  /** Basis → requests. */
  readonly bases: Map<string, number>;
  official: Decimal;
  /** By the place where the requests were found, which add up to the official amount; and of `rest`: what sessions used
   *  beyond the responses that their logs list. */
  readonly amounts: Map<string, Decimal>;
}

export function openHistoryTotals(): HistoryTotals {
  return { requests: 0, usage: new Map(), bases: new Map(), official: ZERO_DECIMAL, amounts: new Map() };
}

export function addCounted(totals: HistoryTotals, item: Counted): void {
  const { place, isRest, usage, official, basis } = item;
  totals.requests += isRest ? 0 : 1;
  for (const [kind, count] of Object.entries(usage))
    totals.usage.set(kind, (totals.usage.get(kind) ?? 0) + count);
  totals.bases.set(basis, (totals.bases.get(basis) ?? 0) + 1);
  if (official === null) return;
  totals.official = addDecimals(totals.official, official);
  for (const name of isRest ? [place, "rest"] : [place])
    totals.amounts.set(name, addDecimals(totals.amounts.get(name) ?? ZERO_DECIMAL, official));
}
