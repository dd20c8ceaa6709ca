// A ledger of a month of work as a few people and their agents do it: sessions with growing prompts, caches and what they
// missed, subagents, errors, pauses, and weekends. The same numbers each time.

import { closeSync, openSync, writeSync } from "node:fs";
import { computeCharge, deriveMissCost } from "../../src/billing/charge.ts";
import {
  type ClientIdentity,
  encodeLine,
  GENESIS,
  hashLine,
  type LineDraft,
} from "../../src/billing/ledger/line.ts";
import { loadPriceBook } from "../../src/billing/prices.ts";
import type { Usage } from "../../src/billing/usage.ts";

const DAY_MS = 86_400_000;
const MORNING_MS = 8 * 3_600_000;
const book = loadPriceBook();

interface Work {
  readonly key: string;
  readonly group: string;
  readonly platform: "messages" | "responses";
  readonly channel: string;
  readonly multiplier: string;
  readonly tool: string;
  readonly labels: readonly string[];
  readonly models: readonly string[];
  /** Sessions on a weekday. */
  readonly sessions: number;
  readonly turns: number;
}

const CLAUDE = { group: "claude", platform: "messages", channel: "anthropic-main", multiplier: "1" } as const;
const CODEX = { group: "codex", platform: "responses", channel: "openai-main", multiplier: "0.8" } as const;
const WORK: readonly Work[] = [
  {
    ...CLAUDE,
    key: "laptop",
    tool: "claude-code",
    labels: ["web-shop", "web-shop", "billing-api"],
    models: ["claude-sonnet-4-5", "claude-sonnet-4-5", "claude-opus-4-5"],
    sessions: 4,
    turns: 34,
  },
  {
    ...CLAUDE,
    key: "workstation",
    tool: "claude-code",
    labels: ["data-pipeline"],
    models: ["claude-opus-4-5", "claude-haiku-4-5"],
    sessions: 2,
    turns: 22,
  },
  {
    ...CODEX,
    key: "ci",
    tool: "codex",
    labels: ["review", "nightly"],
    models: ["gpt-5.1-codex", "gpt-5-mini"],
    sessions: 6,
    turns: 12,
  },
  {
    ...CODEX,
    key: "scripts",
    tool: "openai",
    labels: [""],
    models: ["gpt-5-mini", "house-model"],
    sessions: 3,
    turns: 6,
  },
];

const CAUSES = [
  { because: "tools_changed" },
  { because: "tools_changed" },
  { because: "system_changed", detail: "digits", at: 2 },
  { because: "lifetime_passed" },
  { because: "lifetime_passed" },
  { because: "messages_changed" },
  { because: "model_changed" },
] as const;

type Draft = Omit<LineDraft, "id">;

type Dice = (sides: number) => number;

function createDice(): Dice {
  let state = 7;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}

export interface MonthShape {
  readonly days?: number;
  /** How many people do the same work, each with keys of their own. */
  readonly people?: number;
}

/** `until`: the last request. */
export function makeMonth(path: string, until: number, { days = 61, people = 1 }: MonthShape = {}): void {
  const pick = createDice();
  const fd = openSync(path, "w", 0o600);
  const works = Array.from({ length: people }, (_, person) =>
    WORK.map((work) => nameWork(work, person)),
  ).flat();
  let [waiting, prev, number]: [Draft[], string, number] = [[], GENESIS, 0];
  for (let day = days - 1; day >= 0; day -= 1) {
    const midnight = Math.floor((until - day * DAY_MS) / DAY_MS) * DAY_MS;
    waiting.push(...works.flatMap((work) => draftDay(work, midnight, pick)));
    // A later day begins later.
    const end = day === 0 ? until : midnight + DAY_MS + MORNING_MS;
    const ready = waiting.filter(({ time }) => Date.parse(time) < end);
    waiting = waiting.filter(({ time }) => Date.parse(time) >= end);
    const lines = ready
      .toSorted((a, b) => (a.time < b.time ? -1 : 1))
      .map((draft) => {
        const text = encodeLine({ id: `req_${String(number).padStart(20, "0")}`, ...draft }, prev);
        prev = hashLine(text);
        number += 1;
        return `${text}\n`;
      });
    writeSync(fd, lines.join(""));
  }
  closeSync(fd);
}

function nameWork(work: Work, person: number): Work {
  return person === 0 ? work : { ...work, key: `${work.key}-${person + 1}` };
}

function draftDay(work: Work, midnight: number, pick: Dice): Draft[] {
  const isWeekend = [0, 6].includes(new Date(midnight).getUTCDay());
  const sessions = isWeekend && work.key !== "ci" ? pick(2) : work.sessions + pick(2);
  return Array.from({ length: sessions }, () =>
    draftSession(work, midnight + MORNING_MS + pick(10 * 3_600_000), pick),
  ).flat();
}

function draftSession(work: Work, start: number, pick: Dice): Draft[] {
  const id = pick(2 ** 31)
    .toString(16)
    .padStart(12, "0");
  const session = `${(start % 2 ** 32).toString(16).padStart(8, "0")}-4b1d-4c0e-9d2f-${id}`;
  const label = pickFrom(work.labels, pick);
  const model = pickFrom(work.models, pick);
  const turns = 3 + pick(work.turns * 2 - 4);
  const named = {
    tool: work.tool,
    ...(work.tool !== "openai" && { session }),
    ...(label !== "" && { label }),
  };
  const main: Prompt = { size: 14_000 + pick(12_000), cached: 0 };
  const helper: Prompt = { size: 0, cached: 0 };
  let time = start;
  return Array.from({ length: turns }, (_, turn) => {
    time += 4000 + pick(50_000) + (pick(14) === 0 ? pick(40 * 60_000) : 0);
    const isHelper = work.tool === "claude-code" && turn % 9 > 5 && turns > 12;
    if (turn % 9 === 6) Object.assign(helper, { size: 9000 + pick(4000), cached: 0 });
    const agent = isHelper ? { agent: `explore-${Math.floor(turn / 9) + 1}` } : {};
    const prompt = isHelper ? helper : main;
    const { cached } = prompt;
    const isMissed = cached > 12_000 && pick(28) === 0;
    growPrompt(prompt, 300 + pick(5200));
    const client: ClientIdentity = { ...named, ...agent };
    return draftRequest(work, { time, model, client, size: prompt.size, cached, isMissed, pick });
  });
}

interface Prompt {
  size: number;
  cached: number;
}

/** A long one is made short, and begins a new cache. */
function growPrompt(prompt: Prompt, added: number): void {
  prompt.size += added;
  prompt.cached = prompt.size;
  if (prompt.size > 150_000) Object.assign(prompt, { size: 30_000, cached: 0 });
}

function pickFrom(names: readonly string[], pick: Dice): string {
  return names[pick(names.length)] ?? "";
}

interface Turn {
  readonly time: number;
  readonly model: string;
  readonly client: ClientIdentity;
  readonly size: number;
  readonly cached: number;
  readonly isMissed: boolean;
  readonly pick: Dice;
}

function draftRequest(work: Work, { time, model, client, size, cached, isMissed, pick }: Turn): Draft {
  const isFailed = pick(140) === 0;
  const read = isMissed ? 0 : Math.min(cached, size);
  const output = 60 + pick(10) * pick(260);
  const usage = makeUsage(work, { read, fresh: size - read, output, input: 12 + pick(80) });
  const charge = computeCharge({
    parts: isFailed ? [] : [{ model: null, pass: "message", usage }],
    tariff: {},
    model,
    requested: model,
    book,
    overrides: new Map(),
    at: new Date(time),
    multiplier: work.multiplier,
  });
  const cause = CAUSES[pick(CAUSES.length)] ?? CAUSES[0];
  const missed = { usage: charge.usage, prices: charge.prices, multiplier: work.multiplier };
  const isSpare = work.channel === "anthropic-main" && pick(15) === 0;
  return {
    time: new Date(time).toISOString(),
    key: work.key,
    group: work.group,
    platform: work.platform,
    channel: isSpare ? "anthropic-spare" : work.channel,
    endpoint: work.platform === "messages" ? "/v1/messages" : "/v1/responses",
    model,
    stream: true,
    basis: charge.official === null ? "unpriced" : "exact",
    usage: charge.usage,
    raw_usage: null,
    prices: charge.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: charge.official,
    multiplier: work.multiplier,
    charge_usd: charge.charge,
    duration_ms: 900 + output * 9 + pick(4000),
    client,
    ...(isMissed &&
      !isFailed && { cache: { missed: cached, usd: deriveMissCost(missed, cached), ...cause } }),
    ...describeEnd(work, isFailed, {
      model,
      wait: 350 + pick(700) + Math.floor((size - read) / 60),
      isLeft: pick(90) === 0,
    }),
  };
}

type Counts = Readonly<Record<"read" | "fresh" | "output" | "input", number>>;

function makeUsage({ platform }: Work, { read, fresh, output, input }: Counts): Usage {
  return platform === "messages"
    ? { input, cache_read: read, cache_write_5m: fresh, output }
    : { input: fresh, cache_read: read, output, reasoning: Math.floor(output / 3) };
}

interface End {
  readonly model: string;
  readonly wait: number;
  readonly isLeft: boolean;
}

function describeEnd({ channel }: Work, isFailed: boolean, { model, wait, isLeft }: End) {
  const status = isFailed ? 529 : 200;
  const attempts = [{ channel, status }];
  if (isFailed)
    return {
      outcome: "upstream_error",
      upstream_model: null,
      status,
      first_byte_ms: null,
      attempts,
    } as const;
  const outcome = isLeft ? "client_closed" : "complete";
  return { outcome, upstream_model: model, status, first_byte_ms: wait, attempts } as const;
}

if (import.meta.main) {
  const [path = "ledger.jsonl", people = "1", days = "61"] = process.argv.slice(2);
  makeMonth(path, Date.now(), { people: Number(people), days: Number(days) });
}
