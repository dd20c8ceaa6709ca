// Usage and costs as the consoles and the APIs of Anthropic and OpenAI export them: sums by time and model, in CSV or JSON.
// Ours are summed over the same times and models.
// https://platform.claude.com/docs/en/build-with-claude/usage-cost-api, https://platform.openai.com/docs/api-reference/usage

import { getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { type Decimal, parseNumber, ZERO_DECIMAL } from "../../lib/money.ts";
import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import { addUsage, isSameModel } from "./join.ts";
import type { OurLine } from "./our-lines.ts";
import { conclude, isNear, type Reconciliation, sumUsd } from "./reconcile.ts";

/** Empty or absent: it says nothing. */
type Fields = Readonly<Record<string, string | undefined>>;

interface Vendor {
  /** The kinds of ours that a count of theirs has, by its name. */
  readonly counts: Readonly<Record<string, readonly string[]>>;
  /** An amount in USD, and by how many places it is smaller. */
  readonly amounts: Readonly<Record<string, number>>;
}

const ANTHROPIC: Vendor = {
  counts: {
    usage_input_tokens_no_cache: ["input"],
    uncached_input_tokens: ["input"],
    usage_input_tokens_cache_read: ["cache_read"],
    cache_read_input_tokens: ["cache_read"],
    usage_input_tokens_cache_write_5m: ["cache_write_5m"],
    ephemeral_5m_input_tokens: ["cache_write_5m"],
    usage_input_tokens_cache_write_1h: ["cache_write_1h"],
    ephemeral_1h_input_tokens: ["cache_write_1h"],
    usage_output_tokens: ["output"],
    output_tokens: ["output"],
  },
  // The API names cents.
  amounts: { cost_usd: 0, amount: 2 },
};
const OPENAI: Vendor = {
  counts: { input_tokens: PROMPT_KINDS, input_cached_tokens: CACHE_READ_KINDS, output_tokens: OUTPUT_KINDS },
  amounts: { amount_value: 0, value: 0 },
};

interface Row {
  readonly from: number;
  readonly until: number;
  /** Null: of all models. */
  readonly model: string | null;
  readonly fields: Fields;
}

export interface Export {
  /** As the price book names it. */
  readonly seller: "anthropic" | "openai";
  readonly rows: readonly Row[];
}

/** Null: it is not an export that is known. */
export function readExport(text: string): Export | null {
  const json = parseJson(text);
  const rows = (json === undefined ? readCsv(text) : readPages(json)).flatMap(
    (fields) => readRow(fields) ?? [],
  );
  const isOpenai = rows.some(({ fields }) => fields["start_time"] !== undefined);
  return rows.length === 0 ? null : { seller: isOpenai ? "openai" : "anthropic", rows };
}

/** Pages of the APIs: a list of times, each with its results. The members of inner objects count as the result's own. */
function readPages(json: unknown): Fields[] {
  const buckets = [json].flat().flatMap((page) => getList(getField(page, "data")));
  return buckets.filter(isObject).flatMap((bucket) =>
    [...getList(bucket["results"]), ...getList(bucket["result"])].filter(isObject).map((result) => {
      const members = [bucket, ...Object.values(result).filter(isObject), result].flatMap(
        Object.entries<unknown>,
      );
      return Object.fromEntries(members.map(([name, value]) => [name, writeCell(value)]));
    }),
  );
}

function writeCell(value: unknown): string | undefined {
  return typeof value === "number" ? String(value) : typeof value === "string" ? value : undefined;
}

/** Cells may be quoted, and contain commas, quotes and line breaks. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;

function readCsv(text: string): Fields[] {
  const lines: string[][] = [[]];
  for (const [, quoted, plain = "", end] of text.replace(/^\uFEFF/, "").matchAll(CELL)) {
    lines.at(-1)?.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === "") break;
    if (end !== ",") lines.push([]);
  }
  const [head = [], ...rows] = lines;
  const named = (cells: readonly string[]): Fields =>
    Object.fromEntries(head.map((name, index) => [name, cells[index] ?? ""]));
  return rows.filter(({ length }) => length > 1).map(named);
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const DATE = /^\d{4}-\d\d-\d\d$/;

function readRow(fields: Fields): Row | null {
  const named = fields["starting_at"] ?? fields["start_time"] ?? fields["usage_date_utc"];
  const from = readMoment(named);
  if (from === null) return null;
  const until = readMoment(fields["ending_at"] ?? fields["end_time"]);
  const length = DATE.test(named ?? "") ? DAY_MS : HOUR_MS;
  // OpenAI's costs name a model and a kind of tokens: `gpt-5.5, input`.
  const model = (fields["model_version"] ?? fields["model"] ?? fields["line_item"])?.replace(/,.*/, "");
  return { from, until: until ?? from + length, model: model || null, fields };
}

/** ISO, in UTC if it names no zone, or seconds since 1970. */
function readMoment(text = ""): number | null {
  const isLocal = !DATE.test(text) && /:\d\d$/.test(text);
  const ms = /^\d{9,10}$/.test(text) ? Number(text) * 1000 : Date.parse(isLocal ? `${text}Z` : text);
  return Number.isNaN(ms) ? null : ms;
}

/** `isWithin`: the period that is compared. */
export function reconcileExport(
  { seller, rows }: Export,
  lines: readonly OurLine[],
  isWithin: (time: number) => boolean,
): Reconciliation {
  const vendor = seller === "openai" ? OPENAI : ANTHROPIC;
  const within = rows.filter(({ from }) => isWithin(from));
  const groups = Map.groupBy(within, ({ from, until, model }) => JSON.stringify([from, until, model]));
  const left = new Set(lines.filter(({ usage }) => Object.values(usage).some(Boolean)));
  const compared = [...groups.values()].flatMap((group) => compareGroup(vendor, group, lines, left));
  const only = [...left]
    .filter(({ time }) => within.some(({ from, until }) => time >= from && time < until))
    .map(({ time, id, model, usage, official: usd }) => ({ time, id, model, ours: { usage, usd } }));
  return conclude(
    [...compared, ...only.map((each) => ({ ...each, theirs: null, because: null, agrees: false }))],
    [],
  );
}

/** Takes its lines out of those that are left. */
function compareGroup(vendor: Vendor, group: readonly Row[], lines: readonly OurLine[], left: Set<OurLine>) {
  const [{ from, until, model } = NO_ROW] = group;
  const own = lines.filter((line) => line.time >= from && line.time < until && isModel(model, line));
  for (const line of own) left.delete(line);
  const ours = { usage: addUsage(own), usd: sumUsd(own.map(({ official }) => official)) };
  const counts = compareCounts(vendor, group, ours.usage);
  const amounts = group.flatMap(({ fields }) => readAmounts(vendor, fields));
  const usd = sumUsd(amounts);
  const wrong = counts.filter((each) => each.theirs !== each.ours);
  const isPaid = usd === null || isNear(usd, ours.usd ?? ZERO_DECIMAL, measureRounding(amounts));
  const isEmpty = own.length === 0 && isPaid && wrong.length === 0;
  const because =
    wrong.map(({ name, ...each }) => `${name} ${each.theirs}, ours ${each.ours}`).join("; ") || null;
  const sides = { ours: own.length === 0 ? null : ours, theirs: { usage: {}, usd }, because };
  const id = `${(until - from) / HOUR_MS} h`;
  return isEmpty
    ? []
    : [{ time: from, id, model: model ?? "all models", ...sides, agrees: wrong.length === 0 && isPaid }];
}

const NO_ROW: Row = { from: 0, until: 0, model: null, fields: {} };

/** Those that the rows have. */
function compareCounts({ counts }: Vendor, group: readonly Row[], usage: Readonly<Record<string, number>>) {
  return Object.entries(counts).flatMap(([name, kinds]) => {
    const named = group.map(({ fields }) => fields[name] ?? "").filter((text) => text !== "");
    const theirs = named.reduce((sum, text) => sum + Number(text), 0);
    const ours = kinds.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
    return named.length === 0 ? [] : [{ name, theirs, ours }];
  });
}

/** Consoles write `Claude Haiku 4.5` for claude-haiku-4-5. */
function isModel(name: string | null, { model, answeredBy }: OurLine): boolean {
  if (name === null) return true;
  const id = name.toLowerCase().replaceAll(/[ .]/g, "-");
  return [model, answeredBy].some(
    (own) => isSameModel(name, own) || isSameModel(id, own.replaceAll(".", "-")),
  );
}

function readAmounts({ amounts }: Vendor, fields: Fields): Decimal[] {
  return Object.entries(amounts).flatMap(([name, places]) => {
    // OpenAI writes zeros at the end.
    const text = String(fields[name])
      .replace(/(\.\d*?)0+$/, "$1")
      .replace(/\.$/, "");
    return parseNumber(text, places) ?? [];
  });
}

/** Consoles round to cents, and floats lose a little. */
const [LEAST_PLACES, MOST_PLACES] = [2, 6];

/** Half a unit of the last place, for each amount. */
function measureRounding(amounts: readonly Decimal[]): Decimal {
  const places = Math.max(LEAST_PLACES, ...amounts.map(({ scale }) => Math.min(MOST_PLACES, scale)));
  return { units: 5n * BigInt(Math.max(1, amounts.length)), scale: places + 1 };
}
