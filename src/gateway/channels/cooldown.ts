// What the gateway remembers of one channel: its cooldowns and its recent results. This file decides how long the
// cooldown after each failure is. Pure, except that it changes the memory that it is given.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { ChannelWindow } from "./recent.ts";
import { type Cause, causeOf, explainFailure, type Failure, nameFailure } from "../upstream/failure-rules.ts";

/** A channel, or one model of it, gets no requests for a while. */
export interface Cooldown {
  readonly state: "resting" | "unavailable";
  /** For all clients: without what the upstream said to one of them. */
  readonly brief: string;
  /** For the operator. */
  readonly reason: string;
  /** Of the first failure in a row. */
  readonly since: number;
  /** Of the last one, which set `until`. A time before it means that the clock was set back. */
  readonly begun: number;
  readonly until: number;
  /** The upstream named `until` in `retry-after`, and nothing is sent before. Otherwise one request may have a trial. */
  readonly untilIsGiven: boolean;
  /** While a trial runs, until this time at most, other requests use other channels. */
  trialUntil: number;
  /** It follows responses that broke off. The beginning of a trial's response says nothing then, so trials do not
   *  exclude each other. */
  readonly afterBreaks: boolean;
  /** Failures in a row. */
  readonly strikes: number;
  /** What happened last; null after a restart. */
  readonly failure: Failure | null;
}

export interface ChannelMemory {
  readonly name: string;
  /** A hash of base URL and credential. With another upstream, the memory starts again. */
  readonly identity: string;
  /** By command (`gateway channels disable`). */
  disabled: boolean;
  /** Failures in a row of the whole channel. */
  strikes: number;
  /** Responses in a row that broke off. */
  breaks: number;
  cooldown: Cooldown | null;
  /** Cooldowns of single models, by the upstream's name. */
  readonly models: Map<string, Cooldown>;
  readonly window: ChannelWindow;
  lastAnswer: number;
  lastFailure: { readonly at: number; readonly reason: string } | null;
  /** The state that the view showed last, and since when. */
  shown: { state: string; since: number } | null;
}

export function createMemory(name: string, identity: string): ChannelMemory {
  return {
    name,
    identity,
    disabled: false,
    strikes: 0,
    breaks: 0,
    cooldown: null,
    models: new BoundedMap(MAX_MODELS),
    window: new ChannelWindow(),
    lastAnswer: 0,
    lastFailure: null,
    shown: null,
  };
}

/** For another upstream under the same name. The user's command belongs to the name and stays. */
export function renewMemory({ name, disabled }: ChannelMemory, identity: string): ChannelMemory {
  return { ...createMemory(name, identity), disabled };
}

interface Policy {
  /** True: the cooldown is for the whole channel. False: for one model. */
  readonly whole: boolean;
  readonly state: Cooldown["state"];
  /** How many failures in a row lead to a cooldown. */
  readonly strikes: number;
  /** The first cooldown if the upstream names no time. Each further failure doubles it. */
  readonly firstMs: number;
  readonly longestMs: number;
}

const MINUTE_MS = 60_000;

const POLICIES: Record<Cause, Policy> = {
  credential: policy(true, "unavailable", 1, [5000, 5 * MINUTE_MS]),
  credit: policy(true, "unavailable", 1, [30_000, 10 * MINUTE_MS]),
  unreachable: policy(true, "unavailable", 1, [1000, MINUTE_MS]),
  rate: policy(false, "resting", 1, [2000, MINUTE_MS]),
  overload: policy(false, "resting", 1, [1000, MINUTE_MS / 2]),
  timeout: policy(false, "resting", 1, [5000, MINUTE_MS]),
  server: policy(true, "resting", 3, [1000, MINUTE_MS]),
  broken: policy(true, "resting", 3, [1000, MINUTE_MS]),
};

function policy(
  whole: boolean,
  state: Cooldown["state"],
  strikes: number,
  [firstMs, longestMs]: readonly [number, number],
): Policy {
  return { whole, state, strikes, firstMs, longestMs };
}

/** Cap a time that the upstream names: some name many hours, and one request an hour is not a burden. */
const MAX_COOLDOWN_MS = 60 * MINUTE_MS;
const MAX_MODELS = 64;
/** While one request tries a channel during or after its cooldown, for this long the others use other channels. */
export const TRIAL_MS = 2000;

export interface FailureSeen {
  readonly failure: Failure;
  /** The upstream's name for the model. */
  readonly model: string | null;
  readonly now: number;
  readonly random: () => number;
}

export function noteFailure(memory: ChannelMemory, seen: FailureSeen): void {
  const { failure, model, now } = seen;
  memory.lastFailure = { at: now, reason: explainFailure(failure) };
  const rule = POLICIES[causeOf(failure)];
  const target = rule.whole ? null : model;
  const before = (target === null ? memory.cooldown : memory.models.get(target)) ?? null;
  const isLate = wasSentBefore(before, now);
  setTrial(memory, model, 0);
  if (target === null) {
    memory.strikes += isLate ? 0 : 1;
    coolWholeChannel(memory, rule, seen, { count: memory.strikes, isLate, afterBreaks: false });
  } else {
    const repeats = (before?.strikes ?? 0) - (isLate ? 1 : 0);
    const cooldown = createCooldown(rule, seen, repeats);
    memory.models.set(target, extendCooldown(before, cooldown, isLate));
  }
}

/** A response broke off after its beginning. An upstream that dies under load does this, and each response begins well. */
export function noteBreak(memory: ChannelMemory, seen: FailureSeen): void {
  const isLate = wasSentBefore(memory.cooldown, seen.now);
  memory.breaks += isLate ? 0 : 1;
  coolWholeChannel(memory, POLICIES.broken, seen, { count: memory.breaks, isLate, afterBreaks: true });
}

function coolWholeChannel(
  memory: ChannelMemory,
  rule: Policy,
  seen: FailureSeen,
  {
    count,
    isLate,
    afterBreaks,
  }: {
    readonly count: number;
    readonly isLate: boolean;
    readonly afterBreaks: boolean;
  },
): void {
  if (count < rule.strikes && givenWaitOf(seen.failure) === null) return;
  const cooldown = { ...createCooldown(rule, seen, count - rule.strikes), afterBreaks };
  memory.cooldown = extendCooldown(memory.cooldown, cooldown, isLate);
}

/** During a cooldown only trials are sent. Any other request that fails was sent before the cooldown began, and does not
 *  count as a further failure. */
function wasSentBefore(before: Cooldown | null, now: number): boolean {
  const cooldown = current(before, now);
  return cooldown !== null && now >= cooldown.trialUntil;
}

function extendCooldown(before: Cooldown | null, cooldown: Cooldown, isLate: boolean): Cooldown {
  if (before === null) return cooldown;
  return isLate && before.until >= cooldown.until ? before : { ...cooldown, since: before.since };
}

function givenWaitOf(failure: Failure): number | null {
  return failure.kind === "status" ? failure.waitMs : null;
}

function createCooldown(rule: Policy, { failure, now, random }: FailureSeen, repeats: number): Cooldown {
  const waitMs = givenWaitOf(failure);
  const doubled = Math.min(rule.longestMs, rule.firstMs * 2 ** Math.min(30, Math.max(0, repeats)));
  // Half of it is random, so that waiting clients do not all return at once.
  const guess = doubled * (0.5 + random() / 2);
  return {
    state: rule.state,
    brief: nameFailure(failure),
    reason: explainFailure(failure),
    since: now,
    begun: now,
    until: Math.round(now + (waitMs === null ? guess : Math.min(waitMs, MAX_COOLDOWN_MS))),
    untilIsGiven: waitMs !== null && !(failure.kind === "status" && failure.waitIsHidden === true),
    trialUntil: 0,
    afterBreaks: false,
    strikes: repeats + 1,
    failure,
  };
}

export function noteAnswer(
  memory: ChannelMemory,
  model: string | null,
  firstByteMs: number,
  now: number,
): void {
  memory.window.addRequest(now);
  memory.window.addFirstByte(firstByteMs);
  memory.lastAnswer = now;
  memory.strikes = 0;
  if (!isBinding(memory.cooldown, now)) memory.cooldown = null;
  if (model !== null && !isBinding(memory.models.get(model), now)) memory.models.delete(model);
}

/** Nothing is sent during such a cooldown. A response that comes anyway belongs to an earlier request. */
function isBinding(cooldown: Cooldown | null | undefined, now: number): boolean {
  return current(cooldown ?? null, now)?.untilIsGiven === true;
}

/** Ends all cooldowns: the channel was enabled again, or a probe found that it works. */
export function endCooldowns(memory: ChannelMemory): void {
  memory.strikes = 0;
  memory.breaks = 0;
  memory.cooldown = null;
}

/** `closed`: no request may be sent. `trial`: one may be sent if no other channel is left; after the cooldown's time, all
 *  may, because clients were asked to return then. */
export type Admittance = "open" | "closed" | "trial";

export function admittanceOf(memory: ChannelMemory, model: string | null, now: number): Admittance {
  if (memory.disabled) return "closed";
  const cooldown = cooldownOf(memory, model, now);
  if (cooldown === null) return "open";
  const { untilIsGiven, until, trialUntil } = cooldown;
  return untilIsGiven || now < Math.min(until, trialUntil) ? "closed" : "trial";
}

/** The cooldown that applies to a request now, or null. */
export function cooldownOf(memory: ChannelMemory, model: string | null, now: number): Cooldown | null {
  const whole = current(memory.cooldown, now);
  const own = current((model !== null && memory.models.get(model)) || null, now);
  if (whole === null || own === null) return whole ?? own;
  return own.untilIsGiven && (!whole.untilIsGiven || own.until > whole.until) ? own : whole;
}

/** Ignores cooldowns that begin in the future or exceed the maximum: the clock was set back. */
function current(cooldown: Cooldown | null, now: number): Cooldown | null {
  if (cooldown === null || now < cooldown.begun || cooldown.until - now > MAX_COOLDOWN_MS) return null;
  return now < cooldown.until || now < cooldown.trialUntil ? cooldown : null;
}

/** A request is sent during a cooldown, and is the only one until then. 0: it ended without a result. */
export function setTrial(memory: ChannelMemory, model: string | null, until: number): void {
  for (const cooldown of [memory.cooldown, model === null ? undefined : memory.models.get(model)]) {
    if (cooldown !== null && cooldown !== undefined && !cooldown.untilIsGiven && !cooldown.afterBreaks)
      cooldown.trialUntil = until;
  }
}
