// All that the gateway knows of one channel, and how answers and failures change it.

import { z } from "zod";
import type { Channel } from "../../config/catalog.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { parseJson } from "../../lib/json/json.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { type Cause, explainFailure, type Failure } from "../upstream/failures.ts";

/** Failures in a row, and how long a channel, or one model of it, gets no requests because of them. */
const restSchema = z.lazy(() =>
  z.object({
    state: z.enum(["resting", "unavailable"]),
    /** For all clients: without what the upstream said to one of them. */
    brief: z.string(),
    /** For the operator. */
    reason: z.string(),
    /** Of the first failure in a row, and of the last one. */
    since: z.number(),
    at: z.number(),
    /** 0: a few more failures lead to a rest. */
    until: z.number(),
    /** The upstream named `until`, and nothing is sent before. Otherwise one request at a time may have a trial. */
    isNamed: z.boolean(),
    strikes: z.number(),
    /** While a trial runs, until this time at most, other requests use other channels. */
    trialUntil: z.number(),
  }),
);

const countSchema = z.lazy(() => z.object({ requests: z.number(), errors: z.number() }));

/** What is kept between two runs of the gateway. */
const savedSchema = z.lazy(() =>
  z.object({
    name: z.string(),
    /** A hash of base URL and credential. Another upstream gets a new record. */
    identity: z.string(),
    /** By command (`gateway channels disable`). */
    isDisabled: z.boolean(),
    whole: restSchema.nullable(),
    /** Follows responses that broke off. Each of them began well, so only a complete response ends it. */
    breaks: restSchema.nullable(),
    /** By the upstream's name of a model. */
    models: z.array(z.tuple([z.string(), restSchema])),
    /** Minutes since 1970 → what happened in them, for a day. */
    minutes: z.array(z.tuple([z.number(), countSchema])),
    lastAnswer: z.number(),
    lastError: z.string(),
    /** The state that people saw last, and since when. */
    shown: z.object({ state: z.string(), since: z.number() }),
  }),
);

const fileSchema = z.lazy(() => z.object({ v: z.literal(2), channels: z.array(savedSchema) }));

/** Version 0.2: what its user has disabled stays so. */
const formerSchema = z.lazy(() =>
  z.object({
    channels: z.array(z.object({ name: z.string(), identity: z.string(), disabled: z.boolean() })),
  }),
);

type Saved = z.infer<typeof savedSchema>;
/** How many requests came in a span of time, and how many of them failed. */
export type Count = z.infer<typeof countSchema>;
/** `failure`: the last one; absent after a restart. */
export type Rest = z.infer<typeof restSchema> & { readonly failure?: Failure };

export interface ChannelRecord extends Omit<Saved, "whole" | "breaks" | "models" | "minutes"> {
  whole: Rest | null;
  breaks: Rest | null;
  readonly models: Map<string, Rest>;
  readonly minutes: Map<number, Count>;
  /** Of the last responses: milliseconds to the first byte. */
  readonly firstBytes: number[];
  /** The last answer that said what is left of a plan or a rate. */
  head: { readonly fields: Fields; readonly seen: number } | null;
  /** It has refused a WebSocket, and is not asked for one before. */
  noSocketUntil: number;
}

const MINUTE_MS = 60_000;
const MINUTES_OF_DAY = 24 * 60;
const MAX_MODELS = 64;
const MAX_FIRST_BYTES = 256;

export function createRecord(name: string, identity: string): ChannelRecord {
  return {
    name,
    identity,
    isDisabled: false,
    whole: null,
    breaks: null,
    models: new BoundedMap(MAX_MODELS),
    minutes: new BoundedMap(MINUTES_OF_DAY),
    firstBytes: [],
    lastAnswer: 0,
    lastError: "",
    shown: { state: "unknown", since: 0 },
    head: null,
    noSocketUntil: 0,
  };
}

const identities = new WeakMap<Channel, string>();

export function identify(channel: Channel): string {
  return identities.getOrInsertComputed(channel, ({ baseUrl, credential }) =>
    sha256Hex(`${baseUrl.href}\n${credential}`).slice(0, 16),
  );
}

/** An upstream's words may quote a prompt, and its answer is for one client: neither is kept. */
function omitWords(this: Partial<Rest>, name: string, value: unknown): unknown {
  if (name === "failure") return undefined;
  return name === "reason" ? this.brief : value;
}

/** The text of the file. */
export function writeRecords(records: Iterable<ChannelRecord>): string {
  const channels = [...records].map((record) => ({
    ...record,
    models: [...record.models],
    minutes: [...record.minutes],
    head: undefined,
    firstBytes: undefined,
    lastError: record.lastError && "failed",
  }));
  return `${JSON.stringify({ v: 2, channels }, omitWords)}\n`;
}

export function readRecords(text: string): ChannelRecord[] {
  const value = parseJson(text);
  const file = fileSchema.safeParse(value).data;
  if (file === undefined) {
    const former = formerSchema.safeParse(value).data?.channels ?? [];
    return former.map(({ name, identity, disabled: isDisabled }) => ({
      ...createRecord(name, identity),
      isDisabled,
    }));
  }
  return file.channels.map(({ models, minutes, ...saved }) => {
    const record = { ...createRecord(saved.name, saved.identity), ...saved };
    for (const [model, rest] of models) record.models.set(model, rest);
    for (const [minute, count] of minutes) record.minutes.set(minute, count);
    return record;
  });
}

interface Policy {
  readonly scope: "channel" | "model";
  readonly state: Rest["state"];
  /** How many failures in a row lead to a rest. */
  readonly strikes: number;
  /** The first rest if the upstream names no time. Each further failure doubles it. */
  readonly firstMs: number;
  readonly longestMs: number;
}

/** docs/failures.md has the same table. */
const POLICIES: Record<Cause, Policy> = {
  credential: { scope: "channel", state: "unavailable", strikes: 1, firstMs: 5000, longestMs: 300_000 },
  credit: { scope: "channel", state: "unavailable", strikes: 1, firstMs: 30_000, longestMs: 600_000 },
  unreachable: { scope: "channel", state: "unavailable", strikes: 1, firstMs: 1000, longestMs: 60_000 },
  rate: { scope: "model", state: "resting", strikes: 1, firstMs: 2000, longestMs: 60_000 },
  overload: { scope: "model", state: "resting", strikes: 1, firstMs: 1000, longestMs: 30_000 },
  timeout: { scope: "model", state: "resting", strikes: 1, firstMs: 5000, longestMs: 60_000 },
  server: { scope: "channel", state: "resting", strikes: 3, firstMs: 1000, longestMs: 60_000 },
  broken: { scope: "channel", state: "resting", strikes: 3, firstMs: 1000, longestMs: 60_000 },
};

/** While one request has a trial, the others use other channels for this long. */
const TRIAL_MS = 2000;

export interface FailureSeen {
  readonly failure: Failure;
  /** The upstream's name for the model. */
  readonly model: string | null;
  readonly now: number;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export function noteFailure(record: ChannelRecord, seen: FailureSeen): void {
  const { failure, model } = seen;
  const policy = POLICIES[failure.cause];
  record.lastError = explainFailure(failure);
  const before = policy.scope === "channel" || model === null ? record.whole : record.models.get(model);
  const rest = extendRest(before ?? null, policy, seen);
  endTrial(record, model);
  if (policy.scope === "channel" || model === null) record.whole = rest;
  else record.models.set(model, rest);
}

/** A response broke off after its beginning. An upstream that dies under load does this. */
export function noteBreak(record: ChannelRecord, seen: FailureSeen): void {
  record.breaks = extendRest(record.breaks, POLICIES.broken, seen);
}

/** Cap a time that the upstream names: some name many hours, and one request an hour is not a burden. */
const MAX_REST_MS = 60 * MINUTE_MS;

function extendRest(before: Rest | null, policy: Policy, { failure, now, random }: FailureSeen): Rest {
  // During a rest only trials are sent. Any other request that fails was sent before the rest began, and does not count.
  const isLate = before !== null && isInForce(before, now) && now >= before.trialUntil;
  const strikes = (before?.strikes ?? 0) + (isLate ? 0 : 1);
  const { ms, isNamed } = chooseWait(policy, strikes, failure, random);
  const until = ms === null ? 0 : Math.round(now + ms);
  if (isLate && before.until >= until) return before;
  return {
    state: policy.state,
    brief: failure.because,
    reason: explainFailure(failure),
    since: before?.since ?? now,
    at: now,
    until,
    isNamed,
    strikes,
    trialUntil: 0,
    failure,
  };
}

/** `ms` null: no rest yet. */
function chooseWait(
  policy: Policy,
  strikes: number,
  failure: Failure,
  random: () => number,
): { readonly ms: number | null; readonly isNamed: boolean } {
  const { waitMs, waitIsHidden } = failure;
  if (waitMs !== null) return { ms: Math.min(waitMs, MAX_REST_MS), isNamed: !waitIsHidden };
  if (strikes < policy.strikes) return { ms: null, isNamed: false };
  const doubled = policy.firstMs * 2 ** Math.min(30, strikes - policy.strikes);
  // Half of it is random, so that waiting clients do not all return at once.
  return { ms: Math.min(policy.longestMs, doubled) * (0.5 + random() / 2), isNamed: false };
}

/** A rest that begins in the future or is too long does not count: the clock was set back. */
function isInForce({ at, until, trialUntil }: Rest, now: number): boolean {
  const isSet = until > 0 && now >= at && until - now <= MAX_REST_MS;
  return isSet && (now < until || now < trialUntil);
}

export function noteAnswer(record: ChannelRecord, model: string | null, now: number): void {
  record.lastAnswer = now;
  // Nothing is sent during a rest that was named. An answer that comes anyway belongs to an earlier request.
  const isOver = (rest: Rest | undefined | null) => !rest?.isNamed || !isInForce(rest, now);
  if (isOver(record.whole)) record.whole = null;
  if (model !== null && isOver(record.models.get(model))) record.models.delete(model);
}

/** The channel was enabled again, or a probe found that it works. */
export function endRests(record: ChannelRecord): void {
  record.whole = null;
  record.breaks = null;
}

/** The rests of a channel and a model now. */
function listRests(record: ChannelRecord, model: string | null, now: number): Rest[] {
  const own = model === null ? undefined : record.models.get(model);
  const rests: Rest[] = [];
  for (const rest of [record.whole, record.breaks, own]) if (rest && isInForce(rest, now)) rests.push(rest);
  return rests;
}

/** The rest that says most, or null. */
export function findRest(record: ChannelRecord, model: string | null, now: number): Rest | null {
  const byTime = listRests(record, model, now).toSorted((a, b) => b.until - a.until);
  return byTime.find(({ isNamed }) => isNamed) ?? byTime[0] ?? null;
}

/** `trial`: one request may be sent if no other channel is left; after the rest's time, all may. */
export type Admittance = "open" | "closed" | "trial";

export function admittanceOf(record: ChannelRecord, model: string | null, now: number): Admittance {
  if (record.isDisabled) return "closed";
  const rests = listRests(record, model, now);
  if (rests.length === 0) return "open";
  const isClosed = ({ isNamed, until, trialUntil }: Rest) => isNamed || now < Math.min(until, trialUntil);
  return rests.some(isClosed) ? "closed" : "trial";
}

/** A request is sent, and is the only one for a while. The beginning of a response says nothing about breaks. */
export function beginTrial(record: ChannelRecord, model: string | null, now: number): void {
  setTrial(record, model, now + TRIAL_MS);
}

/** It ended without a result. */
export function endTrial(record: ChannelRecord, model: string | null): void {
  setTrial(record, model, 0);
}

function setTrial({ whole, models }: ChannelRecord, model: string | null, until: number): void {
  const own = model === null ? undefined : models.get(model);
  if (whole?.isNamed === false) whole.trialUntil = until;
  if (own?.isNamed === false) own.trialUntil = until;
}

export function countIn(record: ChannelRecord, what: "requests" | "errors", now: number): void {
  const minute = Math.floor(now / MINUTE_MS);
  const count = record.minutes.get(minute) ?? { requests: 0, errors: 0 };
  count[what] += 1;
  record.minutes.set(minute, count);
}

export function addFirstByte({ firstBytes }: ChannelRecord, ms: number): void {
  if (firstBytes.push(ms) > MAX_FIRST_BYTES) firstBytes.shift();
}

/** The sum of the last `minutes` minutes; the minute of `now` is the last one. */
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
