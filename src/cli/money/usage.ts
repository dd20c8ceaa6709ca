// `gateway usage`: totals.

import type { Totals } from "../../billing/reports/sums.ts";
import { DIMENSIONS, type Names, reportUsage, sumSellers } from "../../billing/reports/usage.ts";
import { CALL_KINDS } from "../../config/call-kinds.ts";
import { countTokens, USAGE_KINDS } from "../../billing/usage.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { type Columns, drawRows, type ListColumn } from "../terminal/listing.ts";
import { refuseUsage } from "../terminal/terminal.ts";
import { formatAmount, formatCount } from "../terminal/text.ts";
import { type Query, type ReportFlags, type Shown, showReport, writeCsv } from "./show.ts";

export interface UsageFlags extends ReportFlags {
  readonly by: string;
}

export function showUsage(flags: UsageFlags): void {
  const by = readDimensions(flags.by, DIMENSIONS);
  showReport(flags, (query): Shown => {
    const { table, scope, clock } = query;
    const document = reportUsage(table, { by, ...scope, ...clock });
    const { rows, total } = document;
    const money: Columns<Totals & Names> = [
      ["OFFICIAL $", "official_usd", "usd", { spare: 2 }],
      ["CHARGED $", "charge_usd", "usd"],
      ...listPlanColumns([total]),
    ];
    return {
      document,
      csv: () => writeCsv(by, CSV, rows.map(flattenUsage)),
      parts: () => (rows.length === 0 ? [] : [drawTotals(by, { rows, total: nameTotal(by, total) }, money)]),
      notes: () => [
        rows.length === 0 && "No requests in this period.",
        ...(flags.csv === true || Object.keys(scope.only).length > 0 ? [] : describeSellers(query)),
        ...(flags.csv === true ? [] : describeGaps(total)),
      ],
    };
  });
}

export function readDimensions<T extends string>(text: string, known: readonly T[]): T[] {
  const names = text.split(",").map((name) => name.trim());
  const by = names.map(
    (name) =>
      known.find((dimension) => dimension === name) ??
      refuseUsage(`--by: there is no "${name}"${adviseOn(name, known)}. Known: ${known.join(", ")}.`),
  );
  if (by.length > 2 || new Set(by).size < by.length)
    refuseUsage("--by: expected one or two different words, such as key,model.");
  return by;
}

function adviseOn(name: string, known: readonly string[]): string {
  return name === "project" ? " without --history" : didYouMean(name, known);
}

export const KINDS = [...USAGE_KINDS, ...CALL_KINDS];

const PLAN_FIELDS = ["paid_by_plan_usd", "plan_overage_usd"] as const;
const CSV = [
  "requests",
  ...KINDS,
  ..."official_usd charge_usd unpriced unknown partial cache_hit_rate".split(" "),
  ...PLAN_FIELDS,
];

export function flattenUsage<Row extends Pick<Totals, "usage">>(row: Row): Row {
  const zeros = Object.fromEntries([...KINDS, ...PLAN_FIELDS].map((name) => [name, 0]));
  return { ...zeros, ...row.usage, ...row };
}

const CACHE_WRITE_KINDS = ["cache_write_5m", "cache_write_1h", "cache_write"];
const USUAL_KINDS = ["input", "cache_read", "output", "reasoning", ...CACHE_WRITE_KINDS];

const KIND_COLUMNS: ReadonlyArray<readonly [title: string, kinds: readonly string[], spare: number]> = [
  ["INPUT", ["input"], 5],
  ["CACHE READ", ["cache_read"], 6],
  ["CACHE WRITE", CACHE_WRITE_KINDS, 7],
  ["OUTPUT", ["output"], 3],
  ...KINDS.filter((kind) => !USUAL_KINDS.includes(kind)).map(
    (kind) => [kind.replaceAll("_", " ").toUpperCase(), [kind], 8] as const,
  ),
];

export type Summed = Pick<Totals, "requests" | "usage" | "cache_hit_rate" | "official_usd"> &
  Partial<Pick<Totals, "charge_usd">>;

export function drawTotals<N extends string, T extends Summed & Names<N>>(
  by: readonly N[],
  { rows, total }: { readonly rows: readonly T[]; readonly total: T },
  money: Columns<T>,
): string[] {
  const kinds = KIND_COLUMNS.filter(([, each]) => countTokens(total.usage, each) > 0);
  return drawRows<T>(
    [...rows, total],
    [
      ...listNameColumns(by),
      ["REQUESTS", "requests", "count", { spare: 1 }],
      ...kinds.map(([title, each, spare]): ListColumn<T> => {
        return [title, ({ usage }) => countTokens(usage, each), "count", { spare }];
      }),
      ["CACHED", "cache_hit_rate", "rate", { spare: 4 }],
      ...money,
    ],
  );
}

export function nameTotal<N extends string, T extends object>(by: readonly N[], total: T): T & Names<N> {
  const names: Partial<Record<N, string>> = {};
  for (const [index, name] of by.entries()) names[name] = index === 0 ? "total" : "";
  return { ...total, ...names };
}

type PlanAmounts = Partial<Pick<Totals, (typeof PLAN_FIELDS)[number]>>;

export function listPlanColumns(rows: readonly PlanAmounts[]): ListColumn<PlanAmounts>[] {
  const used = PLAN_FIELDS.filter((name) => rows.some((row) => row[name] !== undefined));
  return used.map((name) => {
    const title = name === "paid_by_plan_usd" ? "PAID BY PLAN $" : "PLAN OVERAGE $";
    return [title, (row) => row[name] ?? "0", "usd", { spare: 1 }];
  });
}

export function listNameColumns<N extends string>(by: readonly N[]): ListColumn<Names<N>>[] {
  return by.map((dimension) => {
    return [dimension.toUpperCase(), (row) => row[dimension] ?? `no ${dimension}`];
  });
}

function describeSellers({ table, scope }: Query<UsageFlags>): string[] {
  const { requests, named_usd: named, charge_usd: charged, differ } = sumSellers(table, scope);
  if (requests === 0) return [];
  const [sum, charge] = [named, charged].map((usd) => `$${formatAmount(usd)}`);
  const amounts = `Sellers named ${sum} for ${formatCount(requests, "request")}. Charged: ${charge}.`;
  return [`${amounts} Official amounts that are missing or differ: ${differ}.`];
}

const GIVE_PRICE =
  "`gateway prices set` sets one, and `gateway ledger reprice --since DAY` corrects the lines.";

function describeGaps({ unpriced, unknown, partial }: Totals): (string | false)[] {
  const [has, is] = unpriced === 1 ? ["has", "is"] : ["have", "are"];
  return [
    unpriced > 0 &&
      `${formatCount(unpriced, "request")} ${has} no price and ${is} not in the amounts. ${GIVE_PRICE}`,
    unknown > 0 && `The usage of ${formatCount(unknown, "request")} is not known and not in the amounts.`,
    describePartial(partial),
  ];
}

export function describePartial(partial: number): string | false {
  return partial > 0 && `${formatCount(partial, "request")} ended early. Part of the usage is estimated.`;
}
