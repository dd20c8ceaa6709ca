// One request of the ledger in plain words: what was used, what it cost and why,
// where it was sent, and where its line is.

import type { z } from "zod";
import { getList, parseJson } from "../../lib/json/json.ts";
import { deriveAmounts, multiplyExactly, REPORTED } from "../charge.ts";
import { type Correction, correctionSchema, hashLine, type Line, lineSchema } from "../ledger/line.ts";
import { type FoundLine, readPlaces } from "../store/lines.ts";
import type { Table } from "../store/open.ts";
import { FACTOR, PER_1K } from "../tariff.ts";
import { BASES, OUTCOMES, PAYERS } from "./words.ts";

interface ReadLine<T> extends FoundLine {
  readonly line: T;
}

export interface FoundRequest {
  readonly own: ReadLine<Line>;
  readonly corrections: readonly ReadLine<Correction>[];
}

/** Null if no line has this id. Throws if a line with this id is damaged. */
export function findRequest(table: Table, id: string): FoundRequest | null {
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

function read<T>(schema: z.ZodType<T>, { file, number, text }: FoundLine): T {
  const parsed = schema.safeParse(parseJson(text));
  if (parsed.success) return parsed.data;
  throw new Error(`${file}:${number} is damaged: \`gateway ledger verify\` says what is wrong with it.`);
}

const ID_PREFIX = "req_";
const MAX_FOUND = 11;

/** The ids that begin with `start`, which may lack `req_`, a few at most. An id that equals it is the only one. */
export function findRequestIds(table: Table, start: string): string[] {
  const starts = [start, ID_PREFIX + start];
  const select = (from: string): string =>
    ["$a", "$b"]
      .map((each) => `SELECT id, line FROM ${from} WHERE id >= ${each} AND id < ${each} || char(1114111)`)
      .join(" UNION ");
  const found = table.list(
    `SELECT id FROM (${select("requests")} UNION ${select("unreadable")}) GROUP BY id
     ORDER BY id NOT IN ($a, $b), MIN(line) LIMIT ${MAX_FOUND}`,
    { $a: starts[0] ?? "", $b: starts[1] ?? "" },
  );
  const ids = found.map(([id]) => String(id));
  return starts.includes(ids[0] ?? "") ? ids.slice(0, 1) : ids;
}

/** Of the key, if one is given. Null if there is no such request. */
export function findLastRequestId(table: Table, key: string | null): string | null {
  const where = key === null ? "" : "WHERE key = $key";
  const [[id] = []] = table.list(
    `SELECT id FROM requests ${where} ORDER BY line DESC LIMIT 1`,
    key === null ? {} : { $key: key },
  );
  return typeof id === "string" ? id : null;
}

/** What `gateway ledger show --json` prints, and the page shows. */
export interface RequestDocument {
  readonly file: string;
  readonly line_number: number;
  readonly sha256: string;
  readonly line: Line;
  readonly corrections: readonly Correction[];
  /** What the last correction has, or the line itself. */
  readonly passes: readonly Pass[];
}

/** What one model has used. `pass` is null where a request has only one. */
export interface Pass {
  readonly pass: string | null;
  readonly model: string;
  readonly tier: string | null;
  readonly amounts: readonly PricedUsage[];
  readonly factors: Readonly<Record<string, string>>;
}

/** `price` is for 1,000 calls or for a million tokens, before the factors; `usd` is after them. */
interface PricedUsage {
  readonly kind: string;
  readonly count: number;
  readonly per: "1,000 calls" | "1,000,000 tokens";
  readonly price: string | null;
  readonly usd: string | null;
}

export function describeRequest({ own, corrections }: FoundRequest): RequestDocument {
  const valid: Money = corrections.at(-1)?.line ?? own.line;
  const passes = valid.parts ?? [];
  return {
    file: own.file,
    line_number: own.number,
    sha256: hashLine(own.text),
    line: own.line,
    corrections: corrections.map(({ line }) => line),
    passes:
      passes.length === 0
        ? [
            {
              pass: null,
              model: own.line.priced_as ?? own.line.model,
              tier: valid.tier,
              ...priceUsage(valid),
            },
          ]
        : passes.map((part) => ({
            pass: part.pass,
            model: part.model,
            tier: part.tier,
            ...priceUsage(part),
          })),
  };
}

function priceUsage({ usage, prices, price_source: source }: UsageParts): Pick<Pass, "amounts" | "factors"> {
  const factors = Object.entries(prices ?? {}).flatMap(([name, value]) =>
    name.startsWith(FACTOR) ? [[name.slice(FACTOR.length), value] as const] : [],
  );
  const amounts = Object.entries(usage).map(([kind, count]): PricedUsage => {
    const perCall = prices?.[kind + PER_1K];
    const isPriced = kind !== "reasoning" && count > 0 && prices !== null && source !== REPORTED;
    return {
      kind,
      count,
      per: perCall === undefined ? "1,000,000 tokens" : "1,000 calls",
      price: isPriced ? (perCall ?? prices[kind] ?? null) : null,
      usd: isPriced ? deriveAmounts({ usage: { [kind]: count }, prices, multiplier: "1" }).official : null,
    };
  });
  return { amounts, factors: Object.fromEntries(factors) };
}

type UsageParts = Pick<Money, "usage" | "prices"> & { readonly price_source?: string | null };

/** Lines of text, in sections with an empty line between them. */
export function explainRequest({ own, corrections }: FoundRequest): string[] {
  const { line } = own;
  return [
    ...explainRoute(line),
    "",
    ...explainMoney(line),
    "",
    "Attempts",
    ...line.attempts.map(
      ({ channel, status, error }, index) =>
        `  ${index + 1}. ${channel}: ${error ?? (status === undefined ? "no answer" : `status ${status}`)}`,
    ),
    "",
    ...corrections.flatMap((correction) => [...explainCorrection(correction), ""]),
    "Place",
    `  ${own.file}, line ${own.number}`,
    `  sha256 ${hashLine(own.text)}`,
    `  after  ${line.prev}`,
  ];
}

function explainRoute(line: Line): string[] {
  const answered =
    line.upstream_model === null || line.upstream_model === line.model
      ? ""
      : `, answered as ${line.upstream_model}`;
  const first = line.first_byte_ms === null ? "" : `, first byte after ${line.first_byte_ms} ms`;
  const done = line.duration_ms === null ? "" : `, finished after ${line.duration_ms} ms`;
  return [
    `Request ${line.id}`,
    `  ${line.time}, key ${line.key}, group ${line.group} (${line.platform}), channel ${line.channel}`,
    `  ${line.endpoint}, model ${line.model}${answered}${line.stream ? ", streamed" : ""}`,
    `  ${OUTCOMES[line.outcome]}${line.status === null ? "" : `, status ${line.status}`}${first}${done}`,
    `  ${BASES[line.basis]}`,
    ...(line.suspect === undefined ? [] : [`  suspect: ${line.suspect}`]),
  ];
}

type Money = Pick<
  Correction,
  | "usage"
  | "parts"
  | "prices"
  | "price_source"
  | "tier"
  | "official_usd"
  | "multiplier"
  | "charge_usd"
  | "paid_by"
> &
  Pick<Partial<Line>, "at_least_usd" | "priced_as" | "provider_usd">;

function explainMoney(line: Money): string[] {
  const parts = line.parts ?? [];
  const usage =
    parts.length > 0
      ? parts.flatMap((part) => [
          `  ${part.pass} by ${part.model}, tier ${part.tier ?? "unknown"}`,
          ...explainUsage({ ...part, price_source: line.price_source }),
        ])
      : explainUsage(line);
  if (line.price_source === REPORTED)
    return ["Usage, of which the seller has named the price", ...usage, ...explainCharge(line)];
  const as = line.priced_as === undefined ? "" : ` for ${line.priced_as}, which was requested`;
  const source =
    line.price_source === null ? "" : ` (prices: ${line.price_source}${as}; tier: ${line.tier ?? "unknown"})`;
  return [`Usage × price${source}`, ...(usage.length > 0 ? usage : ["  nothing"]), ...explainCharge(line)];
}

function explainUsage(money: UsageParts): string[] {
  const { amounts, factors } = priceUsage(money);
  const factor = Object.entries(factors)
    .map(([name, value]) => ` × ${value} (${name})`)
    .join("");
  return amounts.map(({ kind, count, per, price, usd }) => {
    const label = `  ${kind.padEnd(18)} ${count.toLocaleString("en-US").padStart(12)}`;
    if (kind === "reasoning") return `${label} tokens, part of the output and not charged again`;
    if (count === 0 || money.price_source === REPORTED) return label;
    if (usd === null) return `${label}, no price`;
    const [total = "", unit = ""] = per.split(" ");
    return unit === "calls"
      ? `${label} calls × $${price} / ${total} = $${usd}`
      : `${label} tokens × $${price} / ${total}${factor} = $${usd}`;
  });
}

function explainLeast(least: string | undefined): string {
  return least === undefined ? "" : `; at least $${least}, for all that has a price`;
}

function explainCharge(line: Money): string[] {
  const {
    official_usd: official,
    multiplier,
    charge_usd: charge,
    at_least_usd: least,
    paid_by: payer,
    provider_usd: named,
  } = line;
  const own = named === undefined ? [] : [`  the seller's own amount = $${named}`];
  if (official === null || charge === null)
    return [
      "  official amount: not known",
      ...own,
      `  charge: not known; no sum includes it${explainLeast(least)}`,
    ];
  const exact = multiplyExactly(official, multiplier);
  const rounding = exact === charge ? "exact" : `rounded once, half away from zero, from $${exact}`;
  return [
    `  official amount = $${official}`,
    ...own,
    `  charge = $${official} × ${multiplier} (the group's multiplier) = $${charge}, ${rounding}`,
    ...(payer === undefined ? [] : [`  ${PAYERS[payer]}: limits in USD count the official amount`]),
  ];
}

function explainCorrection({ file, number, line }: ReadLine<Correction>): string[] {
  const before = line.was.charge_usd === null ? "not known" : `$${line.was.charge_usd}`;
  return [
    `Corrected at ${line.time}: ${line.id}, ${file}, line ${number}; the charge was ${before}`,
    ...explainMoney(line).map((text) => `  ${text}`),
  ];
}
