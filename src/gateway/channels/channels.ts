// Chooses channels for requests, and notes how the channels responded.

import type { Catalog, Channel, Group } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import { readString } from "../../lib/json/scanner.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";
import { type Upstream, UpstreamFault } from "../../lib/http/upstream.ts";
import type { Outcome } from "../../billing/ledger/line.ts";
import type { Ledger } from "../../billing/ledger/ledger.ts";
import { listSessions } from "../../billing/ledger/shares.ts";
import type { Candidate } from "../intake/match.ts";
import { Conversations, MAX_AGE_MS, nameConversation } from "../intake/conversation.ts";
import type { Observer } from "../observe/observer.ts";
import type { Request } from "../request.ts";
import { addressOf } from "../upstream/address.ts";
import { type Failure, explainFailure, failureOf, needsOwner, toRetryAfter } from "../upstream/failures.ts";
import * as records from "./record.ts";
import { type ChannelView, describeChannel, nameCondition, updateCondition } from "./view.ts";

export interface ChannelWait {
  readonly candidate: Candidate;
  readonly failure: Failure;
  readonly waitMs: number;
}

export interface ChannelsOptions {
  readonly catalog: Catalog;
  readonly observer: Pick<Observer, "notice">;
  readonly now: () => number;
  readonly random: () => number;
  readonly ledger: Pick<Ledger, "sums">;
  readonly client: Pick<Upstream, "stats">;
}

const BAD_STATES: ReadonlySet<string> = new Set(["unavailable", "resting"]);
const SAVE_DELAY_MS = 2000;
const MAX_STORED = 20_000;

export class Channels {
  readonly #options: ChannelsOptions;
  readonly #path: string;
  readonly #conversations = new Conversations();
  /** Maps a stored response's id to the channel that has it. */
  readonly #stored = new BoundedMap<string, string>(MAX_STORED);
  #records = new Map<string, records.ChannelRecord>();
  #saving: Timer | null = null;
  #isClosed = false;

  constructor(options: ChannelsOptions) {
    this.#options = options;
    this.#path = `${options.catalog.ledger.path}.channels.json`;
    for (const record of readSaved(this.#path)) this.#records.set(record.name, record);
    this.retain(options.catalog);
    const since = options.now() - MAX_AGE_MS;
    const sessions = options.ledger.sums.ask((table) => listSessions(table, since));
    for (const { at, session, place } of sessions) {
      const [group, model, channel = ""] = place;
      for (const each of channel === "" ? [] : [model, "*"])
        this.#conversations.keep(nameIn(group, each, session), channel, at);
    }
  }

  /** Only the account that stores a response knows it. */
  prepare(r: Request): void {
    r.conversation = keyOfConversation(r);
    const owner = this.#stored.get(readStoredId(r) ?? "");
    if (owner === undefined) return;
    const own = r.candidates.filter(({ channel }) => channel.name === owner);
    if (own.length > 0) r.candidates = own;
  }

  choose(r: Request, now: number): readonly Candidate[] {
    const { candidates, conversation } = r;
    const current = conversation && this.#conversations.find(conversation, now);
    const { random } = this.#options;
    const ordered = candidates.length === 1 ? candidates : orderCandidates(candidates, current, random);
    const open = ordered.filter((each) => this.readinessOf(each, now) === "open");
    const ready = open.length > 0 ? open : ordered.filter((each) => this.readinessOf(each, now) === "trial");
    // A new conversation stays on this channel for TRIAL_MS, or longer if answered.
    const [first] = ready;
    if (current === null && r.isTelling && first !== undefined)
      this.keepConversation(r, first, now - MAX_AGE_MS + records.TRIAL_MS);
    return ready;
  }

  readinessOf({ channel, model }: Candidate, now: number): records.Readiness {
    return records.readinessOf(this.of(channel), model, now);
  }

  keepConversation(r: Request, { channel }: Candidate, at?: number): void {
    if (r.conversation === null || followsSession(r)) return;
    // An unanswered request does not move its session.
    for (const name of [r.conversation, at === undefined ? keyOfSession(r) : null])
      if (name !== null) this.#conversations.keep(name, channel.name, at ?? this.#options.now());
  }

  /** After its client left, a conversation may go to another channel. */
  release({ conversation }: Request, now: number): void {
    if (conversation !== null) this.#conversations.forget(conversation, now + records.TRIAL_MS);
  }

  keepStored(id: string, { group, tried }: Request): void {
    if (tried !== null && group.channels.length > 1) this.#stored.set(id, tried.channel.name);
  }

  /** The error does not repeat an upstream's words. */
  explainNone({ group, candidates }: Request, now: number): GatewayError {
    const waits: number[] = [];
    const reasons = candidates.map((candidate) => {
      const record = this.of(candidate.channel);
      const rest = records.findRest(record, candidate.model, now);
      if (rest !== null && !needsOwner(rest.failure)) waits.push(waitOf(rest, now));
      const reason = record.disabled ? "is disabled" : (rest?.failure.because ?? "is being tried");
      return `"${candidate.channel.name}" ${reason}`;
    });
    const waitMs = waits.length === 0 ? 60_000 : Math.min(...waits);
    const text = `No channel of the group "${group.name}" is available now: ${reasons.join("; ")}. Try again in ${Math.max(1, Math.ceil(waitMs / 1000))} s; \`gateway channels\` shows their state.`;
    return new GatewayError("unavailable", text, { retrySeconds: toRetryAfter(waitMs) });
  }

  findWait(candidate: Candidate, now: number): ChannelWait | null {
    const record = this.of(candidate.channel);
    const rest = record.disabled ? null : records.findRest(record, candidate.model, now);
    return rest && { candidate, failure: rest.failure, waitMs: waitOf(rest, now) };
  }

  /** A resting channel has one trial at a time. Without `start`, the trial is over. */
  setTrial({ channel, model }: Candidate, start: number | null): void {
    records.setTrial(this.of(channel), model, start === null ? 0 : start + records.TRIAL_MS);
  }

  reportAnswer({ channel, model }: Candidate, firstByteMs: number, now: number): void {
    const record = this.of(channel);
    records.countIn(record, "requests", now);
    if (record.firstBytes.push(firstByteMs) > records.MAX_FIRST_BYTES) record.firstBytes.shift();
    records.noteAnswer(record, model, now);
    this.#show(channel, record, now);
  }

  reportFailure({ channel, model }: Candidate, failure: Failure, now: number): void {
    const record = this.of(channel);
    records.countIn(record, "requests", now);
    records.countIn(record, "errors", now);
    record.lastError = explainFailure(failure);
    records.noteFailure(record, { failure, model, now, random: this.#options.random });
    this.#show(channel, record, now);
  }

  reportEnd(
    channel: Channel,
    { outcome, problem }: { readonly outcome: Outcome; readonly problem: string | null },
    now: number,
  ): void {
    const record = this.of(channel);
    if (outcome === "complete" && record.whole?.isBreak === true) record.whole = null;
    const isCut = outcome === "upstream_cut";
    if (!isCut && outcome !== "upstream_error") return;
    const { random } = this.#options;
    const cut = new UpstreamFault("cut", "its last responses were incomplete");
    const failure = failureOf(channel.name, cut);
    records.countIn(record, "errors", now);
    const reason = (isCut && problem) || "ended its response with an error";
    record.lastError = reason.replace(`The channel "${channel.name}" `, "");
    if (isCut) records.noteFailure(record, { failure, model: null, now, random, isBreak: true });
    this.#show(channel, record, now);
  }

  reportProbe(channel: Channel, failure: Failure | null, now: number): void {
    const { random } = this.#options;
    const record = this.of(channel);
    if (failure !== null) records.noteFailure(record, { failure, model: null, now, random });
    else {
      record.lastAnswer = now;
      // A wait that the upstream named stays in force.
      if (record.whole?.isNamed !== true) record.whole = null;
    }
    this.#show(channel, record, now);
  }

  of(channel: Channel): records.ChannelRecord {
    const identity = records.identify(channel);
    const known = this.#records.get(channel.name);
    return known?.identity === identity ? known : records.createRecord(channel.name, identity);
  }

  setDisabled(channel: Channel, isDisabled: boolean, now: number): void {
    const record = this.of(channel);
    record.disabled = isDisabled;
    if (!isDisabled) {
      record.models.clear();
      record.whole = null;
    }
    this.#show(channel, record, now);
    // An operator's command must survive a crash.
    this.#save();
  }

  view({ channels }: Catalog, now: number): ChannelView[] {
    const { ledger, client } = this.#options;
    return [...channels.values()].map((channel) => {
      const connections = client.stats(addressOf(channel).origin);
      const amounts = ledger.sums.spentOf({ kind: "channel", name: channel.name }, "day");
      return describeChannel(channel, this.of(channel), { amounts, connections, now });
    });
  }

  retain({ channels }: Catalog): void {
    const before = this.#records;
    this.#records = new Map();
    for (const channel of channels.values()) {
      const known = before.get(channel.name);
      const made = records.createRecord(channel.name, records.identify(channel));
      made.disabled = known?.disabled === true;
      this.#records.set(channel.name, known?.identity === made.identity ? known : made);
    }
  }

  /** Saves once more, and never again: the file may then be another gateway's. */
  close(): void {
    this.#save();
    this.#isClosed = true;
  }

  #show(channel: Channel, record: records.ChannelRecord, now: number): void {
    if (this.#records.get(channel.name) !== record) return;
    const before = record.shown.state;
    const { state } = updateCondition(channel, record, now);
    const { notice } = this.#options.observer;
    const wasBad = BAD_STATES.has(before);
    const isBad = BAD_STATES.has(state);
    if (isBad && !wasBad)
      notice("warning", `channel "${channel.name}" is ${state}: it ${nameCondition(channel, record, now)}`);
    if (wasBad && !isBad) notice("note", `channel "${channel.name}" is ${state} again`);
    if (!this.#isClosed) this.#saving ??= setTimeout(() => this.#save(), SAVE_DELAY_MS).unref();
  }

  #save(): void {
    if (this.#saving === null) return;
    clearTimeout(this.#saving);
    this.#saving = null;
    try {
      replaceFile(this.#path, records.writeRecords(this.#records.values()));
    } catch {
      // The ledger reports a full disk.
    }
  }
}

export function withoutDisabled(group: Group, { ledger }: Catalog): Group {
  const saved = readSaved(`${ledger.path}.channels.json`);
  const disabled = saved.filter((record) => record.disabled).map(({ name }) => name);
  return { ...group, channels: group.channels.filter(({ name }) => !disabled.includes(name)) };
}

function readSaved(path: string): records.ChannelRecord[] {
  try {
    return records.readRecords(readOwn(path) ?? "");
  } catch {
    return [];
  }
}

/** How long to wait: until the time that the upstream named,
 *  or else until the trial ends. */
function waitOf({ isNamed, until, trialUntil }: records.Rest, now: number): number {
  return (isNamed ? until : trialUntil) - now;
}

/** Searches, pictures and unknown paths go where their session goes,
 *  and never move it. */
function followsSession({ target }: Request): boolean {
  return target.endpoint.onlyAt !== undefined || target.endpoint.purpose === "other";
}

const nameIn = (group = "", model = "", name = "") => `${group}/${model}/${name}`;

function keyOfSession({ client, group }: Request): string | null {
  return client.session === undefined ? null : nameIn(group.name, "*", client.session);
}

function readStoredId({ target, body: { plain, scan } }: Request): string | null {
  if (target.endpoint.purpose === "resource") return target.path.split("/")[3] ?? null;
  const span = scan?.get("previous_response_id");
  return plain && span ? readString(plain, span) : null;
}

function keyOfConversation(r: Request): string | null {
  const { client, group, model } = r;
  if (group.channels.length === 1) return null;
  if (followsSession(r) || model === null) return keyOfSession(r);
  const { plain, scan } = r.body;
  const name = nameConversation(client, plain && scan && { bytes: plain, scan });
  // Prompt caches and most cooldowns belong to one model.
  return name === null ? null : nameIn(group.name, model, name);
}

/** Sorts by: listed, unconverted, the conversation's channel,
 *  priority, weighted chance. */
function orderCandidates(
  candidates: readonly Candidate[],
  current: string | null,
  random: () => number,
): Candidate[] {
  const ranked = candidates.map((candidate) => {
    const { channel, isListed, isConverted } = candidate;
    const { name, priority, weight } = channel;
    const isOther = +(name !== current);
    const kind = 4 * +(isListed !== true) + 2 * +(isConverted === true) + isOther;
    return { candidate, kind, priority, chance: -Math.log(1 - random()) / weight };
  });
  const byRank = ranked.toSorted((a, b) => a.kind - b.kind || a.priority - b.priority || a.chance - b.chance);
  return byRank.map(({ candidate }) => candidate);
}
