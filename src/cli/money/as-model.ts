// `gateway usage --as MODEL`: what the same usage would have cost with another model.

import { ANY_SELLER, findPrice, listBookedModels } from "../../billing/prices.ts";
import { ALL_MAKERS } from "../../billing/prices/sellers.ts";
import { type AsModelReport, type Comparison, reportAsModel } from "../../billing/reports/as-model.ts";
import type { CurrentPrices } from "../../billing/reports/line-charge.ts";
import type { Dimension } from "../../billing/reports/usage.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { suggestNearest } from "../../config/nearest.ts";
import { openConfigUnless } from "../access/config.ts";
import { printRows } from "../terminal/listing.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";
import { readCurrentPrices } from "./in-use.ts";
import {
  listNameColumns,
  nameTotal,
  quote,
  readUsageQuery,
  reportUnreadable,
  type UsageFlags,
} from "./usage.ts";

export interface AsModelFlags extends UsageFlags {
  readonly as: string;
}

export function showAsModel(flags: AsModelFlags): void {
  const { as: model } = flags;
  if (model === "") refuseUsage("--as needs the name of a model.");
  const { by, period, only, clock, ...opened } = readUsageQuery(flags);
  using table = opened.table;
  // A ledger can be read without its config, at the prices of the book.
  const loaded = openConfigUnless(flags.ledger !== undefined, flags);
  const prices = readCurrentPrices(loaded);
  refuseUnknownModel(model, prices, loaded);
  const report = reportAsModel(table, { by, ...period, only, ...clock, model }, prices);
  if (flags.json === true) return printJson(report);
  if (flags.csv === true) printCsv(report, by);
  else if (report.rows.length === 0) printNote("No requests in this period.");
  else printComparison(report, by);
  printLeftOut(report);
  reportUnreadable(report);
}

function refuseUnknownModel(model: string, prices: CurrentPrices, loaded: LoadedConfig | null): void {
  const { book, overrides, sellerOf } = prices;
  const channels = [...(loaded?.catalog.channels.keys() ?? [])];
  const sellers = [ANY_SELLER, ...channels.flatMap((name) => sellerOf(name) ?? [])];
  const now = new Date();
  if (
    sellers.some((seller) => findPrice({ book, overrides, seller: { ...seller, free: false } }, model, now))
  )
    return;
  const known = [...overrides.keys(), ...listBookedModels(book, ALL_MAKERS).map(({ id }) => id)];
  fail(
    `--as: there is no price for "${model}"${suggestNearest(model, known)}. ` +
      `\`gateway prices show MODEL\` shows who sells a model, and \`prices:\` in the config can give it a price.`,
  );
}

const COLUMNS = [
  "requests",
  "compared",
  "partial",
  "official_usd",
  "charge_usd",
  "as_official_usd",
  "as_charge_usd",
  "difference_usd",
] as const satisfies readonly (keyof Comparison)[];

function printCsv({ rows }: AsModelReport, by: readonly Dimension[]): void {
  print([...by, ...COLUMNS].join(","));
  for (const row of rows)
    print([...by.map((name) => quote(row[name] ?? "")), ...COLUMNS.map((name) => row[name])].join(","));
}

function printComparison(
  { rows, total, price_sources: sources }: AsModelReport,
  by: readonly Dimension[],
): void {
  printRows<AsModelReport["rows"][number]>(
    [...rows, nameTotal(by, total)],
    [
      ...listNameColumns(by),
      ["REQUESTS", "requests", "count", { spare: 2 }],
      ["COMPARED", "compared", "count", { spare: 1 }],
      ["CHARGED $", "charge_usd", "usd"],
      ["WOULD COST $", "as_charge_usd", "usd"],
      ["DIFFERENCE $", "difference_usd", "usd"],
    ],
  );
  if (sources.length > 0) printNote(`Prices: ${sources.join("; ")}.`);
  if (total.partial > 0)
    printNote(`${formatCount(total.partial, "request")} ended early. Part of the usage is estimated.`);
}

/** A person reads a few. --json has them all. */
const MAX_SHOWN = 10;

function printLeftOut({ not_compared: leftOut }: AsModelReport): void {
  for (const { model, because, requests, charge_usd: charge } of leftOut.slice(0, MAX_SHOWN)) {
    const name = model === "" ? "without a model" : `for ${model}`;
    const paid = charge === "0" ? "" : `, charged $${charge}`;
    printNote(`Not compared: ${formatCount(requests, "request")} ${name}${paid}: ${because}.`);
  }
  const more = leftOut.length - MAX_SHOWN;
  if (more > 0) printNote(`${formatCount(more, "more reason")} in --json.`);
}
