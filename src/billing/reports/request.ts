// One request, and the place of its line.

import type { z } from "zod";
import { getList, parseJson } from "../../lib/json/json.ts";
import { deriveAmounts, REPORTED } from "../charge.ts";
import { type Correction, correctionSchema, hashLine, type Line, lineSchema } from "../ledger/line.ts";
import { type FoundLine, readPlaces, type Table } from "../store/open.ts";
import { FACTOR, PER_1K } from "../tariff.ts";

/** Null: no line has this id. Throws if a line found is damaged. */
export function findRequest(table: Table, id: string) {
  const [row] = table.list(
    `SELECT line, place, corrections FROM requests WHERE id = $id
     UNION ALL SELECT line, place, NULL FROM unreadable WHERE id = $id ORDER BY line LIMIT 1`,
    { $id: id },
  );
  if (row === undefined) return null;
  const [line, place, more] = row;
  const places = [[line, place], ...getList(parseJson(String(more)))].map((each) => {
    const [number, at] = getList(each);
    return { line: Number(number), place: Number(at), values: [] };
  });
  const [own, ...corrections] = readPlaces(table, places);
  if (own === undefined) return null;
  return {
    own: { ...own, line: read(lineSchema, own) },
    corrections: corrections.map((each) => ({ ...each, line: read(correctionSchema, each) })),
  };
}

export type FoundRequest = NonNullable<ReturnType<typeof findRequest>>;

function read<T>(schema: z.ZodType<T>, { file, number, text }: FoundLine): T {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${file}:${number} is damaged: \`gateway ledger verify\` says what is wrong with it.`);
}

export function describeRequest({ own, corrections }: FoundRequest) {
  const { line } = own;
  return {
    file: own.file,
    line_number: own.number,
    sha256: hashLine(own.text),
    line,
    corrections: corrections.map((each) => each.line),
    passes: listPasses(corrections.at(-1)?.line ?? line, line.priced_as ?? line.model),
  };
}

export type RequestDocument = ReturnType<typeof describeRequest>;

export type Money = Omit<Correction, "v" | "prev" | "id" | "time" | "was" | "corrects" | "request_time"> &
  Pick<Partial<Line>, "at_least_usd" | "priced_as" | "provider_usd">;

export function listPasses({ parts = [], tier, usage, prices, price_source: source }: Money, model: string) {
  return parts.length === 0
    ? [{ pass: null, model, tier, ...priceUsage({ usage, prices }, source) }]
    : parts.map((part) => {
        return { pass: part.pass, model: part.model, tier: part.tier, ...priceUsage(part, source) };
      });
}

/** `usd` includes the factors, `price` does not. */
function priceUsage({ usage, prices }: Pick<Money, "usage" | "prices">, source: string | null) {
  const factors = Object.entries(prices ?? {}).filter(([name]) => name.startsWith(FACTOR));
  const amounts = Object.entries(usage).map(([kind, count]) => {
    const perCall = prices?.[kind + PER_1K];
    const isPriced = kind !== "reasoning" && count > 0 && prices !== null && source !== REPORTED;
    return {
      kind,
      count,
      per: perCall === undefined ? ("1,000,000 tokens" as const) : ("1,000 calls" as const),
      price: isPriced ? (perCall ?? prices[kind] ?? null) : null,
      usd: isPriced ? deriveAmounts({ usage: { [kind]: count }, prices, multiplier: "1" }).official : null,
    };
  });
  const named = factors.map(([name, value]) => [name.slice(FACTOR.length), value] as const);
  return { amounts, factors: Object.fromEntries(named) };
}
