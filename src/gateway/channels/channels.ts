// Which channels of a match are tried, in which order, and what their responses teach. cooldown.ts decides what a failure
// leads to, view.ts what people see of it.

import type { Catalog, Channel } from "../../config/catalog.ts";
import type { Target } from "../../dialects/dialect.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import { sha256Hex } from "../../lib/secret.ts";
import {
  type Admittance,
  admittanceOf,
  type ChannelMemory,
  type Cooldown,
  createMemory,
  noteAnswer,
  noteBreak,
  noteFailure,
  renewMemory,
  cooldownOf,
  setTrial,
  TRIAL_MS,
  endCooldowns,
} from "./cooldown.ts";
import { ChannelStore } from "./store.ts";
import { type ChannelView, describeChannel, updateCondition } from "./view.ts";
import type { Candidate, Match } from "../intake/match.ts";
import type { Observer } from "../observe/observer.ts";
import type { RequestBody } from "../intake/body.ts";
import { nameConversation, Conversations } from "../intake/conversation.ts";
import { blameBreaks, type Failure, needsOwner, toRetryAfter } from "../upstream/failure-rules.ts";

/** The parts of a request that identify its conversation, and what can serve it. */
interface Routed extends Match {
  readonly client: ClientIdentity;
  readonly target?: Pick<Target, "endpoint">;
  readonly body: Pick<RequestBody, "plain" | "scan">;
}

/** The channels to try for a request. */
export interface Choice {
  /** Best first; empty if none is available now. */
  readonly candidates: readonly Candidate[];
  /** The conversation, if the order depends on it. */
  readonly conversation: string | null;
}

export interface Wait {
  readonly candidate: Candidate;
  /** Null after a restart. */
  readonly failure: Failure | null;
  readonly waitMs: number;
}

/** How a request ended after a channel had begun to respond. */
export interface RequestEnd {
  /** `cut`: the response had no end. `failed`: it was an error. `left`: it says nothing about the channel. */
  readonly how: "whole" | "cut" | "failed" | "left";
  readonly problem: string;
}

export interface ChannelsOptions {
  readonly catalog: Catalog;
  readonly observer: Pick<Observer, "notice">;
  readonly now: () => number;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly ledger: Pick<Ledger, "sums">;
}

const BAD_STATES = new Set(["unavailable", "resting"]);

/** A search or a picture of an agent, and what the gateway does not know, goes where the session's last response was, whatever its model, and never moves it. */
function followsSession({ target }: Routed): boolean {
  return target?.endpoint.onlyAt !== undefined || target?.endpoint.purpose === "other";
}

function nameSession({ client, group }: Routed): string | null {
  return client.session === undefined ? null : `${group.name}/*/${client.session}`;
}

export class Channels {
  readonly #options: ChannelsOptions;
  readonly #conversations = new Conversations();
  readonly #store: ChannelStore;
  #memories = new Map<string, ChannelMemory>();

  constructor(options: ChannelsOptions) {
    const { catalog, now } = options;
    this.#options = options;
    this.#store = new ChannelStore(catalog.ledger.path, () => this.#memories.values(), now);
    this.#memories = this.#store.load(now());
    this.retain(catalog);
  }

  choose(request: Routed, now: number): Choice {
    const { candidates } = request;
    if (candidates.length === 1) return { candidates: this.#admit(candidates, now), conversation: null };
    const isFixed = !(hasTie(candidates) || this.#conversations.size > 0);
    const conversation = isFixed ? null : this.#nameConversation(request);
    const current = conversation === null ? null : this.#conversations.find(conversation, now);
    const ordered = orderCandidates(candidates, current, this.#options.random);
    return { candidates: this.#admit(ordered, now), conversation };
  }

  /** The candidates without a cooldown; if there are none, those that may have a trial. */
  #admit(candidates: readonly Candidate[], now: number): readonly Candidate[] {
    const isOpen = (candidate: Candidate): boolean => this.#admittanceOf(candidate, now) === "open";
    if (candidates.every(isOpen)) return candidates;
    const open = candidates.filter(isOpen);
    return open.length > 0 ? open : candidates.filter((candidate) => this.admits(candidate, now));
  }

  /** True if a request that chose this candidate may still be sent to it. */
  admits(candidate: Candidate, now: number): boolean {
    return this.#admittanceOf(candidate, now) !== "closed";
  }

  #admittanceOf({ channel, model }: Candidate, now: number): Admittance {
    return admittanceOf(this.#recall(channel), model, now);
  }

  #nameConversation(request: Routed): string | null {
    if (followsSession(request)) return nameSession(request);
    const { client, body, group, model } = request;
    const { plain, scan } = body;
    const name = nameConversation(client, plain && scan && { bytes: plain, scan });
    // Prompt caches belong to one model, and so do most cooldowns.
    return name === null ? null : `${group.name}/${model ?? ""}/${name}`;
  }

  /** The error for a request without a choice. It does not repeat what an upstream said to other clients. */
  explainNone(match: Match, now: number): GatewayError {
    let soonest = Number.POSITIVE_INFINITY;
    const reasons = match.candidates.map(({ channel, model }) => {
      const memory = this.#recall(channel);
      if (memory.disabled) return `"${channel.name}" is disabled`;
      const cooldown = cooldownOf(memory, model, now);
      if (cooldown === null) return `"${channel.name}" is being tried`;
      if (cooldown.failure === null || !needsOwner(cooldown.failure))
        soonest = Math.min(soonest, now + waitOf(cooldown, now));
      return `"${channel.name}" ${cooldown.brief}`;
    });
    const waitMs = Number.isFinite(soonest) ? soonest - now : 60_000;
    const text = `No channel of the group "${match.group.name}" is available now: ${reasons.join("; ")}. Try again in ${Math.max(1, Math.ceil(waitMs / 1000))} s; \`gateway channels\` shows their state.`;
    return new GatewayError("unavailable", text, { retryAfterSeconds: toRetryAfter(waitMs) });
  }

  /** Why the channel is in cooldown, and how long; null if it is not. */
  findWait(candidate: Candidate, now: number): Wait | null {
    const memory = this.#recall(candidate.channel);
    const cooldown = memory.disabled ? null : cooldownOf(memory, candidate.model, now);
    return cooldown && { candidate, failure: cooldown.failure, waitMs: waitOf(cooldown, now) };
  }

  /** The request is about to be sent. Until its result is known, it is the only one during a cooldown. */
  reportStart({ channel, model }: Candidate, now: number): void {
    setTrial(this.#recall(channel), model, now + TRIAL_MS);
  }

  reportAnswer({ channel, model }: Candidate, firstByteMs: number, now: number): void {
    const memory = this.#recall(channel);
    noteAnswer(memory, model, firstByteMs, now);
    this.#notify(channel, memory, now);
    this.#store.touch();
  }

  reportFailure({ channel, model }: Candidate, failure: Failure, now: number): void {
    const memory = this.#recall(channel);
    if (memory.identity !== identify(channel)) return;
    memory.window.addRequest(now);
    memory.window.addError(now);
    noteFailure(memory, { failure, model, now, random: this.#options.random });
    this.#notify(channel, memory, now);
    this.#store.touch();
  }

  /** The client disconnected before the channel responded. */
  reportLeft({ channel, model }: Candidate): void {
    setTrial(this.#recall(channel), model, 0);
  }

  /** Keeps the conversation on the channel that has responded. */
  keepConversation(choice: Choice, candidate: Candidate, request: Routed): void {
    const { candidates } = request;
    if (candidates.length === 1 || followsSession(request)) return;
    const moved = choice.conversation !== null || candidate !== candidates[0] || hasTie(candidates);
    const conversation = moved ? (choice.conversation ?? this.#nameConversation(request)) : null;
    if (conversation === null) return;
    const session = nameSession(request);
    for (const name of session === null ? [conversation] : [conversation, session])
      this.#conversations.keep(name, candidate.channel.name, this.#options.now());
  }

  reportEnd(channel: Channel, { how, problem }: RequestEnd, now: number): void {
    const memory = this.#memories.get(channel.name);
    if (memory === undefined) return;
    if (how === "whole") memory.breaks = 0;
    if (how === "cut" || how === "failed") {
      memory.window.addError(now);
      memory.lastFailure = { at: now, reason: problem.replace(`The channel "${channel.name}" `, "") };
    }
    if (how === "cut" && memory.identity === identify(channel)) {
      const failure = blameBreaks(channel.name);
      noteBreak(memory, { failure, model: null, now, random: this.#options.random });
      this.#notify(channel, memory, now);
    }
  }

  /** `failure` is null if the probe found that the channel works. */
  reportProbe(channel: Channel, failure: Failure | null, now: number): void {
    const memory = this.#recall(channel);
    if (memory.identity !== identify(channel)) return;
    if (failure === null) {
      memory.lastAnswer = now;
      // A wait that the upstream named stays in force, even if its model list works.
      if (memory.cooldown?.untilIsGiven !== true) endCooldowns(memory);
    } else {
      noteFailure(memory, { failure, model: null, now, random: this.#options.random });
    }
    this.#notify(channel, memory, now);
    this.#store.touch();
  }

  lastAnswer(channel: Channel): number {
    return this.#recall(channel).lastAnswer;
  }

  /** By a command; the config is not looked at. */
  isDisabled(channel: Channel): boolean {
    return this.#recall(channel).disabled;
  }

  setDisabled(channel: Channel, disabled: boolean, now: number): void {
    const memory = this.#recall(channel);
    memory.disabled = disabled;
    if (!disabled) memory.models.clear();
    if (!disabled) endCooldowns(memory);
    this.#notify(channel, memory, now);
    // Flush now: an operator's command must survive a crash.
    this.#store.touch();
    this.#store.flush();
  }

  view({ channels }: Catalog, now: number): ChannelView[] {
    const { sums } = this.#options.ledger;
    return [...channels.values()].map((channel) =>
      describeChannel(channel, this.#recall(channel), sums.channelDay(channel.name), now),
    );
  }

  /** Applies a changed catalog: forgets channels that are gone, and what it knew about those that have changed. */
  retain({ channels }: Catalog): void {
    const retained = new Map<string, ChannelMemory>();
    for (const channel of channels.values()) {
      const identity = identify(channel);
      const memory = this.#memories.get(channel.name) ?? createMemory(channel.name, identity);
      retained.set(channel.name, memory.identity === identity ? memory : renewMemory(memory, identity));
    }
    this.#memories = retained;
  }

  close(): void {
    this.#store.close();
  }

  #recall(channel: Channel): ChannelMemory {
    const known = this.#memories.get(channel.name);
    if (known !== undefined) return known;
    const memory = createMemory(channel.name, identify(channel));
    this.#memories.set(channel.name, memory);
    return memory;
  }

  /** Reports when a channel becomes unavailable and when it is available again. */
  #notify(channel: Channel, memory: ChannelMemory, now: number): void {
    const before = memory.shown?.state ?? "unknown";
    const { state, reason } = updateCondition(channel, memory, now);
    if (state === before) return;
    const { notice } = this.#options.observer;
    if (BAD_STATES.has(state) && !BAD_STATES.has(before))
      notice("warning", `channel "${channel.name}" is ${state}: it ${reason}`);
    else if (BAD_STATES.has(before) && !BAD_STATES.has(state))
      notice("note", `channel "${channel.name}" is ${state} again`);
  }
}

/** How long no request may be sent. In a guessed cooldown, this ends when the running trial does. */
function waitOf({ untilIsGiven, until, trialUntil }: Cooldown, now: number): number {
  return (untilIsGiven ? until : trialUntil) - now;
}

function identify({ baseUrl, credential }: Channel): string {
  return sha256Hex(`${baseUrl.href}\n${credential}`).slice(0, 16);
}

// The order in which channels are tried: first those that list the model, if any are known to; among these, first those that
// serve the request as it is. Then the conversation's current channel, then by priority. Channels of equal priority come in
// random order by weight.

/** `candidates` are sorted by priority. `current` is the name of the conversation's channel. */
function orderCandidates(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  return divide(
    candidates,
    ({ isListed }) => isListed === true,
    (some) =>
      divide(
        some,
        ({ isConverted }) => isConverted !== true,
        (equal) => orderEqual(equal, current, random),
      ),
  );
}

function divide(
  candidates: readonly Candidate[],
  isFirst: (candidate: Candidate) => boolean,
  order: (candidates: readonly Candidate[]) => readonly Candidate[],
): readonly Candidate[] {
  if (!candidates.some(isFirst) || candidates.every(isFirst)) return order(candidates);
  const others = candidates.filter((candidate) => !isFirst(candidate));
  return [...order(candidates.filter(isFirst)), ...order(others)];
}

function orderEqual(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): readonly Candidate[] {
  const ordered = hasTie(candidates) ? shuffleByWeight(candidates, random) : candidates;
  const own = current === null ? undefined : ordered.find(({ channel }) => channel.name === current);
  return own === undefined || own === ordered[0]
    ? ordered
    : [own, ...ordered.filter((other) => other !== own)];
}

/** True if two candidates have the same priority. */
function hasTie(candidates: readonly Candidate[]): boolean {
  let before: number | null = null;
  for (const { channel } of candidates) {
    if (channel.priority === before) return true;
    before = channel.priority;
  }
  return false;
}

/** A channel of weight 3 comes first three times as often as one of weight 1. */
function shuffleByWeight(candidates: readonly Candidate[], random: () => number): Candidate[] {
  return candidates
    .map((candidate) => ({ candidate, rank: -Math.log(1 - random()) / candidate.channel.weight }))
    .sort((a, b) => a.candidate.channel.priority - b.candidate.channel.priority || a.rank - b.rank)
    .map(({ candidate }) => candidate);
}
