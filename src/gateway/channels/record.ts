// What the gateway knows of one channel.

import { z } from "zod";
import type { Channel } from "../../config/catalog.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { parseJson } from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { FailureCause, Failure } from "../upstream/failures.ts";

export interface Rest {
  readonly failure: Failure;
  /** The cause was responses that broke off,
   *  so only a complete response ends this rest early. */
  readonly isBreak: boolean;
  readonly since: number;
  readonly at: number;
  /** When the rest ends. 0: no rest yet, but a few more failures begin one. */
  readonly until: number;
  /** The upstream named `until`. Otherwise, single trials are sent. */
  readonly isNamed: boolean;
  readonly strikes: number;
  /** Until then, a trial runs: other requests use other channels. */
  trialUntil: number;
}

const countSchema = z.lazy(() => z.object({ requests: z.number(), errors: z.number() }));

export type Count = z.infer<typeof countSchema>;

/** Files of version 0.2 lack the last two members. */
const fileSchema = z.lazy(() =>
  z.object({
    channels: z.array(
      z.object({
        name: z.string(),
        /** A hash of base URL and credential. */
        identity: z.string(),
        disabled: z.boolean(),
        lastAnswer: z.number().catch(0),
        minutes: z.array(z.tuple([z.number(), countSchema])).catch([]),
      }),
    ),
  }),
);

type Saved = z.infer<typeof fileSchema>["channels"][number];

export interface ChannelRecord extends Omit<Saved, "minutes"> {
  readonly minutes: Map<number, Count>;
  whole: Rest | null;
  /** The upstream's name of a model is the key. */
  readonly models: Map<string, Rest>;
  lastError: string;
  shown: { readonly state: string; readonly since: number };
  readonly firstBytes: number[];
  head: { readonly fields: Fields; readonly seen: number } | null;
}

const MINUTE_MS = 60_000;
const MINUTES_OF_DAY = 24 * 60;
const MAX_MODELS = 64;
export const MAX_FIRST_BYTES = 256;

export function createRecord(name: string, identity: string): ChannelRecord {
  return {
    name,
    identity,
    disabled: false,
    whole: null,
    models: new BoundedMap(MAX_MODELS),
    minutes: new BoundedMap(MINUTES_OF_DAY),
    firstBytes: [],
    lastAnswer: 0,
    lastError: "",
    shown: { state: "unknown", since: 0 },
    head: null,
  };
}

const identities = new WeakMap<Channel, string>();

export function identify(channel: Channel): string {
  return identities.getOrInsertComputed(channel, ({ baseUrl, credential }) =>
    sha256Hex(`${baseUrl.href}\n${credential}`).slice(0, 16),
  );
}

export function writeRecords(records: Iterable<ChannelRecord>): string {
  const channels = [...records].map(({ name, identity, disabled, lastAnswer, minutes }): Saved => {
    return { name, identity, disabled, lastAnswer, minutes: [...minutes] };
  });
  return `${JSON.stringify({ v: 3, channels })}\n`;
}

export function readRecords(text: string): ChannelRecord[] {
  const { channels = [] } = fileSchema.safeParse(parseJson(text)).data ?? {};
  return channels.map(({ minutes, ...saved }) => {
    const record = { ...createRecord(saved.name, saved.identity), ...saved };
    for (const [minute, count] of minutes) record.minutes.set(minute, count);
    return record;
  });
}

interface Policy {
  readonly scope: "channel" | "model";
  readonly state: "resting" | "unavailable";
  readonly strikes: number;
  /** How long the first rest is if the upstream names no time.
   *  Later failures double it. */
  readonly firstMs: number;
  readonly longestMs: number;
}

/** docs/failures.md has the same table. */
const POLICIES: Record<FailureCause, Policy> = {
  credential: {
    scope: "channel",
    state: "unavailable",
    strikes: 1,
    firstMs: 5000,
    longestMs: 300_000,
  },
  credit: {
    scope: "channel",
    state: "unavailable",
    strikes: 1,
    firstMs: 30_000,
    longestMs: 600_000,
  },
  unreachable: {
    scope: "channel",
    state: "unavailable",
    strikes: 1,
    firstMs: 1000,
    longestMs: 60_000,
  },
  rate: { scope: "model", state: "resting", strikes: 1, firstMs: 2000, longestMs: 60_000 },
  overload: { scope: "model", state: "resting", strikes: 1, firstMs: 1000, longestMs: 30_000 },
  timeout: { scope: "model", state: "resting", strikes: 1, firstMs: 5000, longestMs: 60_000 },
  server: { scope: "channel", state: "resting", strikes: 3, firstMs: 1000, longestMs: 60_000 },
  broken: { scope: "channel", state: "resting", strikes: 3, firstMs: 1000, longestMs: 60_000 },
};

export const TRIAL_MS = 2000;

export interface FailureSeen {
  readonly failure: Failure;
  readonly model: string | null;
  readonly now: number;
  readonly random: () => number;
  readonly isBreak?: true;
}

export function noteFailure(record: ChannelRecord, seen: FailureSeen): void {
  const { failure, model } = seen;
  const isWhole = model === null || POLICIES[failure.cause].scope === "channel";
  const before = isWhole ? record.whole : record.models.get(model);
  const rest = extendRest(before ?? null, seen);
  setTrial(record, model, 0);
  if (isWhole) record.whole = rest;
  else record.models.set(model, rest);
}

export function stateOf({ failure }: Rest): Policy["state"] {
  return POLICIES[failure.cause].state;
}

/** Some upstreams name many hours, but one request an hour does no harm. */
const MAX_REST_MS = 60 * MINUTE_MS;

function extendRest(before: Rest | null, seen: FailureSeen): Rest {
  const { failure, now, isBreak = false } = seen;
  // During a rest, failures of older requests do not count.
  const isLate = before !== null && isInForce(before, now) && now >= before.trialUntil;
  const strikes = (before?.strikes ?? 0) + (isLate ? 0 : 1);
  const { ms, isNamed } = chooseWait(strikes, seen);
  const until = ms === null ? 0 : Math.round(now + ms);
  if (isLate && before.until >= until) return before;
  const since = before?.since ?? now;
  return { failure, isBreak, since, at: now, until, isNamed, strikes, trialUntil: 0 };
}

function chooseWait(strikes: number, { failure, random }: FailureSeen) {
  const { cause, waitMs, waitIsHidden } = failure;
  const policy = POLICIES[cause];
  if (waitMs !== null) return { ms: Math.min(waitMs, MAX_REST_MS), isNamed: !waitIsHidden };
  if (strikes < policy.strikes) return { ms: null, isNamed: false };
  const doubled = policy.firstMs * 2 ** Math.min(30, strikes - policy.strikes);
  // Half is random, so that waiting clients do not all return at once.
  return { ms: Math.min(policy.longestMs, doubled) * (0.5 + random() / 2), isNamed: false };
}

/** False for a rest from the future: the clock was set back. */
function isInForce({ at, until, trialUntil }: Rest, now: number): boolean {
  const isSet = until > 0 && now >= at && until - now <= MAX_REST_MS;
  return isSet && (now < until || now < trialUntil);
}

export function noteAnswer(record: ChannelRecord, model: string | null, now: number): void {
  record.lastAnswer = now;
  if (isWell(record)) return;
  // During a named rest, an answer belongs to an earlier request.
  const isOver = (rest: Rest | undefined | null) => !rest?.isNamed || !isInForce(rest, now);
  if (record.whole?.isBreak !== true && isOver(record.whole)) record.whole = null;
  if (model !== null && isOver(record.models.get(model))) record.models.delete(model);
}

export function isWell({ whole, models }: ChannelRecord): boolean {
  return whole === null && models.size === 0;
}

export function findRest(record: ChannelRecord, model: string | null, now: number): Rest | null {
  const byTime = listRests(record, model, now).toSorted((a, b) => b.until - a.until);
  return byTime.find(({ isNamed }) => isNamed) ?? byTime[0] ?? null;
}

function listRests({ whole, models }: ChannelRecord, model: string | null, now: number): Rest[] {
  const rests = [whole ?? [], (model === null ? null : models.get(model)) ?? []].flat();
  return rests.filter((rest) => isInForce(rest, now));
}

/** `trial`: one request may try it, if no other channel is left. */
export type Readiness = "open" | "closed" | "trial";

export function readinessOf(record: ChannelRecord, model: string | null, now: number): Readiness {
  if (record.disabled) return "closed";
  if (isWell(record)) return "open";
  const rests = listRests(record, model, now);
  if (rests.length === 0) return "open";
  const isClosed = ({ isNamed, until, trialUntil }: Rest) => isNamed || now < Math.min(until, trialUntil);
  return rests.some(isClosed) ? "closed" : "trial";
}

/** An `until` of 0 ends the trial.
 *  In a rest with `isBreak`, `trialUntil` stays 0. */
export function setTrial({ whole, models }: ChannelRecord, model: string | null, until: number): void {
  const own = model === null ? undefined : models.get(model);
  if (whole?.isNamed === false && !whole.isBreak) whole.trialUntil = until;
  if (own?.isNamed === false) own.trialUntil = until;
}

export function countIn(record: ChannelRecord, what: "requests" | "errors", now: number): void {
  const minute = Math.floor(now / MINUTE_MS);
  let count = record.minutes.get(minute);
  if (count === undefined) record.minutes.set(minute, (count = { requests: 0, errors: 0 }));
  count[what] += 1;
}

export function countMinutes(record: ChannelRecord, minutes: number, now: number): Count {
  const sum = { requests: 0, errors: 0 };
  const last = Math.floor(now / MINUTE_MS);
  for (let minute = last - minutes + 1; minute <= last; minute += 1) {
    const count = record.minutes.get(minute);
    sum.requests += count?.requests ?? 0;
    sum.errors += count?.errors ?? 0;
  }
  return sum;
}
