// Reads token counts and the seller's amount. What is doubtful becomes a fault.

import type { CountFault, ReportedAmount, Tariff, Usage } from "./usage.ts";
import { readNumberText } from "../lib/exact.ts";
import { getCount, getField, getName, isObject } from "../lib/json/json.ts";
import { compareDecimals, decimalOf, formatDecimal, parseNumber } from "../lib/money.ts";

/** Without a total, the amount is unknown.
 *  Without a detail, the price may be wrong. */
const FAULTS = {
  total_unreadable: { basis: "unknown", text: "cannot be read" },
  total_missing: { basis: "unknown", text: "is missing beside the other counts" },
  output_missing: { basis: "suspect", text: "is missing beside the other counts", lacksOutput: true },
  usage_early: { basis: "suspect", text: "did not come again when the output ended", lacksOutput: true },
  detail_unreadable: { basis: "suspect", text: "cannot be read" },
  usage_changed: { basis: "suspect", text: "changed after the end" },
  total_differs: { basis: "suspect", text: "is not the sum of the other counts" },
  output_shrank: { basis: "suspect", text: "was larger before: the last count is charged" },
  shrank: { basis: "suspect", text: "was larger before: the larger count is charged" },
  unknown: { basis: "suspect", text: "is something whose price is not known" },
  detail_too_large: { basis: "suspect", text: "is more than the total that includes it" },
  refused: { basis: "suspect", text: "has no output: it may have been refused, and cost nothing" },
} as const;

const MAX_NAME_LENGTH = 60;

const MAX_DEPTH = 8;

interface KnownNames {
  has(name: string): boolean;
}

function countsSome(value: unknown, depth: number): boolean {
  if (typeof value === "number") return value !== 0;
  if (typeof value === "string") return Number(value) > 0;
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((each) => countsSome(each, depth - 1));
}

export class CountReader {
  readonly #faults: CountFault[] = [];

  get faults(): readonly CountFault[] | undefined {
    return this.#faults.length === 0 ? undefined : this.#faults;
  }

  /** A count that the amount depends on. Undefined: absent or unreadable. */
  readTotal(from: unknown, name: string): number | undefined {
    return this.#read(from, name, "total_unreadable");
  }

  readDetail(from: unknown, name: string): number {
    return this.#read(from, name, "detail_unreadable") ?? 0;
  }

  /** A part larger than its total counts as 0, so all tokens have the usual price. */
  limitPart(part: number, total: number, place: string): number {
    if (part <= total) return part;
    this.note("detail_too_large", place);
    return 0;
  }

  compareTotal(
    from: unknown,
    name: string,
    parts: readonly (number | undefined)[],
    { mayHaveMore = false } = {},
  ): void {
    const total = this.readDetail(from, name);
    // The fault of a part is already reported.
    if (this.#faults.length > 0) return;
    let sum = 0;
    for (const part of parts) sum += part ?? 0;
    const isRight = total === sum || (mayHaveMore && total > sum);
    if (total > 0 && !isRight) this.note("total_differs", name);
  }

  /** Notes an unknown tool, kind or lifetime, which may have a price. */
  noteUnknown(from: unknown, name: string, known: KnownNames): void {
    const counted = getField(from, name);
    if (isObject(counted)) this.noteMember(counted, known, name);
    // Some languages write an empty object as an empty list.
    else if ((counted ?? null) !== null && !(Array.isArray(counted) && counted.length === 0))
      this.note("detail_unreadable", name);
  }

  /** Notes unknown members whose names end in `ending`. `known` maps each known
   *  member to the names inside it, or to null if the member is a count. */
  noteMembers(
    usage: Counters,
    known: ReadonlyMap<string, KnownNames | null>,
    ending: string,
    place: string | null = null,
  ): void {
    known.forEach((inside, name) => inside && this.noteUnknown(usage, name, inside));
    this.noteMember(usage, known, place, ending);
  }

  noteMember(counted: Counters, known: KnownNames, place: string | null, ending = ""): void {
    for (const member in counted) {
      if (known.has(member) || !member.endsWith(ending) || !countsSome(counted[member], MAX_DEPTH)) continue;
      const name = member.slice(0, MAX_NAME_LENGTH);
      return this.note("unknown", place === null ? name : `${place}.${name}`);
    }
  }

  note(kind: keyof typeof FAULTS, name: string): void {
    const fault: CountFault = { ...FAULTS[kind], text: `the upstream's ${name} ${FAULTS[kind].text}` };
    if (!this.#faults.some((known) => known.text === fault.text)) this.#faults.push(fault);
  }

  /** Null means absent in every dialect. */
  #read(from: unknown, name: string, kind: "total_unreadable" | "detail_unreadable"): number | undefined {
    const value = getField(from, name) ?? undefined;
    const count = getCount(value);
    if (value !== undefined && count === undefined) this.note(kind, name);
    return count;
  }
}

type Counters = Readonly<Record<string, unknown>>;

const OF_PROMPT = /^(?:prompt|input|cache|num_cached)/;
const PROMPTS = ["prompt_tokens", "input_tokens", "promptTokenCount"];
const OUTPUTS = ["completion_tokens", "output_tokens", "candidatesTokenCount"];
const TOTALS = [...PROMPTS, ...OUTPUTS, "thoughtsTokenCount", "toolUsePromptTokenCount"];

interface HowReported {
  /** The report came after the end of the answer. */
  readonly isLate?: boolean;
  /** Earlier counts were provisional. */
  readonly mayShrink?: boolean;
  /** The output count is provisional. */
  readonly isStart?: boolean;
}

/** Of several usage reports, the last one counts, but a prompt never shrinks. */
export class Reports {
  readonly #countPrompt: (usage: Counters) => number;
  #last: Counters | null = null;
  /** The report before the prompt shrank. */
  #most: Counters | null = null;
  #isChanged = false;
  #hasMadeLess = false;
  #isProvisional = false;

  constructor(countPrompt = (usage: Counters): number => readFirst(usage, PROMPTS)) {
    this.#countPrompt = countPrompt;
  }

  get last(): Counters | null {
    return this.#last;
  }

  /** False: `usage` reports nothing. */
  add(usage: unknown, how: HowReported): boolean {
    if (!isObject(usage)) return false;
    const last = this.#last;
    if (last !== null && TOTALS.every((name) => (usage[name] ?? null) === null)) return false;
    if (last !== null) this.#compare(usage, last, how);
    this.#isProvisional = how.isStart === true;
    this.#last = usage;
    return true;
  }

  #compare(usage: Counters, last: Counters, { isLate = false, mayShrink = false }: HowReported): void {
    if (isLate) this.#isChanged ||= !Bun.deepEquals(usage, last);
    const most = this.#most ?? last;
    const hasLess = !mayShrink && this.#countPrompt(usage) < this.#countPrompt(most);
    this.#most = hasLess ? most : null;
    const isFinal = !mayShrink && !this.#isProvisional;
    this.#hasMadeLess ||= isFinal && readFirst(usage, OUTPUTS) < readFirst(last, OUTPUTS);
  }

  /** The usage to charge. If the answer took several passes, its prompt may shrink:
   *  its last totals leave out some passes. */
  read(counts: CountReader, hasPasses = false): Counters | null {
    if (this.#isChanged) counts.note("usage_changed", "usage");
    else if (this.#hasMadeLess) counts.note("output_shrank", "output");
    if (this.#most === null || hasPasses) return this.#last;
    counts.note("shrank", "prompt");
    const others = Object.entries(this.#last ?? {}).filter(([name]) => !OF_PROMPT.test(name));
    const prompt = Object.entries(this.#most).filter(([name]) => OF_PROMPT.test(name));
    return Object.fromEntries([...others, ...prompt]);
  }
}

function readFirst(usage: Counters, names: readonly string[]): number {
  const name = names.find((each) => (usage[each] ?? null) !== null);
  return (name === undefined ? undefined : getCount(usage[name])) ?? 0;
}

export function dropZeros(usage: Usage): Usage {
  const counted = Object.entries(usage).filter(
    ([kind, count]) => count > 0 || kind === "input" || kind === "output",
  );
  return Object.fromEntries(counted);
}

export function readTariff(from: unknown, members: Readonly<Record<string, string>>): Tariff {
  const tariff: Record<string, string> = {};
  for (const name in members) {
    const value = getName(getField(from, members[name] ?? ""));
    if (value !== undefined) tariff[name] = value;
  }
  return tariff;
}

/** https://docs.x.ai/developers/cost-tracking: a dollar has 10^10 ticks. */
const TICK_PLACES = 10;
const MOST_USD = decimalOf(10_000);

/** Reads xAI's ticks, or the `cost` of OpenRouter, Vercel or Perplexity. */
export function readAmount(raw: unknown, isFinal: boolean): ReportedAmount | undefined {
  const ticks = getField(raw, "cost_in_usd_ticks") ?? null;
  const cost = getField(raw, "cost") ?? null;
  if (ticks === null && cost === null) return undefined;
  const text = readNumberText(ticks ?? readTotalCost(cost)) ?? "";
  const amount = parseNumber(text, ticks === null ? 0 : TICK_PLACES);
  const isRead = amount !== null && compareDecimals(amount, MOST_USD) <= 0;
  // https://openrouter.ai/docs/use-cases/usage-accounting
  const isWhole = isFinal && getField(raw, "is_byok") !== true;
  return { usd: isRead ? formatDecimal(amount) : null, isWhole };
}

/** Perplexity lists a cost for each kind and a total. */
function readTotalCost(cost: unknown): unknown {
  const isUsd = (getField(cost, "currency") ?? "USD") === "USD";
  return isUsd ? (getField(cost, "total_cost") ?? cost) : cost;
}
