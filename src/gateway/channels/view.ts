// What people see of a channel.

import type { Amounts } from "../../billing/ledger/shares.ts";
import type { Catalog, Channel } from "../../config/catalog.ts";
import { formatUsd } from "../../lib/money.ts";
import type { Allowance } from "../../lib/text/allowance.ts";
import { explainFailure } from "../upstream/failures.ts";
import { listAllowances } from "./allowances.ts";
import {
  type ChannelRecord,
  type Count,
  countMinutes,
  createRecord,
  findRest,
  isWell,
  stateOf,
} from "./record.ts";

export const CHANNEL_STATES = [
  "available",
  "degraded",
  "resting",
  "unavailable",
  "disabled",
  "unknown",
] as const;

export interface ChannelView {
  readonly name: string;
  readonly platform: string;
  readonly groups: readonly string[];
  readonly state: (typeof CHANNEL_STATES)[number];
  readonly since: string | null;
  readonly reason: string | null;
  readonly until: string | null;
  /** Of the last ten minutes, from 0 to 1; null without a request. */
  readonly success_rate: number | null;
  readonly latency_ms: number | null;
  readonly latency_p95_ms: number | null;
  readonly requests_hour: number;
  readonly errors_hour: number;
  readonly charge_today_usd: string;
  /** What a plan paid today. It is not part of the charge. */
  readonly paid_by_plan_today_usd?: string;
  /** Channels at the same address share them. */
  readonly connections: {
    readonly open: number;
    readonly idle: number;
  };
  /** In steps of five minutes, oldest first. */
  readonly hour: readonly Count[];
  readonly day: readonly Count[];
  readonly allowance?: readonly Allowance[];
}
export type ChannelState = ChannelView["state"];

const RATE_MINUTES = 10;
const MIN_REQUESTS = 5;
const MIN_DEGRADED_SHARE = 0.2;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

interface Condition {
  readonly state: ChannelState;
  readonly reason: string | null;
  readonly until: number | null;
}

export function describeWithoutGateway(
  { channels }: Catalog,
  channelDay: (name: string) => Amounts,
  now: number,
): ChannelView[] {
  return [...channels.values()].map((channel) =>
    describeChannel(channel, createRecord(channel.name, ""), {
      amounts: channelDay(channel.name),
      connections: { open: 0, idle: 0 },
      now,
    }),
  );
}

export function describeChannel(
  channel: Channel,
  record: ChannelRecord,
  {
    amounts: { charged, byPlan },
    connections,
    now,
  }: Pick<ChannelView, "connections"> & { readonly amounts: Amounts; readonly now: number },
): ChannelView {
  const { state, reason, until } = updateCondition(channel, record, now);
  const recent = countMinutes(record, RATE_MINUTES, now);
  const { requests, errors } = countMinutes(record, 60, now);
  const allowance = listAllowances(record, now);
  const endOfHour = (Math.floor(now / HOUR_MS) + 1) * HOUR_MS - 1;
  return {
    name: channel.name,
    platform: channel.platform,
    groups: [...channel.groups],
    state,
    since: state === "unknown" ? null : new Date(record.shown.since).toISOString(),
    reason,
    until: until === null ? null : new Date(until).toISOString(),
    // Requests of earlier minutes may fail now, so there can be more errors than requests.
    success_rate: recent.requests === 0 ? null : Math.max(0, 1 - recent.errors / recent.requests),
    latency_ms: findQuantile(record, 0.5),
    latency_p95_ms: findQuantile(record, 0.95),
    requests_hour: requests,
    errors_hour: errors,
    connections,
    charge_today_usd: formatUsd(charged),
    ...(byPlan > 0n && { paid_by_plan_today_usd: formatUsd(byPlan) }),
    hour: listSteps(12, (back) => countMinutes(record, 5, now - 5 * back * MINUTE_MS)),
    day: listSteps(24, (back) => countMinutes(record, 60, endOfHour - back * HOUR_MS)),
    ...(allowance.length > 0 && { allowance }),
  };
}

function listSteps(steps: number, count: (back: number) => Count): Count[] {
  return Array.from({ length: steps }, (_, index) => count(steps - 1 - index));
}

function findQuantile({ firstBytes }: ChannelRecord, share: number): number | null {
  const sorted = firstBytes.toSorted((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return found === undefined ? null : Math.round(found);
}

export function updateCondition(channel: Channel, record: ChannelRecord, now: number): Condition {
  const condition = judgeCondition(channel, record, now, explainFailure);
  if (record.shown.state !== condition.state) record.shown = { state: condition.state, since: now };
  return condition;
}

/** For the log. It leaves out an upstream's words, which could repeat a prompt. */
export function nameCondition(channel: Channel, record: ChannelRecord, now: number): string {
  const name: Explain = ({ because, status, message }) => `${because}: ${status ?? message}`;
  return judgeCondition(channel, record, now, name).reason ?? "";
}

type Explain = typeof explainFailure;

function judgeCondition(channel: Channel, record: ChannelRecord, now: number, explain: Explain): Condition {
  if (channel.lack !== null) return { state: "unavailable", reason: channel.lack, until: null };
  if (channel.disabled) return { state: "disabled", reason: "in the config file", until: null };
  if (record.disabled) return { state: "disabled", reason: "by command", until: null };
  if (isWell(record)) return judgeRecent(record, now);
  const rest = findRest(record, null, now);
  if (rest !== null) return { state: stateOf(rest), reason: explain(rest.failure), until: rest.until };
  const over = record.whole;
  if (over !== null && over.until > 0 && !over.isNamed) {
    const reason = `${explain(over.failure)} (tried again with the next request)`;
    return { state: stateOf(over), reason, until: null };
  }
  return judgeModels(record, now, explain) ?? judgeRecent(record, now);
}

/** If another model has answered since,
 *  a channel with resting models is just `degraded`. */
function judgeModels(record: ChannelRecord, now: number, explain: Explain): Condition | null {
  const resting = [...record.models].filter(([model]) => findRest(record, model, now) !== null);
  const [first] = resting;
  if (first === undefined) return null;
  const until = Math.max(...resting.map(([, rest]) => rest.until));
  const names = resting.map(([model]) => model).join(", ");
  const answersOthers = resting.every(([, { since }]) => record.lastAnswer > since);
  const state = answersOthers ? "degraded" : stateOf(first[1]);
  return { state, reason: `${explain(first[1].failure)} (${names})`, until };
}

function judgeRecent(record: ChannelRecord, now: number): Condition {
  const { requests, errors } = countMinutes(record, RATE_MINUTES, now);
  const hasProof = requests >= MIN_REQUESTS || record.whole !== null;
  const isUnreliable = errors / requests >= MIN_DEGRADED_SHARE && hasProof;
  if (errors > 0 && isUnreliable) {
    const reason = `${errors} of ${requests} failed in the last ${RATE_MINUTES} minutes, most recently it ${record.lastError}`;
    return { state: "degraded", reason, until: null };
  }
  return { state: record.lastAnswer > 0 ? "available" : "unknown", reason: null, until: null };
}
