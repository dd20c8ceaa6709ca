// The parts of a session's prompts, in tokens and dollars. A prompt's reported tokens are divided
// by the parts' lengths, which is an estimate.

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
import { listLines } from "../store/lines.ts";
import type { Table } from "../store/open.ts";
import { CACHE_READ_KINDS, CACHE_WRITE_KINDS, PROMPT_KINDS } from "../usage.ts";
import { nameFolder, type NotedPart, type NotedTurn, readTurns } from "./context-notes.ts";
import { reportSessions } from "./sessions.ts";
import type { Scope } from "./sums.ts";

/** Tokens and their cost. A plan's requests have no charge. */
interface Cost {
  tokens: number;
  official: Decimal;
  charge: Decimal;
}

function openCost(): Cost {
  return { tokens: 0, official: ZERO_DECIMAL, charge: ZERO_DECIMAL };
}

function addCost(sum: Cost, { tokens, official, charge }: Cost): void {
  sum.tokens += tokens;
  sum.official = addDecimals(sum.official, official);
  sum.charge = addDecimals(sum.charge, charge);
}

function describeCost({ tokens, official, charge }: Cost) {
  return { tokens, official_usd: formatDecimal(official), charge_usd: formatDecimal(charge) };
}

const MAX_RESULTS = 10;

/** Null: nothing is noted about the session. */
export function reportContext(table: Table, session: string) {
  const { turns, parts, results, called, total, leftOut } = readSession(table, session);
  if (turns.length === 0) return null;
  const idle = parts.filter(({ kind, name }) => kind === "tool" && !called.has(name));
  const largest = results.toSorted((a, b) => b.size - a.size).slice(0, MAX_RESULTS);
  const document = {
    session,
    estimated: true,
    ...describeCost(total),
    /** By kind and name, the most expensive first. */
    parts: parts.map(({ kind, name, marks, sent, last, ...cost }) => {
      const { tokens, ...amounts } = describeCost(cost);
      const server = kind === "tool" ? nameServer(name) : null;
      return { kind, name, server, parts: marks.size, sent, tokens, last_tokens: last, ...amounts };
    }),
    /** Tools that were offered, but that no answer and no prompt calls. */
    never_called: idle.map(({ name }) => name),
    /** `id`: the first request that sent the result. */
    largest_results: largest.map(({ name, id, size, sent, ...cost }) => {
      return { name, id, sent, ...describeCost(cost), tokens: size };
    }),
    turns,
    /** Requests with unknown parts or prices. */
    not_known: leftOut,
  };
  return { document, groups: groupCosts(parts, nameGroup), idle: groupCosts(idle, () => "")[0] };
}

function groupCosts(parts: readonly Part[], nameOf: (part: Part) => string) {
  const groups = new Map<string, Cost & { readonly what: string; sent: number }>();
  for (const part of parts) {
    const what = nameOf(part);
    const group = groups.getOrInsertComputed(what, () => ({ what, sent: 0, ...openCost() }));
    group.sent += part.sent;
    addCost(group, part);
  }
  const sorted = [...groups.values()].toSorted((a, b) => b.tokens - a.tokens);
  return sorted.map(({ what, sent, ...cost }) => ({ what, sent, ...describeCost(cost) }));
}

/** The cost of each MCP server's tools in the sessions of a period. */
export function reportServers(table: Table, { since, until }: Scope) {
  const servers = new Map<string, Cost & Record<"tools" | "called" | "sessions", Set<string>>>();
  for (const { session } of reportSessions(table, { since, until }).sessions) {
    const { parts, called } = readSession(table, session);
    for (const part of parts) {
      const server = part.kind === "tool" ? nameServer(part.name) : null;
      if (server === null) continue;
      const none = { tools: new Set<string>(), called: new Set<string>(), sessions: new Set<string>() };
      const known = servers.getOrInsertComputed(server, () => ({ ...none, ...openCost() }));
      known.tools.add(part.name);
      if (called.has(part.name)) known.called.add(part.name);
      known.sessions.add(session);
      addCost(known, part);
    }
  }
  const rows = [...servers].toSorted(([, a], [, b]) => b.tokens - a.tokens);
  return {
    since,
    until,
    servers: rows.map(([server, { tools, called, sessions, ...cost }]) => {
      const counts = { tools: tools.size, called: called.size, sessions: sessions.size };
      return { server, ...counts, ...describeCost(cost) };
    }),
  };
}

/** All parts of a kind and name. */
interface Part extends Cost {
  readonly kind: string;
  readonly name: string;
  /** One mark for each different part. */
  readonly marks: Set<string>;
  /** How often such parts were sent. */
  sent: number;
  /** The tokens of the last part. */
  last: number;
}

/** One result of a tool. `size`: its tokens when first sent. */
interface Result extends Cost {
  readonly name: string;
  readonly id: string;
  readonly size: number;
  sent: number;
}

/** The tokens of one prompt, by kind of part. */
interface Turn {
  readonly time: string;
  readonly id: string;
  readonly agent: string | null;
  readonly tokens: Readonly<Record<string, number>>;
}

class Session {
  readonly turns: Turn[] = [];
  readonly #parts = new Map<string, Part>();
  readonly #results = new Map<string, Result>();
  readonly called = new Set<string>();
  readonly total = openCost();
  leftOut = 0;

  get results(): Result[] {
    return [...this.#results.values()];
  }

  /** The most expensive first. */
  get parts(): Part[] {
    return [...this.#parts.values()].toSorted(
      (a, b) => compareDecimals(b.official, a.official) || b.tokens - a.tokens,
    );
  }

  addTurn(line: Line, turn: NotedTurn): void {
    const tokens: Record<string, number> = {};
    for (const [part, cost] of divideCost(line, turn)) {
      this.#addPart(part, cost, line.id);
      const { tokens: count } = cost;
      tokens[part.kind] = (tokens[part.kind] ?? 0) + count;
    }
    this.turns.push({ time: line.time, id: line.id, agent: turn.agent || null, tokens });
  }

  #addPart({ kind, name, mark }: NotedPart, cost: Cost, id: string): void {
    const none = { kind, name, marks: new Set<string>(), sent: 0, last: 0, ...openCost() };
    const part = this.#parts.getOrInsert(`${kind}\n${name}`, none);
    part.marks.add(mark);
    part.sent += 1;
    part.last = cost.tokens;
    addCost(part, cost);
    addCost(this.total, cost);
    if (kind === "call" || kind === "result") this.called.add(name);
    if (kind !== "result") return;
    const result = this.#results.getOrInsert(mark, { name, id, size: cost.tokens, sent: 0, ...openCost() });
    result.sent += 1;
    addCost(result, cost);
  }
}

function readSession(table: Table, id: string): Session {
  const folder = nameFolder(table.path);
  const session = new Session();
  const noted = new Map((existsSync(folder) ? readTurns(folder, id) : []).map((turn) => [turn.id, turn]));
  if (noted.size === 0) return session;
  for (const { text } of listLines(table, { where: "session = $session", values: { $session: id } })) {
    const line = lineSchema.safeParse(parseJson(text)).data;
    const turn = noted.get(line?.id ?? "");
    for (const name of turn?.called ?? []) session.called.add(name);
    if (line === undefined || turn === undefined || !isPriced(line)) session.leftOut += 1;
    else session.addTurn(line, turn);
  }
  return session;
}

/** A request with several parts, priced separately, has no price for a part of its prompt. */
function isPriced({ prices, parts = [] }: Line): boolean {
  return prices !== null && parts.length < 2;
}

/** In the order of a prompt: cache reads, then cache writes. */
const ORDER = [
  ...CACHE_READ_KINDS,
  ...CACHE_WRITE_KINDS,
  ...PROMPT_KINDS.filter((kind) => !kind.startsWith("cache")),
];

/** Divides the prompt's tokens among its parts by length. The shares add up to the prompt. */
function divideCost({ usage, prices, multiplier }: Line, { parts }: NotedTurn): [NotedPart, Cost][] {
  const total = ORDER.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0);
  const size = parts.reduce((sum, part) => sum + part.size, 0);
  let [length, from] = [0, 0];
  return parts.map((part) => {
    length += part.size;
    const to = size === 0 ? 0 : Math.round((length / size) * total);
    const share = cutUsage(usage, from, to);
    const { charge, official } = deriveAmounts({ usage: share, prices, multiplier });
    const cost = { charge: parseDecimal(charge ?? "0"), official: parseDecimal(official ?? "0") };
    const tokens = to - from;
    from = to;
    return [part, { tokens, ...cost }];
  });
}

/** The tokens between two places of a prompt, by kind. */
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

/** The MCP server of a tool, from the tool's name. Null: the agent's own tool. */
function nameServer(tool: string): string | null {
  return /^mcp__(.+?)__/.exec(tool)?.[1] ?? null;
}

const WORDS: Readonly<Record<string, string>> = {
  tool: "tools",
  system: "system prompt",
  user: "messages of the user",
  assistant: "answers",
  thinking: "thoughts",
  call: "calls",
  result: "results",
};

/** Tools of one server, results of one tool, or all parts of another kind. */
function nameGroup({ kind, name }: Part): string {
  const word = WORDS[kind] ?? kind;
  if (kind === "tool") return `${word} of ${nameServer(name) ?? "the agent"}`;
  return kind === "result" && name !== "" ? `${word} of ${name}` : word;
}
