// One request in plain words, and the place of its line.

import type { z } from "zod";
import { getList, parseJson } from "../../lib/json/json.ts";
import { deriveAmounts, multiplyExactly, REPORTED } from "../charge.ts";
import { type Correction, correctionSchema, hashLine, type Line, lineSchema } from "../ledger/line.ts";
import { type FoundLine, readPlaces, type Table } from "../store/open.ts";
import { FACTOR, PER_1K } from "../tariff.ts";
import { BASES, OUTCOMES, PAYERS } from "./words.ts";

/** Null: no line has this id. Throws if one is damaged. */
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

type FoundRequest = NonNullable<ReturnType<typeof findRequest>>;

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

type Money = Omit<Correction, "v" | "prev" | "id" | "time" | "was" | "corrects" | "request_time"> &
  Pick<Partial<Line>, "at_least_usd" | "priced_as" | "provider_usd">;

/** Each model's usage. `pass`: null if the request has only one. */
function listPasses({ parts = [], tier, usage, prices, price_source: source }: Money, model: string) {
  return parts.length === 0
    ? [{ pass: null, model, tier, ...priceUsage({ usage, prices }, source) }]
    : parts.map((part) => {
        return { pass: part.pass, model: part.model, tier: part.tier, ...priceUsage(part, source) };
      });
}

/** `price`: for 1,000 calls or a million tokens, before the factors.
 *  `usd`: after the factors. */
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

export function explainRequest({ own, corrections }: FoundRequest): string[] {
  const { line, file, number, text } = own;
  return [
    ...explainRoute(line),
    "",
    ...explainMoney(line),
    "",
    "Attempts",
    ...line.attempts.map(({ channel, status, error }, index) => {
      const how = error ?? (status === undefined ? "no answer" : `status ${status}`);
      return `  ${index + 1}. ${channel}: ${how}`;
    }),
    "",
    ...corrections.flatMap((correction) => {
      const { id, time, was } = correction.line;
      const before = was.charge_usd === null ? "not known" : `$${was.charge_usd}`;
      const place = `${id}, ${correction.file}, line ${correction.number}`;
      return [
        `Corrected at ${time}: ${place}; the charge was ${before}`,
        ...explainMoney(correction.line).map((each) => `  ${each}`),
        "",
      ];
    }),
    "Place",
    `  ${file}, line ${number}`,
    `  sha256 ${hashLine(text)}`,
    `  after  ${line.prev}`,
  ];
}

function explainRoute(line: Line): string[] {
  const { upstream_model: answered, first_byte_ms: first, duration_ms: duration, status, suspect } = line;
  const facts = [
    OUTCOMES[line.outcome],
    ...(status === null ? [] : [`status ${status}`]),
    ...(first === null ? [] : [`first byte after ${first} ms`]),
    ...(duration === null ? [] : [`finished after ${duration} ms`]),
  ];
  const as = answered === null || answered === line.model ? "" : `, answered as ${answered}`;
  return [
    `Request ${line.id}`,
    `  ${line.time}, key ${line.key}, group ${line.group} (${line.platform}), channel ${line.channel}`,
    `  ${line.endpoint}, model ${line.model}${as}${line.stream ? ", streamed" : ""}`,
    `  ${facts.join(", ")}`,
    `  ${BASES[line.basis]}`,
    ...(suspect === undefined ? [] : [`  suspect: ${suspect}`]),
  ];
}

function explainMoney(money: Money): string[] {
  const { price_source: source, priced_as: as, tier } = money;
  const passes = listPasses(money, "");
  const usage = passes.flatMap(({ pass, model, tier: own, amounts, factors }) => {
    const all = Object.entries(factors).map(([name, value]) => ` × ${value} (${name})`);
    const head = pass === null ? [] : [`  ${pass} by ${model}, tier ${own ?? "unknown"}`];
    return [...head, ...amounts.map((each) => explainUsage(each, source, all.join("")))];
  });
  const charge = explainCharge(money);
  if (source === REPORTED) return ["Usage, of which the seller has named the price", ...usage, ...charge];
  const requested = as === undefined ? "" : ` for ${as}, which was requested`;
  const how = source === null ? "" : ` (prices: ${source}${requested}; tier: ${tier ?? "unknown"})`;
  return [`Usage × price${how}`, ...(usage.length > 0 ? usage : ["  nothing"]), ...charge];
}

function explainUsage(
  amount: RequestDocument["passes"][number]["amounts"][number],
  source: string | null,
  factors: string,
): string {
  const { kind, count, per, price, usd } = amount;
  const label = `  ${kind.padEnd(18)} ${count.toLocaleString("en-US").padStart(12)}`;
  if (kind === "reasoning") return `${label} tokens, part of the output and not charged again`;
  if (count === 0 || source === REPORTED) return label;
  if (usd === null) return `${label}, no price`;
  const [total = "", unit = ""] = per.split(" ");
  return `${label} ${unit} × $${price} / ${total}${unit === "tokens" ? factors : ""} = $${usd}`;
}

function explainCharge(money: Money): string[] {
  const { official_usd: official, multiplier, charge_usd: charge, paid_by: payer } = money;
  const { at_least_usd: least, provider_usd: named } = money;
  const own = named === undefined ? [] : [`  the seller's own amount = $${named}`];
  if (official === null || charge === null) {
    const more = least === undefined ? "" : `; at least $${least}, for all that has a price`;
    const sentence = `  charge: not known; no sum includes it${more}`;
    return ["  official amount: not known", ...own, sentence];
  }
  const exact = multiplyExactly(official, multiplier);
  const rounding = exact === charge ? "not rounded" : `rounded once, half away from zero, from $${exact}`;
  return [
    `  official amount = $${official}`,
    ...own,
    `  charge = $${official} × ${multiplier} (the group's multiplier) = $${charge}, ${rounding}`,
    ...(payer === undefined ? [] : [`  ${PAYERS[payer]}: limits in USD count the official amount`]),
  ];
}
