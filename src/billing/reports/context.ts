// What the prompts of a session consisted of, in tokens and dollars. The tokens of a prompt are divided among its parts by
// their lengths, which is an estimate; their sum is what the upstream reported. It only reads.

import { existsSync } from "node:fs";
import {
  addDecimals,
  compareDecimals,
  type Decimal,
  formatDecimal,
  parseDecimal,
  ZERO_DECIMAL,
} from "../../lib/money.ts";
import { parseJson } from "../../lib/json/json.ts";
import { deriveAmounts } from "../charge.ts";
import { type Line, lineSchema } from "../ledger/line.ts";
import { CACHE_READ_KINDS, CACHE_WRITE_KINDS, PROMPT_KINDS } from "../usage.ts";
import { listLines } from "../store/lines.ts";
import type { Table } from "../store/open.ts";
import { nameFolder, type NotedPart, type NotedTurn, readTurns } from "./context-notes.ts";

/** Where a plan paid, there is no charge. */
export interface PartCost {
  official: Decimal;
  charge: Decimal;
}

export function openCost(): PartCost {
  return { official: ZERO_DECIMAL, charge: ZERO_DECIMAL };
}

export function addCost(sum: PartCost, { official, charge }: PartCost): void {
  sum.official = addDecimals(sum.official, official);
  sum.charge = addDecimals(sum.charge, charge);
}

export interface PartTotals extends PartCost {
  readonly kind: string;
  readonly name: string;
  /** How many different parts there are of this kind and name. */
  parts: number;
  /** How often one of them was sent. */
  sent: number;
  tokens: number;
  /** Of the last prompt that had one. */
  lastTokens: number;
}

/** One result of a tool. */
export interface SentResult extends PartCost {
  readonly name: string;
  /** The request that was the first to send it. */
  readonly id: string;
  readonly tokens: number;
  sent: number;
}

export interface ContextReport extends PartCost {
  readonly turns: readonly TurnParts[];
  /** By kind and name, the most expensive first. */
  readonly parts: readonly PartTotals[];
  /** Tools that were offered, and that no answer and no prompt shows a call of. */
  readonly neverCalled: readonly PartTotals[];
  readonly results: readonly SentResult[];
  readonly tokens: number;
  /** Requests of which the parts or the price are not known. */
  readonly leftOut: number;
}

/** The tokens of one prompt, by the kind of its parts. */
export interface TurnParts {
  readonly id: string;
  readonly agent: string;
  readonly time: string;
  readonly tokens: Readonly<Record<string, number>>;
}

const MAX_RESULTS = 10;

/** Without turns, nothing is noted of it. */
export function readContext(table: Table, session: string): ContextReport {
  const folder = nameFolder(table.path);
  const turns = existsSync(folder) ? readTurns(folder, session) : [];
  const noted = new Map(turns.map((turn) => [turn.id, turn]));
  const where = turns.length === 0 ? "FALSE" : "session = $session";
  const sums = new ContextSums();
  let leftOut = 0;
  for (const { text } of listLines(table, { where, values: { $session: session } })) {
    const line = lineSchema.safeParse(parseJson(text)).data;
    const turn = line && noted.get(line.id);
    if (line === undefined || turn === undefined || !sums.add(turn, line)) leftOut += 1;
  }
  return sums.report(leftOut);
}

class ContextSums {
  readonly #turns: TurnParts[] = [];
  readonly #totals = new Map<string, PartTotals>();
  readonly #results = new Map<string, SentResult>();
  readonly #marks = new Set<string>();
  readonly #called = new Set<string>();
  #tokens = 0;
  readonly #cost = openCost();

  add({ parts, agent, called }: NotedTurn, line: Line): boolean {
    for (const name of called) this.#called.add(name);
    if (line.prices === null || (line.parts?.length ?? 1) > 1) return false;
    const usages = divideUsage(line, parts);
    const tokens: Record<string, number> = {};
    for (const [index, part] of parts.entries()) {
      const usage = usages[index] ?? {};
      const count = Object.values(usage).reduce((sum, each) => sum + each, 0);
      this.#addPart(part, { usage, count, line });
      tokens[part.kind] = (tokens[part.kind] ?? 0) + count;
      this.#tokens += count;
    }
    this.#turns.push({ id: line.id, agent, time: line.time, tokens });
    return true;
  }

  #addPart({ kind, name, mark }: NotedPart, { usage, count, line }: PartUse): void {
    const cost = priceUsage(usage, line);
    if (kind === "call" || kind === "result") this.#called.add(name);
    const id = `${kind}\n${name}`;
    const none = { kind, name, parts: 0, sent: 0, tokens: 0, lastTokens: 0, ...openCost() };
    const known = this.#totals.getOrInsert(id, none);
    if (!this.#marks.has(mark)) known.parts += 1;
    this.#marks.add(mark);
    known.sent += 1;
    known.tokens += count;
    known.lastTokens = count;
    addCost(known, cost);
    addCost(this.#cost, cost);
    if (kind !== "result") return;
    const result = this.#results.get(mark) ?? { name, id: line.id, tokens: count, sent: 0, ...openCost() };
    this.#results.set(mark, result);
    result.sent += 1;
    addCost(result, cost);
  }

  report(leftOut: number): ContextReport {
    const parts = [...this.#totals.values()].toSorted(
      (a, b) => compareDecimals(b.official, a.official) || b.tokens - a.tokens,
    );
    return {
      turns: this.#turns,
      parts,
      neverCalled: parts.filter(({ kind, name }) => kind === "tool" && !this.#called.has(name)),
      results: [...this.#results.values()].toSorted((a, b) => b.tokens - a.tokens).slice(0, MAX_RESULTS),
      tokens: this.#tokens,
      ...this.#cost,
      leftOut,
    };
  }
}

interface PartUse {
  readonly usage: Readonly<Record<string, number>>;
  readonly count: number;
  readonly line: Line;
}

/** In the order of a prompt: what was read from the cache is its beginning, then comes what was written to it. */
const ORDER = [
  ...CACHE_READ_KINDS,
  ...CACHE_WRITE_KINDS,
  ...PROMPT_KINDS.filter((kind) => !kind.startsWith("cache")),
];

/** The prompt's usage, divided among its parts by their lengths. The shares add up to it. */
function divideUsage({ usage }: Line, parts: readonly NotedPart[]): Record<string, number>[] {
  const total = ORDER.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  let [length, from] = [0, 0];
  return parts.map((part) => {
    length += part.size;
    const to = size === 0 ? 0 : Math.round((length / size) * total);
    const share = cutUsage(usage, from, to);
    from = to;
    return share;
  });
}

/** The tokens from one place of a prompt to another, by kind. */
function cutUsage(usage: Line["usage"], from: number, to: number): Record<string, number> {
  const share: Record<string, number> = {};
  let start = 0;
  for (const kind of ORDER) {
    const end = start + (usage[kind] ?? 0);
    const count = Math.min(end, to) - Math.max(start, from);
    if (count > 0) share[kind] = count;
    start = end;
  }
  return share;
}

function priceUsage(usage: Record<string, number>, { prices, multiplier }: Line): PartCost {
  const { charge, official } = deriveAmounts({ usage, prices, multiplier });
  return { charge: parseDecimal(charge ?? "0"), official: parseDecimal(official ?? "0") };
}

const SERVER = /^mcp__(.+?)__/;

/** The MCP server of a tool, as agents name such tools. Null: it is the agent's own. */
export function nameServer(tool: string): string | null {
  return SERVER.exec(tool)?.[1] ?? null;
}

/** Tools of one server, results of one tool, or all parts of another kind. */
export type PartGroup = Pick<PartTotals, "sent" | "tokens" | keyof PartCost> & { readonly what: string };

const WORDS: Readonly<Record<string, string>> = {
  tool: "tools",
  system: "system prompt",
  user: "messages of the user",
  assistant: "answers",
  thinking: "thoughts",
  call: "calls",
  result: "results",
};

function nameRow({ kind, name }: PartTotals): string {
  const word = WORDS[kind] ?? kind;
  if (kind === "tool") return `${word} of ${nameServer(name) ?? "the agent"}`;
  return kind === "result" && name !== "" ? `${word} of ${name}` : word;
}

/** The largest first. */
export function groupParts(parts: readonly PartTotals[]): PartGroup[] {
  const groups = new Map<string, PartGroup>();
  for (const part of parts) {
    const what = nameRow(part);
    const known = groups.getOrInsertComputed(what, () => ({ what, sent: 0, tokens: 0, ...openCost() }));
    known.sent += part.sent;
    known.tokens += part.tokens;
    addCost(known, part);
  }
  return [...groups.values()].toSorted((a, b) => b.tokens - a.tokens);
}

/** For scripts: counts as numbers, amounts as exact decimals. */
export function describePart(part: PartTotals): Record<string, unknown> {
  const { kind, name, parts, sent, tokens, lastTokens, charge, official } = part;
  return {
    kind,
    name,
    server: kind === "tool" ? nameServer(name) : null,
    parts,
    sent,
    tokens,
    last_tokens: lastTokens,
    official_usd: formatDecimal(official),
    charge_usd: formatDecimal(charge),
  };
}
