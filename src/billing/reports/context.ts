// The parts of a session's prompts, in tokens and dollars: an estimate,
// which divides a prompt's reported tokens by the parts' lengths.

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
import { listLines, type Table } from "../store/open.ts";
import { PROMPT_KINDS, READ_KINDS, WRITE_KINDS } from "../usage.ts";
import { nameFolder, type NotedPart, type NotedTurn, readTurns } from "./context-notes.ts";
import { describeScope, type Scope } from "./sums.ts";

/** Tokens and their cost. A plan's requests have no charge. */
interface Cost {
  tokens: number;
  official: Decimal;
  charge: Decimal;
}

interface Part extends Cost {
  readonly kind: string;
  readonly name: string;
  /** The part was first sent in this request, and had `size` tokens there. */
  readonly id: string;
  readonly size: number;
  last: number;
  sent: number;
}

const NONE = { tokens: 0, sent: 0, official: ZERO_DECIMAL, charge: ZERO_DECIMAL };

function addCost(sum: Cost, { tokens, official, charge }: Cost): void {
  sum.tokens += tokens;
  sum.official = addDecimals(sum.official, official);
  sum.charge = addDecimals(sum.charge, charge);
}

function describeCost({ tokens, official, charge }: Cost) {
  return { tokens, official_usd: formatDecimal(official), charge_usd: formatDecimal(charge) };
}

function groupParts<P extends Part>(parts: readonly P[], nameOf: (part: P) => string) {
  return Array.from(Map.groupBy(parts, nameOf), ([what, own]) => {
    const sum = { ...NONE };
    for (const part of own) {
      sum.sent += part.sent;
      addCost(sum, part);
    }
    return { what, own, ...sum };
  }).toSorted((a, b) => b.tokens - a.tokens);
}

const MAX_RESULTS = 10;

export function reportContext(table: Table, session: string) {
  const { turns, parts, called, leftOut } = readSession(table, session);
  if (turns.length === 0) return null;
  const byName = groupParts(parts, ({ kind, name }) => `${kind}\n${name}`).toSorted((a, b) =>
    compareDecimals(b.official, a.official),
  );
  const isIdle = ({ kind, name }: Part): boolean => kind === "tool" && !called.has(name);
  const idle = byName.flatMap(({ own }) => own.slice(0, 1)).filter(isIdle);
  const results = parts.filter(({ kind }) => kind === "result").toSorted((a, b) => b.size - a.size);
  const describeGroup = ({ what, sent, ...cost }: ReturnType<typeof groupParts>[number]) => {
    return { what, sent, ...describeCost(cost) };
  };
  const [total = NONE] = groupParts(parts, () => "");
  const document = {
    session,
    estimated: true,
    ...describeCost(total),
    parts: byName.flatMap(({ own, sent, ...sum }) => {
      const part = own.at(-1);
      if (part === undefined) return [];
      const { kind, name, last: last_tokens } = part;
      const { tokens, ...amounts } = describeCost(sum);
      const server = kind === "tool" ? nameServer(name) : null;
      return { kind, name, server, parts: own.length, sent, tokens, last_tokens, ...amounts };
    }),
    never_called: idle.map(({ name }) => name),
    largest_results: results.slice(0, MAX_RESULTS).map((result) => {
      const { name, id, sent, size: tokens } = result;
      return { name, id, sent, ...describeCost(result), tokens };
    }),
    turns,
    not_known: leftOut,
  };
  const groups = groupParts(parts, nameGroup).map(describeGroup);
  return { document, groups, idle: groupParts(parts.filter(isIdle), () => "").map(describeGroup)[0] };
}

export function reportServers(table: Table, { since, until }: Scope) {
  const { sql, values } = describeScope({ since, until });
  const sessions = table.list(
    `SELECT DISTINCT session FROM requests WHERE session IS NOT NULL AND ${sql}`,
    values,
  );
  const tools = sessions.flat().flatMap((each) => {
    const session = String(each);
    const { parts, called } = readSession(table, session);
    return parts.flatMap((part) => {
      const server = part.kind === "tool" ? nameServer(part.name) : null;
      return server === null ? [] : { ...part, server, session, isCalled: called.has(part.name) };
    });
  });
  const count = (names: readonly string[]): number => new Set(names).size;
  const servers = groupParts(tools, ({ server }) => server).map(({ what: server, own, ...cost }) => ({
    server,
    tools: count(own.map(({ name }) => name)),
    called: count(own.filter(({ isCalled }) => isCalled).map(({ name }) => name)),
    sessions: count(own.map(({ session }) => session)),
    ...describeCost(cost),
  }));
  return { since, until, servers };
}

function readSession(table: Table, session: string) {
  const noted = new Map(readTurns(nameFolder(table.path), session).map((turn) => [turn.id, turn]));
  const parts = new Map<string, Part>();
  const turns = [];
  const answered: string[] = [];
  let leftOut = 0;
  const own = { where: "session = $session", values: { $session: session } };
  for (const { text } of noted.size === 0 ? [] : listLines(table, own)) {
    const line = lineSchema.safeParse(parseJson(text)).data;
    const turn = noted.get(line?.id ?? "");
    answered.push(...(turn?.called ?? []));
    if (line === undefined || turn === undefined || !isPriced(line)) leftOut += 1;
    else turns.push(addTurn(parts, line, turn));
  }
  const all = [...parts.values()];
  const calls = all.filter(({ kind }) => kind === "call" || kind === "result").map(({ name }) => name);
  return { turns, parts: all, called: new Set([...answered, ...calls]), leftOut };
}

function addTurn(parts: Map<string, Part>, line: Line, turn: NotedTurn) {
  const tokens: Record<string, number> = {};
  for (const [{ kind, name, mark }, cost] of divideCost(line, turn)) {
    const { tokens: count } = cost;
    const key = `${kind}\n${name}\n${mark}`;
    const part = parts.get(key) ?? { ...NONE, kind, name, id: line.id, size: count, last: 0 };
    // The part that was sent last comes last.
    parts.delete(key);
    parts.set(key, part);
    part.sent += 1;
    part.last = count;
    addCost(part, cost);
    tokens[kind] = (tokens[kind] ?? 0) + count;
  }
  return { time: line.time, id: line.id, agent: turn.agent || null, tokens };
}

/** An answer of several model runs has no single price for its prompt. */
function isPriced({ prices, parts = [] }: Line): boolean {
  return prices !== null && parts.length < 2;
}

const ORDER = [...READ_KINDS, ...WRITE_KINDS, ...PROMPT_KINDS.filter((kind) => !kind.startsWith("cache"))];

/** Divides the prompt's tokens among its parts by length. The shares add up. */
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

function nameGroup({ kind, name }: Part): string {
  const word = WORDS[kind] ?? kind;
  if (kind === "tool") return `${word} of ${nameServer(name) ?? "the agent"}`;
  return kind === "result" && name !== "" ? `${word} of ${name}` : word;
}
