// What the channel view (`gateway channels`) shows of a channel, computed from its memory.

import type { Amounts } from "../../billing/ledger/shares.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import type { Allowance } from "../../lib/text/allowance.ts";
import { formatUsd } from "../../lib/money.ts";
import { type ChannelMemory, createMemory, cooldownOf } from "./cooldown.ts";

export const CHANNEL_STATES = [
  "available",
  "degraded",
  "resting",
  "unavailable",
  "disabled",
  "unknown",
] as const;

/** How many requests came in a span of time, and how many of them failed. */
interface Count {
  readonly requests: number;
  readonly errors: number;
}

export interface ChannelView {
  readonly name: string;
  readonly platform: string;
  readonly groups: readonly string[];
  readonly state: (typeof CHANNEL_STATES)[number];
  /** ISO times. */
  readonly since: string | null;
  readonly reason: string | null;
  /** When the cooldown of a resting or unavailable channel ends. */
  readonly until: string | null;
  /** Of the last ten minutes, from 0 to 1; null without a request. */
  readonly success_rate: number | null;
  /** To the first byte: the median and the 95th percentile of recent responses. */
  readonly latency_ms: number | null;
  readonly latency_p95_ms: number | null;
  readonly requests_hour: number;
  readonly errors_hour: number;
  /** Days are those of `timezone`, as for limits. */
  readonly charge_today_usd: string;
  /** What a plan paid today, by official prices; absent: none did. It is no part of the charge. */
  readonly paid_by_plan_today_usd?: string;
  /** To its upstream, shared with channels at the same address. `idle` of them wait for a request. */
  readonly connections: { readonly open: number; readonly idle: number };
  /** The last hour in steps of five minutes, oldest first. */
  readonly hour: readonly Count[];
  /** The last day in steps of an hour, oldest first. */
  readonly day: readonly Count[];
  /** What is left of a plan or of a rate; absent: nothing is known. */
  readonly allowance?: readonly Allowance[];
}
export type ChannelState = ChannelView["state"];

/** Older failures say little about the current success rate. */
const RATE_MINUTES = 10;
const STEP_MINUTES = 5;
const MIN_REQUESTS = 5;
const MIN_DEGRADED_SHARE = 0.2;

interface Condition {
  readonly state: ChannelState;
  readonly reason: string | null;
  readonly until: number | null;
}

/** The view if no gateway is running. */
export function describeWithoutGateway(
  { channels }: Catalog,
  channelDay: (name: string) => Amounts,
  now: number,
): ChannelView[] {
  return [...channels.values()].map((channel) =>
    describeChannel(channel, createMemory(channel.name, ""), channelDay(channel.name), now),
  );
}

export function describeChannel(
  channel: Channel,
  memory: ChannelMemory,
  { charged, byPlan }: Amounts,
  now: number,
): ChannelView {
  const { state, since, reason, until } = updateCondition(channel, memory, now);
  const { window } = memory;
  const recent = window.hour.count(RATE_MINUTES, now);
  const hour = window.hour.steps(STEP_MINUTES, now);
  return {
    name: channel.name,
    platform: channel.platform,
    groups: [...channel.groups],
    state,
    since: state === "unknown" ? null : new Date(since).toISOString(),
    reason,
    until: until === null ? null : new Date(until).toISOString(),
    // A request that began before these minutes can fail in them.
    success_rate: recent.requests === 0 ? null : Math.max(0, 1 - recent.errors / recent.requests),
    latency_ms: window.quantile(0.5),
    latency_p95_ms: window.quantile(0.95),
    requests_hour: hour.reduce((sum, { requests }) => sum + requests, 0),
    errors_hour: hour.reduce((sum, { errors }) => sum + errors, 0),
    connections: { open: 0, idle: 0 },
    charge_today_usd: formatUsd(charged),
    ...(byPlan > 0n && { paid_by_plan_today_usd: formatUsd(byPlan) }),
    hour,
    day: window.day.steps(1, now),
  };
}

/** Judges the channel's condition and remembers when it began. */
export function updateCondition(
  channel: Channel,
  memory: ChannelMemory,
  now: number,
): Condition & { readonly since: number } {
  const condition = judgeCondition(channel, memory, now);
  const shown =
    memory.shown?.state === condition.state ? memory.shown : { state: condition.state, since: now };
  memory.shown = shown;
  return { ...condition, since: shown.since };
}

function judgeCondition(channel: Channel, memory: ChannelMemory, now: number): Condition {
  if (channel.lack !== null) return { state: "unavailable", reason: channel.lack, until: null };
  if (channel.disabled) return { state: "disabled", reason: "in the config file", until: null };
  if (memory.disabled) return { state: "disabled", reason: "by command", until: null };
  const whole = cooldownOf(memory, null, now);
  if (whole !== null) return { state: whole.state, reason: whole.reason, until: whole.until };
  if (memory.cooldown !== null && !memory.cooldown.untilIsGiven) {
    const reason = `${memory.cooldown.reason} (tried again with the next request)`;
    return { state: memory.cooldown.state, reason, until: null };
  }
  return judgeModels(memory, now) ?? judgeRecord(memory, now);
}

/** If some models are in cooldown, the channel counts as being in cooldown, unless another model responded since. */
function judgeModels(memory: ChannelMemory, now: number): Condition | null {
  if (memory.models.size === 0) return null;
  const cooling = [...memory.models].filter(([model]) => cooldownOf(memory, model, now) !== null);
  const first = cooling[0];
  if (first === undefined) return null;
  const until = Math.max(...cooling.map(([, cooldown]) => cooldown.until));
  const names = cooling.map(([model]) => model).join(", ");
  const answersOthers = cooling.every(([, cooldown]) => memory.lastAnswer > cooldown.since);
  const state = answersOthers ? "degraded" : first[1].state;
  return { state, reason: `${first[1].reason} (${names})`, until };
}

function judgeRecord(memory: ChannelMemory, now: number): Condition {
  const { requests, errors } = memory.window.hour.count(RATE_MINUTES, now);
  const last = memory.lastFailure;
  const isUnreliable =
    errors / requests >= MIN_DEGRADED_SHARE &&
    (requests >= MIN_REQUESTS || memory.strikes + memory.breaks > 0);
  if (errors > 0 && last !== null && isUnreliable) {
    const reason = `${errors} of ${requests} failed in the last ${RATE_MINUTES} minutes, most recently it ${last.reason}`;
    return { state: "degraded", reason, until: null };
  }
  const isKnown = memory.lastAnswer > 0;
  return { state: isKnown ? "available" : "unknown", reason: null, until: null };
}
