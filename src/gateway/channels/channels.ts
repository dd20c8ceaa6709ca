// Which of a route's channels are tried, in which order, and what is learned of
// them on the way. How a failure weighs is channel-memory.ts, what people see of it
// channel-view.ts.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http1/types.ts";
import { addUsd, parseUsd, ZERO_USD } from "../../lib/money.ts";
import { sha256Hex } from "../../lib/secret.ts";
import {
  type ChannelMemory,
  createMemory,
  admittanceOf,
  endTrial,
  noteAnswer,
  noteBreak,
  noteFailure,
  noteWhole,
  renewMemory,
  cooldownOf,
  startTrial,
  endCooldowns,
} from "./cooldown.ts";
import { hasTie, orderCandidates } from "./order.ts";
import { type ChannelStore, openChannelStore } from "./store.ts";
import { dayOf, describeChannel, updateCondition } from "./view.ts";
import type { ChannelView } from "../control/state.ts";
import type { Candidate, Match } from "../intake/match.ts";
import type { Observer } from "../observe/observer.ts";
import type { RequestBody } from "../intake/body.ts";
import { readConversation, Conversations } from "../intake/conversation.ts";
import { blameBreaks, type Failure, toRetryAfter } from "../upstream/failure-rules.ts";

/** An job, as far as it tells its conversation. */
interface Asker {
  readonly call: { readonly exchange: Pick<Exchange, "field"> };
  readonly body: Pick<RequestBody, "plain">;
}

/** What a request is to be tried on. */
export interface Choice {
  /** Best first; empty when none can be had now. */
  readonly candidates: readonly Candidate[];
  /** The conversation, where it had a say. */
  readonly session: string | null;
}

/** How a request ended that a channel had begun to answer. */
export interface RequestEnd {
  /** `cut`: the answer's end never came. `failed`: it was an error. `left`: it says nothing of the channel. */
  readonly how: "whole" | "cut" | "failed" | "left";
  readonly problem: string;
  readonly chargeUsd: string | null;
}

export interface Channels {
  choose(asker: Asker, route: Match, now: number): Choice;
  /** The error to answer with when there was nothing to choose. It tells nobody what an upstream said to others. */
  explainNone(route: Match, now: number): GatewayError;
  /** A request whose choice it was may still be sent there. */
  admits(candidate: Candidate, now: number): boolean;
  /** The request is about to go there. */
  reportStart(candidate: Candidate, now: number): void;
  reportAnswer(candidate: Candidate, firstByteMs: number, now: number): void;
  reportFailure(candidate: Candidate, failure: Failure, now: number): void;
  /** The client left before anything was learned. */
  reportLeft(candidate: Candidate): void;
  /** The conversation stays with the channel that has answered it. */
  keepConversation(choice: Choice, candidate: Candidate, asker: Asker, route: Match): void;
  reportEnd(channel: Channel, ended: RequestEnd, now: number): void;
  /** A probe found the channel well, or not. */
  reportProbe(channel: Channel, failure: Failure | null, now: number): void;
  lastAnswer(channel: Channel): number;
  setDisabled(channel: Channel, disabled: boolean, now: number): void;
  view(catalog: Catalog, now: number): ChannelView[];
  /** A changed catalog: what was learned of channels that are no more, or no longer the same, is forgotten. */
  retain(catalog: Catalog): void;
  close(): void;
}

export interface ChannelsOptions {
  readonly catalog: Catalog;
  readonly observer: Pick<Observer, "notice">;
  readonly now: () => number;
  /** From 0 to 1. */
  readonly random: () => number;
}

const BAD = new Set(["unavailable", "resting"]);

export function createChannels(options: ChannelsOptions): Channels {
  return new ChannelBook(options);
}

class ChannelBook implements Channels {
  readonly #options: ChannelsOptions;
  readonly #sessions = new Conversations();
  readonly #store: ChannelStore;
  #memories = new Map<string, ChannelMemory>();

  constructor(options: ChannelsOptions) {
    const { catalog, now } = options;
    this.#options = options;
    this.#store = openChannelStore(catalog.ledger.path, () => this.#memories.values(), now);
    this.#memories = this.#store.load(now());
    this.retain(catalog);
  }

  choose(asker: Asker, route: Match, now: number): Choice {
    const { candidates } = route;
    const isPlain = candidates.length === 1 || !(hasTie(candidates) || this.#sessions.size > 0);
    const session = isPlain ? null : this.#nameSession(asker, route);
    const seat = session === null ? null : this.#sessions.find(session, now);
    const ordered = orderCandidates(candidates, seat, this.#options.random);
    return { candidates: this.#admit(ordered, now), session };
  }

  /** Those whose door is open; if it is no one's, those that may be tried all the same. */
  #admit(candidates: readonly Candidate[], now: number): readonly Candidate[] {
    const through = (door: string): Candidate[] =>
      candidates.filter(({ channel, model }) => admittanceOf(this.#recall(channel), model, now) === door);
    const open = through("open");
    return open.length > 0 ? open : through("trial");
  }

  admits({ channel, model }: Candidate, now: number): boolean {
    return admittanceOf(this.#recall(channel), model, now) !== "closed";
  }

  #nameSession(asker: Asker, route: Match): string | null {
    const { exchange } = asker.call;
    const session = readConversation((name) => exchange.field(name), asker.body.plain);
    // By model, for caches are a model's own, and so are most rests.
    return session === null ? null : `${route.group.name}/${route.model ?? ""}/${session}`;
  }

  explainNone(route: Match, now: number): GatewayError {
    let soonest = Number.POSITIVE_INFINITY;
    const reasons = route.candidates.map(({ channel, model }) => {
      const memory = this.#recall(channel);
      if (memory.disabled) return `"${channel.name}" is disabled`;
      const rest = cooldownOf(memory, model, now);
      if (rest === null) return `"${channel.name}" is being tried`;
      soonest = Math.min(soonest, rest.untilIsGiven ? rest.until : rest.trialUntil);
      return `"${channel.name}" ${rest.brief}`;
    });
    const waitMs = Number.isFinite(soonest) ? soonest - now : 60_000;
    const text = `No channel of the group "${route.group.name}" is available now: ${reasons.join("; ")}. Try again in ${Math.max(1, Math.ceil(waitMs / 1000))} s; \`gateway channels\` shows their state.`;
    return new GatewayError("unavailable", text, { retryAfterSeconds: toRetryAfter(waitMs) });
  }

  reportStart({ channel, model }: Candidate, now: number): void {
    const memory = this.#recall(channel);
    startTrial(memory, model, now);
  }

  reportAnswer({ channel, model }: Candidate, firstByteMs: number, now: number): void {
    const memory = this.#recall(channel);
    noteAnswer(memory, model, firstByteMs, now);
    this.#show(channel, memory, now);
    this.#store.touch();
  }

  reportFailure({ channel, model }: Candidate, failure: Failure, now: number): void {
    const memory = this.#recall(channel);
    if (memory.identity !== identify(channel)) return;
    memory.window.addRequest(now);
    memory.window.addError(now);
    noteFailure(memory, { failure, model, now, random: this.#options.random });
    this.#show(channel, memory, now);
    this.#store.touch();
  }

  reportLeft({ channel, model }: Candidate): void {
    const memory = this.#recall(channel);
    endTrial(memory, model);
  }

  keepConversation(choice: Choice, candidate: Candidate, asker: Asker, route: Match): void {
    const { candidates } = route;
    if (candidates.length === 1) return;
    const moved = choice.session !== null || candidate !== candidates[0] || hasTie(candidates);
    const session = moved ? (choice.session ?? this.#nameSession(asker, route)) : null;
    if (session !== null) this.#sessions.keep(session, candidate.channel.name, this.#options.now());
  }

  reportEnd(channel: Channel, { how, problem, chargeUsd }: RequestEnd, now: number): void {
    const memory = this.#memories.get(channel.name);
    if (memory === undefined) return;
    if (how === "whole") noteWhole(memory);
    if (how === "cut" || how === "failed") {
      memory.window.addError(now);
      memory.lastFailure = { at: now, reason: problem.replace(`The channel "${channel.name}" `, "") };
    }
    if (how === "cut" && memory.identity === identify(channel)) {
      const failure = blameBreaks(channel.name);
      noteBreak(memory, { failure, model: null, now, random: this.#options.random });
      this.#show(channel, memory, now);
    }
    if (chargeUsd === null) return;
    const day = dayOf(now);
    const before = memory.charge.day === day ? memory.charge.usd : ZERO_USD;
    memory.charge = { day, usd: addUsd(before, parseUsd(chargeUsd)) };
  }

  reportProbe(channel: Channel, failure: Failure | null, now: number): void {
    const memory = this.#recall(channel);
    if (memory.identity !== identify(channel)) return;
    if (failure === null) {
      memory.lastAnswer = now;
      // A rate limit that was told stands, however well the list of models is.
      if (memory.cooldown?.untilIsGiven !== true) endCooldowns(memory);
    } else {
      noteFailure(memory, { failure, model: null, now, random: this.#options.random });
    }
    this.#show(channel, memory, now);
    this.#store.touch();
  }

  lastAnswer(channel: Channel): number {
    return this.#recall(channel).lastAnswer;
  }

  setDisabled(channel: Channel, disabled: boolean, now: number): void {
    const memory = this.#recall(channel);
    memory.disabled = disabled;
    if (!disabled) memory.models.clear();
    if (!disabled) endCooldowns(memory);
    this.#show(channel, memory, now);
    // A command was given once.
    this.#store.touch();
    this.#store.flush();
  }

  view({ channels }: Catalog, now: number): ChannelView[] {
    return [...channels.values()].map((channel) => describeChannel(channel, this.#recall(channel), now));
  }

  retain({ channels }: Catalog): void {
    const kept = new Map<string, ChannelMemory>();
    for (const channel of channels.values()) {
      const identity = identify(channel);
      const memory = this.#memories.get(channel.name) ?? createMemory(channel.name, identity);
      kept.set(channel.name, memory.identity === identity ? memory : renewMemory(memory, identity));
    }
    this.#memories = kept;
  }

  close(): void {
    this.#store.flush();
  }

  #recall(channel: Channel): ChannelMemory {
    const known = this.#memories.get(channel.name);
    if (known !== undefined) return known;
    const memory = createMemory(channel.name, identify(channel));
    this.#memories.set(channel.name, memory);
    return memory;
  }

  /** Tells when a channel goes, and when it comes back. */
  #show(channel: Channel, memory: ChannelMemory, now: number): void {
    const before = memory.shown?.state ?? "unknown";
    const { state, reason } = updateCondition(channel, memory, now);
    if (state === before) return;
    const { notice } = this.#options.observer;
    if (BAD.has(state) && !BAD.has(before))
      notice("warning", `channel "${channel.name}" is ${state}: it ${reason}`);
    else if (BAD.has(before) && !BAD.has(state))
      notice("note", `channel "${channel.name}" is ${state} again`);
  }
}

function identify({ baseUrl, credential }: Channel): string {
  return sha256Hex(`${baseUrl.href}\n${credential}`).slice(0, 16);
}
