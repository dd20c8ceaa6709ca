// Writes a ledger of many right lines such as a busy year makes them, to measure
// reports and verify with: bun test/billing/ledger/ledger-make.ts PATH LINES

import { closeSync, openSync, writeSync } from "node:fs";

import { type Charge, computeCharge } from "../../../src/billing/charge.ts";
import {
  type ClientIdentity,
  encodeLine,
  GENESIS,
  hashLine,
  type LineDraft,
} from "../../../src/billing/ledger/line.ts";
import { loadPriceBook } from "../../../src/billing/prices.ts";
import type { Part, Usage } from "../../../src/billing/usage.ts";
import { createIdSource } from "../../../src/gateway/intake/call.ts";

const START = Date.parse("2026-01-01T00:00:00Z");
const STEP_MS = 29_000;
const book = loadPriceBook();

/** The same numbers each time; `pick(n)` is one of 0 … n - 1. */
function createDice(): (sides: number) => number {
  let state = 1;
  return (sides) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * sides);
  };
}
const pick = createDice();

interface Group {
  readonly name: string;
  readonly platform: "messages" | "openai";
  readonly multiplier: string;
  readonly channels: readonly string[];
  /** What the client asks for, and what answers. */
  readonly models: readonly (readonly [asked: string, answers: string])[];
}

const GROUPS: readonly Group[] = [
  {
    name: "claude",
    platform: "messages",
    multiplier: "1",
    channels: ["anthropic-main", "anthropic-spare"],
    models: [
      ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"],
      ["claude-haiku-4-5", "claude-haiku-4-5-20251001"],
      ["claude-opus-4-5", "claude-opus-4-5-20251101"],
    ],
  },
  {
    name: "team",
    platform: "messages",
    multiplier: "0.85",
    channels: ["anthropic-team"],
    models: [
      ["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"],
      ["claude-haiku-4-5", "claude-haiku-4-5-20251001"],
    ],
  },
  {
    name: "codex",
    platform: "openai",
    multiplier: "1.25",
    channels: ["openai-main"],
    models: [
      ["gpt-5.1-codex", "gpt-5.1-codex"],
      ["gpt-5-mini", "gpt-5-mini-2025-08-07"],
      ["house-model", "house-model"],
    ],
  },
];

function pickCounts(): { input: number; cached: number; written: number; output: number; thought: number } {
  const output = 1 + pick(10 ** (1 + pick(4)));
  return {
    input: 1 + pick(10 ** (1 + pick(4))),
    cached: pick(4) === 0 ? 0 : pick(160_000),
    written: pick(3) === 0 ? 0 : pick(8000),
    output,
    thought: pick(2) === 0 ? 0 : Math.floor(output / 3),
  };
}

interface MadeUsage {
  readonly usage: Usage;
  readonly raw: unknown;
}

function makeUsage({ platform }: Group): MadeUsage {
  const { input, cached, written, output, thought } = pickCounts();
  if (platform === "openai") {
    return {
      usage: { input, cache_read: cached, output, reasoning: thought },
      raw: {
        input_tokens: input + cached,
        input_tokens_details: { cached_tokens: cached },
        output_tokens: output,
        output_tokens_details: { reasoning_tokens: thought },
        total_tokens: input + cached + output,
      },
    };
  }
  const hour = pick(5) === 0 ? written : 0;
  const searches = pick(40) === 0 ? 1 + pick(3) : 0;
  const usage = { input, cache_read: cached, cache_write_5m: written - hour, cache_write_1h: hour, output };
  return {
    usage: searches === 0 ? usage : { ...usage, web_search: searches },
    raw: {
      input_tokens: input,
      cache_creation_input_tokens: written,
      cache_read_input_tokens: cached,
      cache_creation: { ephemeral_5m_input_tokens: written - hour, ephemeral_1h_input_tokens: hour },
      output_tokens: output,
      service_tier: "standard",
      inference_geo: "not_available",
      ...(searches === 0 ? {} : { server_tool_use: { web_search_requests: searches } }),
    },
  };
}

interface End extends Pick<LineDraft, "outcome" | "status"> {
  readonly basis: "exact" | "partial" | "unknown";
}

/** How requests end, in a hundred. */
function pickEnd(): End {
  const chance = pick(100);
  if (chance < 2) return { outcome: "upstream_error", status: 529, basis: "exact" };
  if (chance < 3) return { outcome: "upstream_cut", status: 502, basis: "unknown" };
  if (chance < 6) return { outcome: "client_closed", status: 200, basis: "partial" };
  return { outcome: "complete", status: 200, basis: "exact" };
}

function pickFrom<T>(choices: readonly T[]): T {
  const choice = choices[pick(choices.length)];
  if (choice === undefined) throw new Error("nothing to choose from");
  return choice;
}

function pickCharge(group: Group, model: string, usage: Usage | null, time: number): Charge {
  const isAdvised = group.platform === "messages" && pick(100) === 0;
  const advice: Part = { model: "claude-opus-4-5", pass: "advisor_message", usage: makeUsage(group).usage };
  const own: Part[] = usage === null ? [] : [{ model: null, pass: "message", usage }];
  return computeCharge({
    parts: isAdvised && usage !== null ? [advice, ...own] : own,
    tariff: group.platform === "openai" && pick(50) === 0 ? { service_tier: "flex" } : {},
    model,
    requested: model,
    book,
    overrides: new Map(),
    at: new Date(time),
    multiplier: group.multiplier,
  });
}

function draftMoney(group: Group, model: string, { status, basis }: End, time: number) {
  const reported = status === 200 ? makeUsage(group) : null;
  const charge = pickCharge(group, model, reported?.usage ?? null, time);
  const isUnpriced = charge.official === null;
  const amounts = basis === "unknown" ? { prices: null, official: null, charge: null } : charge;
  return {
    basis: isUnpriced ? ("unpriced" as const) : basis,
    usage: charge.usage,
    parts: charge.parts.length > 1 ? [...charge.parts] : undefined,
    raw_usage: reported === null ? null : JSON.stringify(reported.raw),
    prices: amounts.prices,
    price_source: charge.priceSource,
    tier: charge.tier,
    official_usd: amounts.official,
    multiplier: group.multiplier,
    charge_usd: amounts.charge,
    extra: {
      ...(basis === "partial" ? { estimated: ["output"] } : {}),
      ...(isUnpriced ? { unpriced_because: charge.unpricedBecause } : {}),
    },
  };
}

/** Sessions of about a hundred requests, a third of them by subagents. */
function pickClient({ platform }: Group, time: number): ClientIdentity {
  const day = Math.floor(time / 86_400_000);
  const session = `${day.toString(16).padStart(8, "0")}-105b-464a-ba35-e8c230eff${pick(30) + 100}`;
  const label = pick(2) === 0 ? "gateway" : "größe";
  if (platform === "openai")
    return pick(4) === 0 ? { tool: "openai", session, inferred: true } : { tool: "codex", session };
  const agent = `agent-${day}-${pick(4)}`;
  if (pick(3) > 0) return { tool: "claude-code", session, label };
  return pick(3) > 0
    ? { tool: "claude-code", session, agent, label }
    : { tool: "claude-code", session, agent: `${agent}-${pick(3)}`, parent: agent, label };
}

function draft(id: string, time: number, keys: readonly string[]): LineDraft {
  const group = pickFrom(GROUPS);
  const [asked, answers] = pickFrom(group.models);
  const channel = pickFrom(group.channels);
  const end = pickEnd();
  const duration = 400 + pick(30_000);
  const answer = { channel, status: end.status ?? 0 };
  return {
    id,
    time: new Date(time).toISOString(),
    key: pickFrom(keys),
    group: group.name,
    platform: group.platform,
    channel,
    endpoint: group.platform === "messages" ? "/v1/messages" : "/v1/responses",
    model: asked,
    upstream_model: end.status === 200 ? answers : null,
    stream: pick(10) > 0,
    status: end.status,
    outcome: end.outcome,
    ...draftMoney(group, answers, end, time),
    first_byte_ms: end.status === 200 ? Math.floor(duration / 8) : null,
    duration_ms: duration,
    attempts: pick(30) === 0 ? [{ channel, status: 529 }, answer] : [answer],
    client: pickClient(group, time),
    upstream_request_id:
      end.status === 200
        ? `req_011C${pick(2 ** 32)
            .toString(36)
            .padStart(20, "0")}`
        : undefined,
  };
}

export interface LedgerShape {
  /** When the first request came, and how far requests are apart. */
  readonly start?: number;
  readonly stepMs?: number;
  readonly keys?: readonly string[];
}

const KEYS = Array.from({ length: 20 }, (_, index) => `key-${index}`);

export function makeLedger(
  path: string,
  lines: number,
  { start = START, stepMs = STEP_MS, keys = KEYS }: LedgerShape = {},
): void {
  const fd = openSync(path, "w", 0o600);
  let time = start;
  const newId = createIdSource(() => time);
  let prev = GENESIS;
  let texts: string[] = [];
  for (let number = 1; number <= lines; number += 1) {
    time += pick(2 * stepMs);
    const text = encodeLine(draft(newId(), time, keys), prev);
    prev = hashLine(text);
    texts.push(text);
    if (texts.length === 1000 || number === lines) {
      writeSync(fd, `${texts.join("\n")}\n`);
      texts = [];
    }
  }
  closeSync(fd);
}

if (import.meta.main) makeLedger(process.argv[2] ?? "ledger.jsonl", Number(process.argv[3] ?? 1_000_000));
