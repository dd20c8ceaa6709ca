// `gateway usage --as MODEL`, `--without-cache` and `--tier T`: what the same usage would have cost.

import { ANY_SELLER, findPrice, listBookedModels } from "../../../billing/prices.ts";
import { ALL_MAKERS } from "../../../billing/prices/sellers.ts";
import { dropCache } from "../../../billing/miss.ts";
import type { Change, CurrentPrices } from "../../../billing/report/line-charge.ts";
import {
  type Comparison,
  compareLedger,
  describeComparison,
  type LeftOut,
  openComparison,
  type WhatIfReport,
} from "../../../billing/report/what-if.ts";
import type { ReportRow } from "../../../billing/report/report.ts";
import type { LoadedConfig } from "../../../config/file/load.ts";
import { suggestNearest } from "../../../config/nearest.ts";
import { formatUsd, subtractUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import { openConfigUnless } from "../../access/config.ts";
import { number, printTable } from "../../terminal/table.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../../terminal/terminal.ts";
import { formatAmount, formatCount } from "../../terminal/text.ts";
import { readCurrentPrices } from "../prices/in-use.ts";
import {
  addEmptySpans,
  addTotalRow,
  describeNames,
  describeQuery,
  listNameColumns,
  quote,
  readUsageQuery,
  reportUnreadable,
  type UsageFlags,
  type UsageQuery,
} from "./usage.ts";

export interface WhatIfFlags extends UsageFlags {
  readonly as?: string;
  readonly withoutCache?: true;
  readonly tier?: string;
}

export function showWhatIf(flags: WhatIfFlags): void {
  const query = readUsageQuery(flags);
  const change = readChange(flags);
  // A ledger can be read without its config, at the prices of the book.
  const loaded = openConfigUnless(flags.ledger !== undefined, flags);
  const prices = readCurrentPrices(loaded);
  if (change.model !== null) refuseUnknownModel(change.model, prices, loaded);
  const { path, by, period, only, clock } = query;
  const compared = compareLedger(path, { by, ...period, only, zone: clock.zone }, { ...prices, change });
  const report = { ...compared, rows: addEmptySpans(compared.rows, query, openComparison) };
  if (flags.json === true) {
    printComparisonJson(report, query, change);
    return;
  }
  if (flags.csv === true) printCsv(report, query);
  else if (compared.rows.length === 0) printNote("No requests in this period.");
  else printComparison(report, query);
  for (const note of describeLeftOut(report, change)) printNote(note);
  reportUnreadable(report);
}

function readChange({ as: model, withoutCache, tier }: WhatIfFlags): Change {
  if (model === "" || tier === "") refuseUsage("--as and --tier need a name.");
  return { model: model ?? null, recount: withoutCache === true ? dropCache : null, tier: tier ?? null };
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

function printComparisonJson(report: WhatIfReport, query: UsageQuery, change: Change): void {
  const { rows, total, leftOut, priceSources, unreadable } = report;
  const { model, recount, tier } = change;
  printJson({
    ...describeQuery(query),
    as: { model, without_cache: recount !== null, tier },
    rows: rows.map(({ names, totals }) => ({
      ...describeNames(query.by, names),
      ...describeComparison(totals),
    })),
    total: describeComparison(total),
    price_sources: priceSources,
    not_compared: leftOut.map((each) => ({
      model: each.model,
      because: each.because,
      requests: each.requests,
      charge_usd: formatUsd(each.charge),
    })),
    unreadable,
  });
}

function printCsv({ rows }: WhatIfReport, { by }: UsageQuery): void {
  print([...by, ...Object.keys(describeComparison(openComparison()))].join(","));
  for (const { names, totals } of rows)
    print([...names.map(quote), ...Object.values(describeComparison(totals))].join(","));
}

function printComparison({ rows, total, priceSources }: WhatIfReport, { by }: UsageQuery): void {
  const usd = (read: (totals: Comparison) => Usd) => (row: ReportRow<Comparison>) =>
    formatAmount(formatUsd(read(row.totals)));
  printTable(addTotalRow(rows, total), [
    ...listNameColumns<Comparison>(by),
    number("REQUESTS", ({ totals }) => totals.requests.toLocaleString("en-US"), 2),
    number("COMPARED", ({ totals }) => totals.compared.toLocaleString("en-US"), 1),
    number(
      "CHARGED $",
      usd(({ charge }) => charge),
    ),
    number(
      "WOULD COST $",
      usd(({ asCharge }) => asCharge),
    ),
    number(
      "DIFFERENCE $",
      usd(({ charge, asCharge }) => subtractUsd(asCharge, charge)),
    ),
  ]);
  if (priceSources.length > 0) printNote(`Prices: ${priceSources.join("; ")}.`);
  if (total.partial > 0)
    printNote(`${formatCount(total.partial, "request")} ended early. Part of the usage is estimated.`);
}

/** A person reads a few. --json has them all. */
const MAX_SHOWN = 10;

function describeLeftOut({ leftOut }: WhatIfReport, change: Change): string[] {
  const shown = leftOut.slice(0, MAX_SHOWN).map(({ model, because, requests, charge }) => {
    const name = model === "" ? "without a model" : `for ${model}`;
    const paid = charge > ZERO_USD ? `, charged $${formatUsd(charge)}` : "";
    return `Not compared: ${formatCount(requests, "request")} ${name}${paid}: ${because}.`;
  });
  const more = leftOut.length - shown.length;
  if (more > 0) shown.push(`${formatCount(more, "more reason")} in --json.`);
  return [...shown, ...adviseOn(leftOut, change)];
}

function adviseOn(leftOut: readonly LeftOut[], { recount, tier }: Change): string[] {
  const has = (word: RegExp): boolean => leftOut.some(({ because }) => word.test(because));
  return [
    ...(recount === null && has(/no price for .*cache_/)
      ? ["With --without-cache, cached tokens count as plain input."]
      : []),
    ...(tier === null && has(/no price for (?:service_tier|speed|traffic_type)=/)
      ? ["With --tier standard, all requests count at the standard price."]
      : []),
  ];
}
