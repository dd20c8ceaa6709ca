// Usage and costs as the consoles and the APIs of Anthropic and OpenAI export them: sums by time and model, in CSV or JSON.
// Ours are summed over the same times and models.
// https://platform.claude.com/docs/en/build-with-claude/usage-cost-api, https://platform.openai.com/docs/api-reference/usage

import { getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { type Decimal, parseNumber, ZERO_DECIMAL } from "../../lib/money.ts";
import { isSameModel } from "../prices/names.ts";
import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS } from "../usage.ts";
import { countWhile } from "./entry.ts";
import type { OurLine } from "./our-lines.ts";
import { type Compared, conclude, isNear, type Reconciliation, sumUsd } from "./reconcile.ts";

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
  const found = json === undefined ? readCsv(text) : readPages(json);
  const rows = [...found].flatMap((fields) => readRow(fields) ?? []);
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

function* readCsv(text: string): Generator<Fields, void> {
  let head: string[] | null = null;
  let cells: string[] = [];
  for (const [, quoted, plain = "", end] of text.replace(/^\uFEFF/, "").matchAll(CELL)) {
    cells.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end === ",") continue;
    if (head !== null && cells.length > 1)
      yield Object.fromEntries(head.map((name, index) => [name, cells[index] ?? ""]));
    head ??= cells;
    cells = [];
    if (end === "") break;
  }
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

/** The rows of one time and model, and what ours of them have in all. */
interface Group extends Pick<Row, "from" | "until" | "model"> {
  readonly rows: Row[];
  count: number;
  readonly usage: Record<string, number>;
  usd: Decimal | null;
}

/** `isWithin`: the period that is compared. */
export function reconcileExport(
  { seller, rows }: Export,
  lines: Iterable<OurLine>,
  isWithin: (time: number) => boolean,
): Reconciliation {
  const vendor = seller === "openai" ? OPENAI : ANTHROPIC;
  const groups = openGroups(rows.filter(({ from }) => isWithin(from)));
  const findAt = openTimes(groups);
  const isModel = openModels();
  const only: Compared[] = [];
  for (const line of lines) {
    const then = findAt(line.time);
    const own = then.filter(({ model }) => isModel(model, line));
    for (const group of own) addLine(group, line);
    if (then.length === 0 || own.length > 0 || !Object.values(line.usage).some(Boolean)) continue;
    const { time, id, model, usage, official: usd } = line;
    only.push({ time, id, model, ours: { usage, usd }, theirs: null, because: null, agrees: false });
  }
  return conclude([...groups.flatMap((group) => compareGroup(vendor, group)), ...only], []);
}

function openGroups(rows: readonly Row[]): Group[] {
  const groups = new Map<string, Group>();
  for (const row of rows) {
    const { from, until, model } = row;
    const name = `${from} ${until} ${model}`;
    const group = groups.get(name) ?? { from, until, model, rows: [], count: 0, usage: {}, usd: null };
    group.rows.push(row);
    groups.set(name, group);
  }
  return [...groups.values()];
}

/** Finds the groups of a moment. Exports divide time, so few of them begin before it and end after it. */
function openTimes(groups: readonly Group[]): (time: number) => readonly Group[] {
  const sorted = groups.toSorted((a, b) => a.from - b.from);
  /** When the last one of these and those before it ends. */
  const ends: number[] = [];
  for (const { until } of sorted) ends.push(Math.max(until, ends.at(-1) ?? 0));
  return (time) => {
    const found: Group[] = [];
    for (
      let index = countWhile(sorted, ({ from }) => from <= time) - 1;
      index >= 0 && (ends[index] ?? 0) > time;
      index -= 1
    ) {
      const group = sorted[index];
      if (group !== undefined && group.until > time) found.push(group);
    }
    return found;
  };
}

/** Names are compared once. Consoles write `Claude Haiku 4.5` for claude-haiku-4-5. */
function openModels(): (name: string | null, line: OurLine) => boolean {
  const known = new Map<string, boolean>();
  return (name, { model, answeredBy }) => {
    if (name === null) return true;
    const key = `${name}\n${model}\n${answeredBy}`;
    const same = known.get(key) ?? [model, answeredBy].some((own) => isSameModel(name, own));
    known.set(key, same);
    return same;
  };
}

function addLine(group: Group, { usage, official }: OurLine): void {
  group.count += 1;
  for (const kind in usage) group.usage[kind] = (group.usage[kind] ?? 0) + (usage[kind] ?? 0);
  group.usd = sumUsd([group.usd, official]);
}

function compareGroup(vendor: Vendor, group: Group): Compared[] {
  const { from, until, model, rows, count, usage, usd: ourUsd } = group;
  const counts = compareCounts(vendor, rows, usage);
  const amounts = rows.flatMap(({ fields }) => readAmounts(vendor, fields));
  const usd = sumUsd(amounts);
  const wrong = counts.filter((each) => each.theirs !== each.ours);
  const isPaid = usd === null || isNear(usd, ourUsd ?? ZERO_DECIMAL, measureRounding(amounts));
  const agrees = wrong.length === 0 && isPaid;
  if (count === 0 && agrees) return [];
  const because =
    wrong.map(({ name, ...each }) => `${name} ${each.theirs}, ours ${each.ours}`).join("; ") || null;
  const sides = { ours: count === 0 ? null : { usage, usd: ourUsd }, theirs: { usage: {}, usd }, because };
  const id = `${(until - from) / HOUR_MS} h`;
  return [{ time: from, id, model: model ?? "all models", ...sides, agrees }];
}

/** Those that the rows have. */
function compareCounts({ counts }: Vendor, group: readonly Row[], usage: Readonly<Record<string, number>>) {
  return Object.entries(counts).flatMap(([name, kinds]) => {
    const named = group.map(({ fields }) => fields[name] ?? "").filter((text) => text !== "");
    const theirs = named.reduce((sum, text) => sum + Number(text), 0);
    const ours = kinds.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
    return named.length === 0 ? [] : [{ name, theirs, ours }];
  });
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
