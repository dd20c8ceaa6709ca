// `gateway usage --as`: the cost with another model.

import { ANY_SELLER, findPrice, listBookedModels } from "../../billing/prices.ts";
import { ALL_MAKERS } from "../../billing/prices/sellers.ts";
import { reportAsModel } from "../../billing/reports/as-model.ts";
import { DIMENSIONS } from "../../billing/reports/usage.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { drawRows } from "../terminal/listing.ts";
import { fail, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";
import { readCurrentPrices } from "./in-use.ts";
import { type Query, type Shown, showReport, writeCsv } from "./show.ts";
import { describePartial, listNameColumns, nameTotal, readDimensions, type UsageFlags } from "./usage.ts";

export interface AsModelFlags extends UsageFlags {
  readonly as: string;
}

const AMOUNTS = ["official_usd", "charge_usd", "as_official_usd", "as_charge_usd", "difference_usd"];

export function showAsModel(flags: AsModelFlags): void {
  if (flags.as === "") refuseUsage("--as needs the name of a model.");
  const by = readDimensions(flags.by, DIMENSIONS);
  showReport(flags, (query): Shown => {
    const { table, scope, clock, loaded } = query;
    const prices = readCurrentPrices(loaded);
    refuseUnknownModel(query, prices);
    const document = reportAsModel(table, { by, ...scope, ...clock, model: flags.as }, prices);
    const { rows, total, price_sources: sources, not_compared: leftOut } = document;
    return {
      document,
      csv: () => writeCsv(by, ["requests", "compared", "partial", ...AMOUNTS], rows),
      parts: () => [
        drawRows<(typeof rows)[number]>(rows.length === 0 ? [] : [...rows, nameTotal(by, total)], [
          ...listNameColumns(by),
          ["REQUESTS", "requests", "count", { spare: 2 }],
          ["COMPARED", "compared", "count", { spare: 1 }],
          ["CHARGED $", "charge_usd", "usd"],
          ["WOULD COST $", "as_charge_usd", "usd"],
          ["DIFFERENCE $", "difference_usd", "usd"],
        ]),
      ],
      notes: () => [
        rows.length === 0 && "No requests in this period.",
        sources.length > 0 && `Prices: ${sources.join("; ")}.`,
        describePartial(total.partial),
        ...leftOut.map(({ model, because, requests, charge_usd: charge }) => {
          const whose = model === "" ? "without a model" : `for ${model}`;
          const paid = charge === "0" ? "" : `, charged $${charge}`;
          return `Not compared: ${formatCount(requests, "request")} ${whose}${paid}: ${because}.`;
        }),
      ],
    };
  });
}

function refuseUnknownModel(
  { flags: { as: model }, loaded }: Query<AsModelFlags>,
  { book, overrides, sellerOf }: ReturnType<typeof readCurrentPrices>,
): void {
  const channels = [...(loaded?.catalog.channels.keys() ?? [])];
  const sellers = [ANY_SELLER, ...channels.flatMap((name) => sellerOf(name) ?? [])];
  const isSold = sellers.some((seller) =>
    findPrice(
      {
        book,
        overrides,
        seller: { ...seller, free: false },
      },
      model,
      new Date(),
    ),
  );
  if (isSold) return;
  const known = [...overrides.keys(), ...listBookedModels(book, ALL_MAKERS).map(({ id }) => id)];
  fail(`--as: there is no price for "${model}"${didYouMean(model, known)}.`);
}
