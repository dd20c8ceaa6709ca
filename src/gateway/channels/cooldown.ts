// What is remembered of one channel: whether it rests, until when and why, and how
// it has done lately. It decides how long which failure makes a channel rest. Pure
// but for what it is given.

import { type Usd, ZERO_USD } from "../../lib/money.ts";
import { ChannelWindow } from "./recent.ts";
import { type Cause, causeOf, explainFailure, type Failure, nameFailure } from "../upstream/failure-rules.ts";

/** A channel, or one model of it, is left alone for a while. */
export interface Cooldown {
  readonly state: "resting" | "unavailable";
  /** For every client: nothing of what the upstream said to one of them. */
  readonly brief: string;
  /** For the operator. */
  readonly reason: string;
  readonly since: number;
  readonly until: number;
  /** The upstream named the time: nothing is sent before. Else it is a guess, and one request may try it. */
  readonly untilIsGiven: boolean;
  /** While it is tried, the others go elsewhere. */
  trialUntil: number;
  /** A trial's beginning says nothing of it: whoever finds nothing better may try. */
  readonly afterBreaks: boolean;
  /** Failures in a row. */
  readonly strikes: number;
}

export interface ChannelMemory {
  readonly name: string;
  /** Of base URL and credential: what was learned of another upstream says nothing of this one. */
  readonly identity: string;
  /** By command. */
  disabled: boolean;
  /** Failures in a row of the whole channel. */
  strikes: number;
  /** Answers in a row that broke off: that they had begun says nothing of the next one's end. */
  breaks: number;
  cooldown: Cooldown | null;
  /** Of single models, by the upstream's name. */
  readonly models: Map<string, Cooldown>;
  readonly window: ChannelWindow;
  lastAnswer: number;
  lastFailure: { readonly at: number; readonly reason: string } | null;
  /** What the view showed last, and since when. */
  shown: { state: string; since: number } | null;
  /** Of one UTC day, counted since 1970. */
  charge: { day: number; usd: Usd };
}

export function createMemory(name: string, identity: string): ChannelMemory {
  return {
    name,
    identity,
    disabled: false,
    strikes: 0,
    breaks: 0,
    cooldown: null,
    models: new Map(),
    window: new ChannelWindow(),
    lastAnswer: 0,
    lastFailure: null,
    shown: null,
    charge: { day: 0, usd: ZERO_USD },
  };
}

/** Of another upstream under the same name. What is the name's own stays: the user's word, and the day's charge. */
export function renewMemory({ name, disabled, charge }: ChannelMemory, identity: string): ChannelMemory {
  return { ...createMemory(name, identity), disabled, charge };
}

interface Policy {
  /** What rests: other models of a channel that is rate limited for one may still be had. */
  readonly whole: boolean;
  readonly state: Cooldown["state"];
  /** So many failures in a row until it rests. */
  readonly strikes: number;
  /** The first rest where the upstream names no time; each further failure doubles it. */
  readonly firstMs: number;
  readonly longestMs: number;
}

const MINUTE_MS = 60_000;

const POLICIES: Record<Cause, Policy> = {
  credential: policy(true, "unavailable", 1, [5000, 5 * MINUTE_MS]),
  credit: policy(true, "unavailable", 1, [30_000, 10 * MINUTE_MS]),
  forbidden: policy(false, "unavailable", 1, [30_000, 10 * MINUTE_MS]),
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

/** Upstreams name times of many hours; a request an hour is no burden. */
const LONGEST_TOLD_MS = 60 * MINUTE_MS;
const MODELS_KEPT = 64;
/** One request tries a resting channel; for so long the others go elsewhere. */
const TRIAL_MS = 2000;

export interface FailureSeen {
  readonly failure: Failure;
  /** The upstream's name of it. */
  readonly model: string | null;
  readonly now: number;
  readonly random: () => number;
}

export function noteFailure(memory: ChannelMemory, blow: FailureSeen): void {
  const { failure, model, now } = blow;
  memory.lastFailure = { at: now, reason: explainFailure(failure) };
  const rule = POLICIES[causeOf(failure)];
  const place = rule.whole ? null : model;
  const before = (place === null ? memory.cooldown : memory.models.get(place)) ?? null;
  const isLate = wasSentBefore(before, now);
  endTrial(memory, model);
  if (place === null) {
    memory.strikes += isLate ? 0 : 1;
    coolWholeChannel(memory, rule, blow, { count: memory.strikes, isLate, byEnd: false });
  } else {
    const again = (before?.strikes ?? 0) - (isLate ? 1 : 0);
    keepModel(memory.models, place, extendCooldown(before, createCooldown(rule, blow, again), isLate));
  }
}

/** An answer broke off after its beginning: so do those of an upstream that dies under load, and each looks well at first. */
export function noteBreak(memory: ChannelMemory, blow: FailureSeen): void {
  const isLate = wasSentBefore(memory.cooldown, blow.now);
  memory.breaks += isLate ? 0 : 1;
  coolWholeChannel(memory, POLICIES.broken, blow, { count: memory.breaks, isLate, byEnd: true });
}

export function noteWhole(memory: ChannelMemory): void {
  memory.breaks = 0;
}

function coolWholeChannel(
  memory: ChannelMemory,
  rule: Policy,
  blow: FailureSeen,
  { count, isLate, byEnd }: { readonly count: number; readonly isLate: boolean; readonly byEnd: boolean },
): void {
  if (count < rule.strikes && readTold(blow.failure) === null) return;
  const rest = { ...createCooldown(rule, blow, count - rule.strikes), byEnd };
  memory.cooldown = extendCooldown(memory.cooldown, rest, isLate);
}

function keepModel(models: Map<string, Cooldown>, model: string, rest: Cooldown): void {
  models.delete(model);
  models.set(model, rest);
  if (models.size > MODELS_KEPT) models.delete(models.keys().next().value ?? model);
}

/** While a channel rests nothing is sent but a trial: what else fails had been on its way, and is no further failure. */
function wasSentBefore(before: Cooldown | null, now: number): boolean {
  const rest = standing(before, now);
  return rest !== null && now >= rest.trialUntil;
}

function extendCooldown(before: Cooldown | null, rest: Cooldown, isLate: boolean): Cooldown {
  if (before === null) return rest;
  return isLate && before.until >= rest.until ? before : { ...rest, since: before.since };
}

function readTold(failure: Failure): number | null {
  return failure.kind === "status" ? failure.waitMs : null;
}

function createCooldown(rule: Policy, { failure, now, random }: FailureSeen, again: number): Cooldown {
  const waitMs = readTold(failure);
  const doubled = Math.min(rule.longestMs, rule.firstMs * 2 ** Math.min(30, Math.max(0, again)));
  // Half of it is left to chance, lest all that wait come back at once.
  const guess = doubled * (0.5 + random() / 2);
  return {
    state: rule.state,
    brief: nameFailure(failure),
    reason: explainFailure(failure),
    since: now,
    until: Math.round(now + (waitMs === null ? guess : Math.min(waitMs, LONGEST_TOLD_MS))),
    untilIsGiven: waitMs !== null,
    trialUntil: 0,
    afterBreaks: false,
    strikes: again + 1,
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

/** Nothing is sent while such a rest stands: what is answered all the same was sent before. */
function isBinding(rest: Cooldown | null | undefined, now: number): boolean {
  return standing(rest ?? null, now)?.untilIsGiven === true;
}

/** Forgets why it was left alone: it was switched on again, or a probe found it well. */
export function endCooldowns(memory: ChannelMemory): void {
  memory.strikes = 0;
  memory.breaks = 0;
  memory.cooldown = null;
}

/** `closed`: not before its time. `trial`: it may be tried where nothing better is left. */
export type Admittance = "open" | "closed" | "trial";

export function admittanceOf(memory: ChannelMemory, model: string | null, now: number): Admittance {
  if (memory.disabled) return "closed";
  const rest = cooldownOf(memory, model, now);
  if (rest === null) return "open";
  return rest.untilIsGiven || now < rest.trialUntil ? "closed" : "trial";
}

/** What stands in the way of a request; null when nothing does any more. */
export function cooldownOf(memory: ChannelMemory, model: string | null, now: number): Cooldown | null {
  const whole = standing(memory.cooldown, now);
  const own = standing((model !== null && memory.models.get(model)) || null, now);
  if (whole === null || own === null) return whole ?? own;
  return own.untilIsGiven && (!whole.untilIsGiven || own.until > whole.until) ? own : whole;
}

/** A rest that is yet to begin was begun before the clock was set back, and so was one that ends later than any can. */
function standing(rest: Cooldown | null, now: number): Cooldown | null {
  if (rest === null || now < rest.since || rest.until - now > LONGEST_TOLD_MS) return null;
  return now < rest.until || now < rest.trialUntil ? rest : null;
}

/** A request is sent although the channel rested: until it is known how that went, it is the only one. */
export function startTrial(memory: ChannelMemory, model: string | null, now: number): void {
  setTrial(memory, model, now + TRIAL_MS);
}

/** The client left before anything was learned. */
export function endTrial(memory: ChannelMemory, model: string | null): void {
  setTrial(memory, model, 0);
}

function setTrial(memory: ChannelMemory, model: string | null, until: number): void {
  for (const rest of [memory.cooldown, model === null ? undefined : memory.models.get(model)]) {
    if (rest !== null && rest !== undefined && !rest.untilIsGiven && !rest.afterBreaks)
      rest.trialUntil = until;
  }
}
