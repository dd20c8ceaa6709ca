// Finds what a request missed in the upstream's cache, after the response has ended.
// If this fails, the request still gets its line.

import { deriveMissCost, splitMissed } from "../../billing/charge.ts";
import type { CacheMiss, LineDraft } from "../../billing/ledger/line.ts";
import { CALL_KINDS } from "../../config/call-kinds.ts";
import { countPrompt, type Reading } from "../../billing/usage.ts";
import { hashText } from "../../dialects/prompt/blocks.ts";
import { type Prompt, SentPrompt } from "../../dialects/prompt/prompt.ts";
import type { Miss } from "../cache/judge.ts";
import type { CountedTurn } from "../cache/turn.ts";
import type { Gateway } from "../gateway.ts";
import type { Request } from "../request.ts";
import { chargeFor } from "./line.ts";

export function readPrompt({ target, prompt, client }: Request, gateway: Gateway): SentPrompt | null {
  const { dialect, purpose } = target.endpoint;
  const { contexts, catalog } = gateway;
  const isNoted = contexts !== null && catalog.context && client.session !== undefined;
  const isRead = purpose === "generate" && (catalog.cacheAnalysis || isNoted);
  if (prompt === null || !isRead) return null;
  return new SentPrompt(prompt, dialect.promptLayout);
}

interface Answered {
  readonly r: Request;
  readonly prompt: SentPrompt;
  readonly reading: Reading;
}

export function addMiss(line: LineDraft, answered: Answered, gateway: Gateway): LineDraft {
  const { cacheMemory, catalog } = gateway;
  if (!catalog.cacheAnalysis) return line;
  const counted = countTurn(line, answered);
  const { key, client } = answered.r;
  const session = `${key.name}\n${client.session ?? ""}`;
  if (!cacheMemory.needsPrompt(session, counted)) return line;
  if (!isCounted(line, answered.reading)) return line;
  const prompt = answered.prompt.read()?.prompt;
  if (prompt === undefined) return line;
  for (const name of CACHED_FIELDS) {
    const value = answered.r.exchange.field(name);
    prompt.others.set(name, value === undefined ? NO_FIELD : hashText(value));
  }
  const miss = cacheMemory.learn(session, describeTurn(line, answered, counted, prompt));
  return miss === null ? line : priceMiss(line, miss, answered, gateway);
}

function countTurn(line: LineDraft, { r, prompt, reading }: Answered): CountedTurn {
  return {
    rules: prompt.layout.rules,
    model: r.model ?? "",
    tokens: countPrompt(line.usage),
    reason: reading.cacheReason ?? null,
  };
}

function describeTurn(line: LineDraft, { r, reading }: Answered, counted: CountedTurn, prompt: Prompt) {
  const { time, client, firstByteMs } = r;
  const { service_tier = "", speed = "" } = reading.tariff;
  const id = reading.stored?.id;
  return {
    prompt,
    rules: counted.rules,
    model: counted.model,
    tokens: counted.tokens,
    reason: counted.reason,
    agent: client.agent ?? null,
    inferred: client.session === undefined || client.inferred === true,
    at: time,
    readyAt: time + (firstByteMs ?? 0),
    served: `${service_tier} ${speed}`,
    responseId: id === undefined ? null : hashText(id),
    channel: line.channel,
    isKeptLong: Number(line.usage["cache_write_12h"]) > 0,
    // Anthropic's own API leaves Claude Code's line about itself out of the prompt.
    dropsAttribution: r.tried?.channel.baseUrl.hostname === "api.anthropic.com",
  };
}

const CACHED_FIELDS = ["anthropic-beta", "anthropic-version", "openai-beta", "x-grok-conv-id"];
const NO_FIELD = hashText("");

/** Calls of the upstream's tools may count the prompt several times. */
const OWN_CALLS: ReadonlySet<string> = new Set([...CALL_KINDS, "tool_prompt"]);

function isCounted({ basis, parts, usage, estimated }: LineDraft, reading: Reading): boolean {
  const { parts: read, faults = [], loops = false } = reading;
  if (basis === "unknown" || faults.length > 0) return false;
  if (estimated?.includes("input") === true) return false;
  const hasOwnCalls = Object.keys(usage).some((kind) => OWN_CALLS.has(kind) && (usage[kind] ?? 0) > 0);
  if (loops || hasOwnCalls || parts !== undefined || read.length !== 1) return false;
  return read.every(({ calls = [] }) => calls.length < 2);
}

function priceMiss(line: LineDraft, miss: Miss, answered: Answered, gateway: Gateway): LineDraft {
  const { unproven, missed, ...cause } = miss;
  const prices = line.prices && { ...readPrices(line, missed, answered, gateway), ...line.prices };
  const { usage, multiplier } = line;
  const usd = deriveMissCost({ usage, prices, multiplier }, missed);
  // This upstream may have no cache.
  if (unproven === true && (usd === null || usd === "0")) return line;
  const cache: CacheMiss = { missed, usd, ...cause };
  return { ...line, prices, cache };
}

/** Adds the prices of cache reads, by which the miss is computed. */
function readPrices(line: LineDraft, missed: number, { r, reading }: Answered, gateway: Gateway) {
  const { paid, read } = splitMissed(line.usage, missed);
  const usage: Record<string, number> = { ...line.usage };
  for (const [kind, count] of Object.entries(paid)) usage[kind] = (usage[kind] ?? 0) - count;
  for (const [kind, count] of Object.entries(read)) usage[kind] = (usage[kind] ?? 0) + count;
  const parts = [{ model: null, pass: "message", usage }];
  const { prices } = chargeFor(r, { basis: "exact", parts }, reading, gateway);
  const kinds = Object.keys(read).filter((kind) => prices?.[kind] !== undefined);
  return Object.fromEntries(kinds.map((kind) => [kind, prices?.[kind] ?? ""]));
}
