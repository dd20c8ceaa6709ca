// `gateway prices show`, `check` and `set`.

import { findModel, type FoundPrice, loadBook, type PriceBook, sellerOf } from "../../billing/prices.ts";
import type { Period, Rates } from "../../billing/prices/book.ts";
import { hasPrice, listInUse } from "./in-use.ts";
import { ANY_SELLER } from "../../billing/prices/sellers.ts";
import { listSeenModels } from "../../billing/reports/requests.ts";
import type { Channel } from "../../config/catalog.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { resolveModel } from "../../gateway/intake/match.ts";
import { type LedgerFlags, locateLedger, openTable } from "../access/ledger-place.ts";
import { type ConfigFlags, openConfig, openConfigUnless } from "../access/config.ts";
import { planChanges, readChanges } from "../access/settings.ts";
import { fail, printJson, printNote, printWrapped } from "../terminal/terminal.ts";

export interface ShowPricesFlags extends ConfigFlags {
  readonly provider?: string;
  readonly json?: true;
}

export function showPrices(model: string, flags: ShowPricesFlags): void {
  const loaded = openConfigUnless(true, flags);
  const book = loadBook(loaded?.path ?? null);
  const providers = chooseProviders(flags, book);
  const channels = [...(loaded?.catalog.channels.values() ?? [])];
  const sold = listSold(model, book, providers, channels);
  const configured = loaded?.catalog.prices.get(model) ?? null;
  if (sold.length === 0 && configured === null)
    fail(`No provider in ${book.label} has a price for "${model}". \`gateway prices set\` gives it one.`);
  if (flags.json === true) printJson(describeForScripts(model, { book, sold, configured }));
  else report({ book, sold, configured });
}

function chooseProviders({ provider }: ShowPricesFlags, book: PriceBook): readonly string[] {
  if (provider === undefined) return book.providers;
  if (book.providers.includes(provider)) return [provider];
  return fail(`The price book has no provider "${provider}"${didYouMean(provider, book.providers)}.`);
}

function listSold(
  model: string,
  book: PriceBook,
  providers: readonly string[],
  channels: readonly Channel[],
): readonly { readonly found: FoundPrice; readonly channels: readonly string[] }[] {
  const paid = channels.flatMap((channel) => {
    const upstream = resolveModel(channel, model);
    const seller = sellerOf(channel);
    const found = upstream === undefined || seller.free ? null : findModel(book, seller, upstream);
    return found === null ? [] : [{ name: channel.name, model: found.model }];
  });
  return providers.flatMap((provider) => {
    const found = findModel(book, { ...ANY_SELLER, provider }, model);
    // Some providers sell at the prices of another one.
    if (found === null || found.model.provider !== provider) return [];
    const own = paid.filter((each) => each.model === found.model).map(({ name }) => name);
    return [{ found, channels: own }];
  });
}

interface PriceSources {
  readonly book: PriceBook;
  readonly sold: ReturnType<typeof listSold>;
  readonly configured: Rates | null;
}

function describeForScripts(
  model: string,
  { book, sold, configured }: PriceSources,
): Record<string, unknown> {
  return {
    model,
    book: book.label,
    date: book.date,
    config: configured,
    providers: sold.map(({ found: { model: booked }, channels }) => ({
      provider: booked.provider,
      ids: booked.ids,
      source: booked.source ?? book.head.source,
      channels,
      periods: booked.periods.map(({ from, until, hours, workdays, rates, tiers, factors }) => ({
        from: toIso(from),
        until: toIso(until),
        hours_utc: hours ?? null,
        workdays: workdays ?? null,
        rates,
        tiers: tiers ?? [],
        factors: factors ?? {},
      })),
    })),
  };
}

function toIso(moment: string | undefined): string | null {
  return moment === undefined ? null : new Date(moment).toISOString();
}

function report({ book, sold, configured }: PriceSources): void {
  printWrapped(`${book.label}: USD per million tokens, or per thousand calls (…_per_1k)`);
  if (configured !== null)
    for (const line of [
      "config",
      `  always: ${formatRates(configured)}`,
      "  source: `prices:` in the config, which overrides the book",
    ])
      printWrapped(line);
  for (const { found, channels } of sold) {
    const { provider, ids, periods, source } = found.model;
    const used = channels.length > 0 ? `  (channels: ${channels.join(", ")})` : "";
    printWrapped(`${provider}  ${ids.join(", ")}${used}`);
    for (const period of periods.filter(({ until }) => !(Date.parse(until ?? "") <= Date.now())))
      for (const line of describePeriod(period)) printWrapped(`  ${line}`);
    if (periods.length > 1) printWrapped("  If several apply, the last one counts");
    printWrapped(`  source: ${source ?? book.head.source}`);
  }
}

function describePeriod({ rates, tiers = [], factors = {}, ...time }: Period): string[] {
  const served = Object.entries(factors).map(([name, factor]) => `${name} ×${factor}`);
  return [
    `${describeTime(time)}: ${formatRates(rates)}`,
    ...tiers.map(
      (tier) => `  prompts over ${tier.over.toLocaleString("en-US")} tokens: ${formatRates(tier.rates)}`,
    ),
    ...(served.length === 0 ? [] : [`  ${served.join(", ")}`]),
  ];
}

function describeTime({ from, until, hours = [], workdays }: Omit<Period, "rates">): string {
  const start = from === undefined ? "always" : `from ${formatMoment(from)}`;
  const end = until === undefined ? "" : ` until ${formatMoment(until)}`;
  const spans = hours.map(([first, last]) => `${first} to ${last}`);
  const when = spans.length === 0 ? "" : `, ${spans.join(" and ")} UTC`;
  return `${start}${end}${when}${workdays === undefined ? "" : `, on workdays of ${workdays}`}`;
}

function formatMoment(moment: string): string {
  const text = new Date(moment).toISOString();
  return text.slice(0, 10) + (text.includes("T00:00") ? "" : ` ${text.slice(11, 16)}`);
}

function formatRates(rates: Rates): string {
  return Object.entries(rates)
    .map(([kind, rate]) => `${kind} ${rate}`)
    .join(", ");
}

export function checkPrices(flags: LedgerFlags) {
  const { catalog, path } = openConfig(flags);
  const book = loadBook(path);
  using table = openTable(locateLedger(flags), flags);
  const all = listInUse(catalog, listSeenModels(table));
  const lacking = all.filter((each) => !hasPrice(catalog, book, each));
  const rows = lacking.map(({ channel, model, requests }) => ({ channel, model, requests }));
  const note =
    `These have no price in ${book.label}. \`gateway prices set\` gives them one. ` +
    "Or set `price_provider:` or `free: true` for the channel.";
  const empty = `All models in use have a price (${all.length} of ${all.length}, ${book.label}).`;
  return {
    rows,
    empty,
    notes: [note],
    exitStatus: rows.length > 0 ? 1 : 0,
  };
}

export async function setPrices(model: string, words: readonly string[], flags: ConfigFlags): Promise<void> {
  const changes = readChanges(words, "prices");
  const catalog = await openConfig(flags).edit(() => planChanges(["prices", model], changes));
  const prices = Object.entries(catalog.prices.get(model) ?? {});
  const shown = prices.map(([kind, usd]) => `${kind} $${usd}`).join(", ");
  printNote(
    shown === ""
      ? `The config has no prices for "${model}". Those of the price book apply.`
      : `In the config, "${model}" costs ${shown} from now on.`,
  );
}
