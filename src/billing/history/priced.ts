// What the entries of logs cost by the price book, and their sums. The book and the one function of charges are those of
// the ledger. A log does not say who paid: amounts are what the usage costs with a key.

import { addDecimals, addUsd, type Decimal, parseUsd, ZERO_DECIMAL } from "../../lib/money.ts";
import { type Charge, computeCharge, multiplyUp } from "../charge.ts";
import { ANY_SELLER, type Overrides, type PriceBook, type Seller } from "../prices.ts";
import { MAKERS_OF } from "../prices/sellers.ts";
import { addTotals, openTotals, type Totals } from "../report/report.ts";
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

/** A provider of the book has its own prices. The names that users give to others say nothing. */
function findSeller({ tool, provider }: LogEntry, book: PriceBook): Seller {
  const known = sellers.get(`${tool} ${provider}`);
  if (known !== undefined) return known;
  const isBooked = provider !== null && book.providers.includes(provider);
  const seller = { ...ANY_SELLER, provider: isBooked ? provider : null, makers: MAKERS[tool] };
  sellers.set(`${tool} ${provider}`, seller);
  return seller;
}

export function priceEntry(entry: LogEntry, { book, overrides }: BookPrices): Charge {
  const { model, usage, parts, tariff, time, isRest } = entry;
  const whole: Part = { model: null, pass: "message", usage };
  return computeCharge({
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

export interface HistoryTotals extends Totals {
  /** What sessions used beyond the responses that their logs list: no request is counted for it. */
  rest: Decimal;
  /** By where the requests were found; their sum is the official amount. */
  onlyLogs: Decimal;
  onlyLedger: Decimal;
  both: Decimal;
}

export function openHistoryTotals(): HistoryTotals {
  const none = { rest: ZERO_DECIMAL, onlyLogs: ZERO_DECIMAL, onlyLedger: ZERO_DECIMAL, both: ZERO_DECIMAL };
  return { ...openTotals(), ...none };
}

const PLACES = ["onlyLogs", "onlyLedger", "both"] as const;

/** A request, or the rest of a session, with what it costs. */
export interface Counted {
  readonly place: (typeof PLACES)[number];
  readonly isRest: boolean;
  readonly usage: Usage;
  /** Null: it is not known. */
  readonly official: Decimal | null;
  readonly basis: string;
}

export function addCounted(totals: HistoryTotals, { place, isRest, usage, official, basis }: Counted): void {
  totals.requests += isRest ? 0 : 1;
  for (const [kind, tokens] of Object.entries(usage))
    totals.usage.set(kind, (totals.usage.get(kind) ?? 0) + tokens);
  totals.bases.set(basis, (totals.bases.get(basis) ?? 0) + 1);
  if (official === null) return;
  totals.official = addDecimals(totals.official, official);
  // Rows are sorted by it.
  totals.charge = addUsd(totals.charge, parseUsd(multiplyUp(official, "1")));
  totals[place] = addDecimals(totals[place], official);
  if (isRest) totals.rest = addDecimals(totals.rest, official);
}

export function addHistoryTotals(sum: HistoryTotals, more: HistoryTotals): void {
  addTotals(sum, more);
  for (const name of ["rest", ...PLACES] as const) sum[name] = addDecimals(sum[name], more[name]);
}
