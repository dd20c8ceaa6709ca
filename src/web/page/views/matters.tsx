// What needs attention: limits, channels, plans, failures, models without a price.

import type { ComponentChildren } from "preact";
import { describeChange } from "../../../billing/reports/words.ts";
import { computePercent, parseUsd } from "../../../lib/money.ts";
import type { LimitRow, OverviewReply } from "../../../gateway/api/documents.ts";
import type { Document } from "../../../gateway/api/reports.ts";
import type { ChannelView } from "../../../gateway/channels/view.ts";
import type { RequestRecord } from "../../../gateway/observe/observer.ts";
import { hrefOf } from "../state/route.ts";
import type { LiveState } from "../state/live.ts";
import { useData, useLive, useNow } from "../state/use.ts";
import { TONES } from "./channels.tsx";
import { Amount } from "../parts/basic.tsx";
import { formatCount, formatSpan, isFailed, localize, nameLimit } from "../parts/format.ts";

export function StatusStrip({ data }: { readonly data: OverviewReply }) {
  const live = useLive();
  const now = useNow(10_000);
  const { data: versions } = useData<Document<"versions">>("reports/versions");
  const matters = listMatters({ ...data, ...versions }, live, now);
  if (live.connection !== "open") return null;
  return (
    <section class={`status ${matters[0]?.tone ?? "good"}`} aria-label="Status">
      {matters.length === 0 ? (
        <p>
          <span class="dot" aria-hidden="true" />
          Everything is in order: no limit is near, no channel fails, and no request of the last hour failed.
        </p>
      ) : (
        <ul>
          {matters.map(({ tone, title, text, to: [path, query] }, index) => (
            <li key={index} class={tone}>
              <span class="dot" aria-hidden="true" />
              <a href={hrefOf(path, query)}>{title}</a> <span class="matter">{text}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

interface Matter {
  readonly tone: "bad" | "warn";
  readonly title: string;
  readonly text: ComponentChildren;
  readonly to: readonly [path: readonly string[], query?: Readonly<Record<string, string>>];
}

function listMatters(
  {
    limits,
    unpriced,
    changes = [],
  }: Pick<OverviewReply, "limits" | "unpriced"> & Partial<Document<"versions">>,
  live: LiveState,
  now: number,
): Matter[] {
  const channels = live.channels.flatMap((channel) => describeChannel(channel, now));
  const named = new Set<string | null>(channels.map(({ title }) => title));
  const matters = [
    ...limits.toSorted(compareNearness).flatMap((row) => describeLimit(row, now)),
    ...channels,
    ...live.channels.flatMap((channel) => describePlan(channel, now)),
    ...describeProblems(
      live.requests.filter(({ channel }) => !named.has(channel)),
      now,
      limits.some(({ left_usd: left }) => left === "0"),
    ),
    ...unpriced.map(({ name, requests }): Matter => ({
      tone: "warn",
      title: name,
      text:
        `has no price, so ${formatCount(requests)} ` +
        `${requests === 1 ? "request is" : "requests are"} in no sum`,
      to: [[], { period: "30d", model: name }],
    })),
    ...changes.map((change): Matter => ({
      tone: "warn",
      title: change.tool,
      text: describeChange(change).slice(change.tool.length + 1),
      to: [[], { period: "7d", tool: change.tool }],
    })),
  ];
  return matters.toSorted((a, b) => Number(b.tone === "bad") - Number(a.tone === "bad"));
}

export function compareNearness(a: LimitRow, b: LimitRow): number {
  return readPercent(b) - readPercent(a);
}

export function readPercent({ usd, spent_usd: spent }: LimitRow): number {
  return computePercent(parseUsd(spent), parseUsd(usd));
}

function describeLimit(row: LimitRow, now: number): Matter[] {
  const { holder, limit, usd, spent_usd: spent, left_usd: left, resets, warning } = row;
  const isSpent = left === "0";
  if (!isSpent && warning === null) return [];
  const end = resets === null ? "" : `, resets in ${formatSpan(Date.parse(resets) - now)}`;
  const state = isSpent ? " is spent: requests are refused" : `, ${Math.floor(readPercent(row))} % spent`;
  return [
    {
      tone: isSpent ? "bad" : "warn",
      title: holder.kind === "key" ? holder.name : `${holder.kind} ${holder.name}`,
      text: (
        <>
          <Amount usd={spent} /> of <Amount usd={usd} /> {`${nameLimit(limit)}${state}${end}`}
        </>
      ),
      to: [["keys"], { [holder.kind]: holder.name }],
    },
  ];
}

function describeChannel({ name, state, until, reason }: ChannelView, now: number): Matter[] {
  const tone = TONES[state];
  if (tone !== "warn" && tone !== "bad") return [];
  const left = until === null ? "" : ` for ${formatSpan(Date.parse(until) - now)} more`;
  const text = `is ${state}${left}${reason === null ? "" : `: ${reason}`}`;
  return [{ tone, title: name, text, to: [["channels"], { channel: name }] }];
}

const NEAR_PERCENT = 80;

function describePlan({ name, allowance = [] }: ChannelView, now: number): Matter[] {
  return allowance.flatMap(({ kind, name: window, used, resets }) => {
    if (kind !== "window" || used === null || used < NEAR_PERCENT) return [];
    const end = resets === null ? "" : `, resets in ${formatSpan(Date.parse(resets) - now)}`;
    return [
      {
        tone: used >= 100 ? ("bad" as const) : ("warn" as const),
        title: name,
        text: `the plan's window of ${window} is ${used} % used${end}`,
        to: [["channels"], { channel: name }],
      },
    ];
  });
}

const HOUR_MS = 3_600_000;

/** A spent limit already says why requests are refused. */
function describeProblems(requests: readonly RequestRecord[], now: number, isLimitSpent: boolean): Matter[] {
  const recent = requests.filter(({ time, durationMs }) => now - time - durationMs < HOUR_MS);
  const describe = (words: string, isOne: (outcome: string) => boolean): Matter[] => {
    const [last, ...others] = recent.filter(({ outcome }) => isOne(outcome));
    if (last === undefined) return [];
    return [
      {
        tone: "warn",
        title: `${formatCount(others.length + 1)} of ${formatCount(recent.length)} requests ${words}`,
        text: `in the last hour. The last one: ${localize(last.problem ?? `status ${last.status}`)}`,
        to: [["requests", last.id], { period: "today" }],
      },
    ];
  };
  const failed = describe("failed", isFailed);
  return isLimitSpent ? failed : [...failed, ...describe("refused", (outcome) => outcome === "refused")];
}
