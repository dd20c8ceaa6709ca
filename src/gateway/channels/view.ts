// What the available-channels view shows of a channel, from what is remembered of it.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { formatUsd } from "../../lib/money.ts";
import { type ChannelMemory, createMemory, cooldownOf } from "./cooldown.ts";
import type { ChannelState, ChannelView } from "../control/state.ts";

/** The success rate is that of the last minutes; older failures say little of now. */
const RATE_MINUTES = 10;
const STEP_MINUTES = 5;
const FEW_REQUESTS = 5;
const DEGRADED_SHARE = 0.2;

interface Condition {
  readonly state: ChannelState;
  readonly reason: string | null;
  readonly until: number | null;
}

/** As they are seen when no gateway runs that could be asked. */
export function describeUnasked({ channels }: Catalog, now: number): ChannelView[] {
  return [...channels.values()].map((channel) =>
    describeChannel(channel, createMemory(channel.name, ""), now),
  );
}

export function describeChannel(channel: Channel, memory: ChannelMemory, now: number): ChannelView {
  const { state, since, reason, until } = updateCondition(channel, memory, now);
  const { window } = memory;
  const recent = window.count(RATE_MINUTES, now);
  const hour = window.steps(STEP_MINUTES, now);
  return {
    name: channel.name,
    platform: channel.platform,
    groups: [...channel.groups],
    state,
    since: state === "unknown" ? null : new Date(since).toISOString(),
    reason,
    until: until === null ? null : new Date(until).toISOString(),
    // What began before these minutes may break in them.
    success_rate: recent.requests === 0 ? null : Math.max(0, 1 - recent.errors / recent.requests),
    latency_ms: window.quantile(0.5),
    latency_p95_ms: window.quantile(0.95),
    requests_hour: hour.reduce((sum, { requests }) => sum + requests, 0),
    errors_hour: hour.reduce((sum, { errors }) => sum + errors, 0),
    charge_today_usd: memory.charge.day === dayOf(now) ? formatUsd(memory.charge.usd) : "0",
    hour,
  };
}

/** Keeps since when it has been so. */
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

/** UTC days since 1970. */
export function dayOf(now: number): number {
  return Math.floor(now / 86_400_000);
}

function judgeCondition(channel: Channel, memory: ChannelMemory, now: number): Condition {
  if (channel.disabled === true) return { state: "disabled", reason: "in the config file", until: null };
  if (memory.disabled) return { state: "disabled", reason: "by command", until: null };
  const whole = cooldownOf(memory, null, now);
  if (whole !== null) return { state: whole.state, reason: whole.reason, until: whole.until };
  if (memory.cooldown !== null && !memory.cooldown.untilIsGiven) {
    const reason = `${memory.cooldown.reason} (tried again with the next request)`;
    return { state: memory.cooldown.state, reason, until: null };
  }
  return judgeModels(memory, now) ?? judgeRecord(memory, now);
}

/** Some models rest: the channel does, too, unless another model has been answered since. */
function judgeModels(memory: ChannelMemory, now: number): Condition | null {
  const resting = [...memory.models].filter(([model]) => cooldownOf(memory, model, now) !== null);
  const first = resting[0];
  if (first === undefined) return null;
  const until = Math.max(...resting.map(([, rest]) => rest.until));
  const names = resting.map(([model]) => model).join(", ");
  const answersOthers = resting.every(([, rest]) => memory.lastAnswer > rest.since);
  const state = answersOthers ? "degraded" : first[1].state;
  return { state, reason: `${first[1].reason} (${names})`, until };
}

function judgeRecord(memory: ChannelMemory, now: number): Condition {
  const { requests, errors } = memory.window.count(RATE_MINUTES, now);
  const last = memory.lastFailure;
  const isShaky =
    errors / requests >= DEGRADED_SHARE && (requests >= FEW_REQUESTS || memory.strikes + memory.breaks > 0);
  if (errors > 0 && last !== null && isShaky) {
    const reason = `${errors} of ${requests} failed in the last ${RATE_MINUTES} minutes, at last it ${last.reason}`;
    return { state: "degraded", reason, until: null };
  }
  const isKnown = memory.lastAnswer > 0;
  return { state: isKnown ? "available" : "unknown", reason: null, until: null };
}
