// Sessions of agents as the limits see them, with a simulated clock: requests ask the real gate, wait in the real
// queue, and cost what the price book says. Everything is the same in each run.

import { AnswerHistory, CachedPrompts } from "../../../src/billing/limits/forecasts.ts";
import {
  type Admission,
  type Cost,
  createGate,
  type Gate,
  type NoRoom,
} from "../../../src/billing/limits/limits.ts";
import { forecastCost, type Quote } from "../../../src/billing/limits/reserve.ts";
import { WaitingRequests } from "../../../src/billing/limits/waiting.ts";
import { computeCharge } from "../../../src/billing/charge.ts";
import { loadBook } from "../../../src/billing/prices.ts";
import type { Usage } from "../../../src/billing/usage.ts";
import type { Group, Key, Limits } from "../../../src/config/catalog.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../../src/lib/money.ts";
import { UTC } from "../../../src/lib/text/zone.ts";

/** One request of an agent. */
export interface Turn {
  readonly model: string;
  /** Tokens: the whole prompt, how much of it is read from the cache, and how much is neither read nor written. */
  readonly prompt: number;
  readonly cached: number;
  readonly fresh: number;
  readonly output: number;
  readonly cap: number | null;
  readonly seconds: number;
}

/** An agent sends one request after the other, the first at `beginsAt`. */
export interface Agent {
  readonly name: string;
  readonly beginsAt: number;
  readonly turns: readonly Turn[];
  /** Without a session, nothing is known of what the agent has in the cache. */
  readonly session: string;
}

export interface Outcome {
  readonly requests: number;
  readonly spent: string;
  /** How often a request was refused because of other requests in flight; how many were given up after two retries. */
  readonly refused: number;
  readonly givenUp: number;
  /** Requests that were let in. */
  readonly admitted: number;
  /** The longest time that a request waited for room, in seconds. */
  readonly longestWait: number;
}

const NONE: Limits = {
  usdPerDay: null,
  usdPerMonth: null,
  usdTotal: null,
  usdPerSession: null,
  requestsPerMinute: null,
  requestsPerMinutePerSession: null,
  concurrentRequests: null,
  sameCall: null,
  allowUnpriced: false,
};

export function limitedKey(own: Partial<Limits>, ofGroup: Partial<Limits> = {}, name = "laptop"): Key {
  const group: Group = {
    name: "claude",
    platform: "messages",
    multiplier: "1",
    description: "",
    channels: [],
    listed: [],
    exclusive: false,
    defaultModel: null,
    otherPaths: null,
    cache: null,
    convert: false,
    plans: [],
    usesLogin: false,
    mixesDialects: false,
    limits: { ...NONE, ...ofGroup },
  };
  const limits = { ...NONE, ...own };
  return {
    name,
    group,
    secretSha256: "",
    previous: null,
    created: null,
    disabled: false,
    expires: null,
    limits,
  };
}

const START = Date.parse("2026-11-20T08:00:00Z");
/** The official SDKs try again this often. */
const RETRIES = 2;

const book = loadBook();
const overrides = new Map();

function priceOf(model: string, usage: Usage): string {
  return (
    computeCharge({
      parts: [{ model, pass: "message", usage }],
      tariff: {},
      model,
      requested: model,
      book,
      overrides,
      at: new Date(START),
      multiplier: "1",
    }).charge ?? "0"
  );
}

/** The usage as the provider reports it. Some providers price cache writes separately. */
function usageOf({ model, prompt, cached, fresh, output }: Turn): Usage {
  const written = prompt - cached - fresh;
  const write = model.startsWith("claude")
    ? "cache_write_5m"
    : model.startsWith("gpt")
      ? "cache_write"
      : "input";
  const usage: Usage = { input: fresh, cache_read: cached, output };
  usage[write] = (usage[write] ?? 0) + written;
  return usage;
}

export function costOf(turns: readonly Turn[]): Usd {
  return turns.reduce((sum, turn) => addUsd(sum, parseUsd(priceOf(turn.model, usageOf(turn)))), ZERO_USD);
}

interface Event {
  readonly at: number;
  readonly run: () => void;
}

export class Simulation {
  #now = START;
  #events: Event[] = [];
  #spent = ZERO_USD;
  #refused = 0;
  #givenUp = 0;
  #requests = 0;
  #admitted = 0;
  #longestWait = 0;
  readonly #key: Key;
  readonly #gate: Gate;
  readonly #waiting: WaitingRequests;
  readonly history = new AnswerHistory();
  readonly #prompts = new CachedPrompts();
  /** How many real tokens a prompt has for each token that is estimated from its size. */
  readonly #density: number;

  constructor(key: Key, density = 1) {
    this.#key = key;
    this.#density = density;
    this.#waiting = new WaitingRequests((ms, expire) => this.after(ms, expire));
    const spent = () => ({ charged: this.#spent, estimated: ZERO_USD, byPlan: ZERO_USD });
    const sums = { spentOf: spent, zone: UTC };
    this.#gate = createGate(sums, () => this.#waiting.freed());
  }

  after(ms: number, run: () => void): () => void {
    const event = { at: this.#now + ms, run };
    this.#events.push(event);
    return () => {
      this.#events = this.#events.filter((other) => other !== event);
    };
  }

  add(agent: Agent): void {
    this.after(agent.beginsAt * 1000, () => void this.#play(agent));
  }

  async run(): Promise<Outcome> {
    while (this.#events.length > 0) {
      const next = this.#events.reduce((first, event) => (event.at < first.at ? event : first));
      this.#events.splice(this.#events.indexOf(next), 1);
      this.#now = next.at;
      next.run();
      // Code that waited for this event goes on before the next event.
      for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
    }
    return {
      requests: this.#requests,
      spent: formatUsd(this.#spent),
      refused: this.#refused,
      givenUp: this.#givenUp,
      admitted: this.#admitted,
      longestWait: this.#longestWait / 1000,
    };
  }

  async #play(agent: Agent): Promise<void> {
    for (const turn of agent.turns) {
      this.#requests += 1;
      const admission = await this.#send(agent, turn);
      if (admission === null) continue;
      this.#admitted += 1;
      await this.#pass(turn.seconds * 1000);
      this.#end(agent, turn, admission);
    }
  }

  #pass(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve));
  }

  /** Sends a turn, and sends it again if it is refused. Returns null if the agent gives up. */
  async #send(agent: Agent, turn: Turn): Promise<Admission | null> {
    for (let tries = 0; ; tries += 1) {
      const since = this.#now;
      try {
        const place = this.#ask(agent, turn, false);
        const admission = "noRoom" in place ? await this.#wait(agent, turn, place) : place;
        this.#longestWait = Math.max(this.#longestWait, this.#now - since);
        return admission;
      } catch (error) {
        if (!(error instanceof GatewayError)) throw error;
        if (error.code === "limit_spent") return null;
        this.#refused += 1;
        if (tries === RETRIES) {
          this.#givenUp += 1;
          return null;
        }
        await this.#pass((error.retrySeconds ?? 0) * 1000);
      }
    }
  }

  #wait(agent: Agent, turn: Turn, place: NoRoom): Promise<Admission> {
    const wait = this.#waiting.hold(place, () => this.#ask(agent, turn, true));
    if (wait === null) throw place.noRoom;
    return wait.entered;
  }

  #ask(agent: Agent, turn: Turn, hasWaited: boolean): Admission | NoRoom {
    return this.#gate.enter(this.#key, this.#now, this.#describe(agent, turn), { hasWaited });
  }

  #describe({ name, session }: Agent, { model, prompt, cap }: Turn): Cost {
    const client = { session, agent: name };
    const quote: Quote = (usage) => priceOf(model, usage);
    const body = Buffer.from(JSON.stringify(cap === null ? {} : { max_tokens: cap }));
    const forecast = () =>
      forecastCost({
        body,
        prompt: this.#prompts.expect(
          { key: this.#key.name, model, client },
          this.#now,
          this.#estimate(prompt),
        ),
        answer: this.history.expect(model),
        hasOutput: true,
        scan: null,
        capNames: ["max_tokens"],
        quotes: [quote],
      });
    return { model, forecast };
  }

  /** Estimates a prompt's tokens from the size of its text. */
  #estimate(prompt: number): number {
    return Math.round(prompt / this.#density);
  }

  #end({ name, session }: Agent, turn: Turn, admission: Admission): void {
    const usage = usageOf(turn);
    this.#spent = addUsd(this.#spent, parseUsd(priceOf(turn.model, usage)));
    this.history.add(turn.model, turn.output);
    const conversation = { key: this.#key.name, model: turn.model, client: { session, agent: name } };
    this.#prompts.add(conversation, { ...usage }, this.#now, this.#estimate(turn.prompt));
    admission.release();
  }
}
