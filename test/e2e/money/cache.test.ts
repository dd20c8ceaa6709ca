// Tests that a ledger line has the request's cache miss: the place, the tokens and the cost, in every dialect, streamed or not.

import { DIALECT_NAMES } from "../../../src/dialects/dialect.ts";
import { expect, test } from "bun:test";
import { gzipSync } from "node:zlib";

import { listProblems } from "../../billing/ledger/ledger-samples.ts";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import {
  type CachingDialect,
  CachingUpstream,
  type Counted,
} from "../../harness/upstreams/caching-upstream.ts";
import {
  type Conversation,
  goOn,
  openConversation,
  textOf,
  writeRequest,
} from "../../harness/conversation.ts";
import { answerCounted, type CountedOptions } from "../../harness/upstreams/counted-answers.ts";

import type { RequestLines } from "../../harness/raw.ts";
import { openOwnWorld, type Line, makeRequest, type World } from "../world.ts";

const MODELS = {
  messages: "claude-sonnet-4-5",
  responses: "gpt-5.4",
  chat: "gpt-5.4",
  content: "gemini-2.5-pro",
} as const;

/** USD per million tokens, of a miss and of a read, for the models above. */
const PRICES = {
  messages: { paid: 3.75, read: 0.3 },
  responses: { paid: 2.5, read: 0.25 },
  chat: { paid: 2.5, read: 0.25 },
  content: { paid: 1.25, read: 0.125 },
} as const;

const CLIENT = { "user-agent": "claude-cli/2.1.330 (external, cli)", "x-claude-code-session-id": "s-1" };

interface Asked {
  readonly line: Line;
  readonly counted: Counted;
}

/** One session through the gateway, to an upstream that caches. */
class Session {
  readonly #world: World;
  readonly #dialect: CachingDialect;
  readonly #stream: boolean;
  readonly upstream = new CachingUpstream();
  #now = 0;

  constructor(world: World, dialect: CachingDialect, stream: boolean) {
    this.#world = world;
    this.#dialect = dialect;
    this.#stream = stream;
  }

  async ask(talk: Conversation, options: Partial<CountedOptions> = {}, fields = {}): Promise<Asked> {
    const dialect = this.#dialect;
    const model = MODELS[dialect];
    const body = writeRequest(dialect, { ...talk, model }, this.#stream);
    const counted = this.upstream.serve(dialect, body, "account", (this.#now += 1000));
    const answer = answerCounted(dialect, counted, { model, stream: this.#stream, ...options });
    this.#world.upstream.next({ answer });
    const { target, fields: own } = makeRequest(dialect, this.#stream);
    const request: RequestLines = { target, fields: { ...own, ...CLIENT, ...fields }, body };
    const { lines } = await this.#world.trace(request);
    expect(lines).toHaveLength(1);
    return { line: lines[0]!, counted };
  }

  /** Sends four turns, in which nothing is missed. Returns how many tokens the last turn left in the cache. */
  async grow(talk: Conversation): Promise<number> {
    for (const turn of [1, 2, 3, 4]) {
      const { line, counted } = await this.ask(talk);
      expect(line).not.toHaveProperty("cache");
      goOn(talk, textOf(900, `answer ${turn}`), textOf(1800, `result ${turn}`));
      if (turn < 4) continue;
      const { total, read, written } = counted;
      if (this.#dialect === "messages") return read + written;
      return this.#dialect === "content" ? total : total - (total % 128);
    }
    return 0;
  }
}

function costOf(dialect: CachingDialect, tokens: number): string {
  const { paid, read } = PRICES[dialect];
  const pico = BigInt(tokens) * (BigInt(paid * 1e6) - BigInt(read * 1e6));
  const text = pico.toString().padStart(13, "0");
  return `${text.slice(0, -12)}.${text.slice(-12)}`.replace(/\.?0+$/, "");
}

test.each(DIALECT_NAMES)("P144: a line names the changed tool and the miss's cost: %s", async (dialect) => {
  for (const stream of [false, true]) {
    const world = openOwnWorld();
    const session = new Session(world, dialect, stream);
    const talk = openConversation("a", textOf(2400, "first"));
    const left = await session.grow(talk);
    talk.tools[1] = { ...talk.tools[1], description: "Other." };
    const { line, counted } = await session.ask(talk);
    const missed = left - counted.read;
    const usd = costOf(dialect, missed);
    expect(line["cache"]).toEqual({ missed, usd, because: "tools_changed", at: 2 });
    expect(listProblems(world.gateway.folder.join("ledger.jsonl"))).toEqual([]);
  }
});

test("P144: a line has the upstream's reason for a miss, and the changed place if the gateway finds the same reason", async () => {
  const world = openOwnWorld();
  for (const stream of [false, true]) {
    const session = new Session(world, "messages", stream);
    const talk = openConversation(`own ${stream}`, textOf(2400, `first ${stream}`));
    const left = await session.grow(talk);
    talk.system[0] = textOf(400, "other");
    const reason = { type: "system_changed", cache_missed_input_tokens: 77 };
    const { line, counted } = await session.ask(talk, { diagnostics: { cache_miss_reason: reason } });
    const missed = left - counted.read;
    expect(line["cache"]).toEqual({
      missed,
      usd: costOf("messages", missed),
      because: "system_changed",
      at: 1,
      reported: true,
    });
  }
  const session = new Session(world, "responses", true);
  const talk = openConversation("own", textOf(6000, "first"));
  const left = await session.grow(talk);
  session.upstream.lose();
  const diagnostics = { type: "cache_miss", reason: "prompt_cache_key_changed", cache_missed_tokens: 5 };
  const { line } = await session.ask(talk, { diagnostics });
  expect(line["cache"]).toMatchObject({
    missed: left,
    because: "settings_changed",
    part: "prompt_cache_key",
    reported: true,
  });
});

test("the first miss after a restart has the upstream's reason and count of tokens", async () => {
  const world = openOwnWorld();
  const session = new Session(world, "messages", false);
  const talk = openConversation("a", textOf(2400, "first"));
  const reason = { type: "tools_changed", cache_missed_input_tokens: 900 };
  const { line } = await session.ask(talk, { diagnostics: { cache_miss_reason: reason } });
  const usd = costOf("messages", 900);
  expect(line["cache"]).toEqual({ missed: 900, usd, because: "tools_changed", reported: true });
  for (const type of ["previous_message_not_found", "unavailable", null]) {
    const nothing = type && { type, cache_missed_input_tokens: 900 };
    const { line: silent } = await session.ask(talk, { diagnostics: { cache_miss_reason: nothing } });
    expect(silent).not.toHaveProperty("cache");
  }
  const other = { type: "cache_evicted", cache_missed_input_tokens: 900 };
  const begun = openConversation("b", textOf(2400, "first"));
  const fields = { "x-claude-code-session-id": "s-2" };
  const { line: evicted } = await session.ask(begun, { diagnostics: { cache_miss_reason: other } }, fields);
  expect(evicted["cache"]).toEqual({ missed: 900, usd, because: "cache_evicted", reported: true });
});

test("P144: if only a header or the hundredth member of the body changed before a miss, the line names it as the likely cause", async () => {
  const world = openOwnWorld();
  const session = new Session(world, "messages", false);
  const talk = openConversation("a", textOf(6000, "first"));
  for (let name = 1; name <= 100; name += 1) talk.extra[`x_${name}`] = 1;
  await session.grow(talk);
  const changes = [
    [1, {}, { because: "upstream_lost" }],
    [2, {}, { part: "x_100", detail: "perhaps" }],
    [2, { "x-grok-conv-id": "b" }, { part: "x-grok-conv-id", detail: "perhaps" }],
  ] as const;
  for (const [value, fields, cause] of changes) {
    talk.extra["x_100"] = value;
    session.upstream.lose();
    expect((await session.ask(talk, {}, fields)).line["cache"]).toMatchObject(cause);
  }
});

test("the cache miss of a compressed body is analysed, too", async () => {
  const world = openOwnWorld();
  const upstream = new CachingUpstream();
  const talk = openConversation("a", textOf(6000, "first"));
  const send = async (): Promise<Line> => {
    const body = writeRequest("messages", { ...talk, model: MODELS.messages });
    const counted = upstream.serve("messages", body, "account", 1000);
    world.upstream.next({
      answer: answerCounted("messages", counted, { model: MODELS.messages, stream: false }),
    });
    const { target, fields } = makeRequest("messages");
    const packed = gzipSync(JSON.stringify(body));
    const { lines } = await world.trace({
      target,
      fields: { ...fields, ...CLIENT, "content-type": "application/json", "content-encoding": "gzip" },
      body: packed,
    });
    return lines[0]!;
  };
  expect(await send()).not.toHaveProperty("cache");
  talk.tools.pop();
  goOn(talk, "answer", "next");
  expect((await send())["cache"]).toMatchObject({ because: "tools_changed", at: 3 });
});

test("cache_analysis: off turns the analysis of the cache off", async () => {
  const world = openOwnWorld(() => ({ cache_analysis: "off" }));
  const session = new Session(world, "messages", false);
  const talk = openConversation("a", textOf(2400, "first"));
  await session.grow(talk);
  talk.tools.pop();
  const { line } = await session.ask(talk);
  expect(line).not.toHaveProperty("cache");
  expect(world.gateway.running.gateway.cacheMemory.parts).toBe(0);
});

test("a fault in the analysis of the cache prevents neither the answer nor the line", async () => {
  const world = openOwnWorld();
  const { gateway } = world.gateway.running;
  gateway.cacheMemory.learn = () => {
    throw new Error("broken inside");
  };
  const session = new Session(world, "messages", true);
  const { line } = await session.ask(openConversation("a", textOf(2400, "first")));
  expect(line).toMatchObject({ outcome: "complete", basis: "exact" });
  expect(line).not.toHaveProperty("cache");
});

test("the line of a request has its cache miss even if the client left during the stream", async () => {
  const world = openOwnWorld();
  const session = new Session(world, "messages", true);
  const talk = openConversation("a", textOf(2400, "first"));
  const left = await session.grow(talk);
  talk.tools.pop();
  const body = writeRequest("messages", { ...talk, model: MODELS.messages }, true);
  const counted = session.upstream.serve("messages", body, "account", 9000);
  const answer = answerCounted("messages", counted, { model: MODELS.messages, stream: true });
  const gate = makeGate();
  world.upstream.next({ answer, gates: { 3: gate } });
  const { target, fields } = makeRequest("messages", true);
  const running = await world.begin({ target, fields: { ...fields, ...CLIENT }, body });
  await running.client.until("content_block_delta");
  running.client.reset();
  const { lines } = await running.over();
  gate.open();
  expect(lines).toMatchObject([
    {
      outcome: "client_closed",
      basis: "partial",
      cache: { missed: left, because: "tools_changed", at: 3 },
    },
  ]);
});
