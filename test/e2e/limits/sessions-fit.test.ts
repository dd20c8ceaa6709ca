// Sessions of agents that cost less than a limit run under it without one refusal, although each request has a cap of
// 128,000 tokens and a prompt of up to half a megabyte, and subagents work at the same time. The shapes are those of
// Claude Code and Codex: a prompt that grows and is read from the cache, small requests beside it, bursts of subagents.

import { expect, test } from "bun:test";

import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";

interface Turn {
  readonly model: string;
  /** Tokens of the whole prompt, of which `cached` are read from the cache and `fresh` are neither read nor written. */
  readonly prompt: number;
  readonly cached: number;
  readonly fresh: number;
  readonly output: number;
}

/** USD per million tokens. */
const PRICES: Readonly<Record<string, { input: number; read: number; write: number; output: number }>> = {
  "claude-opus-4-8": { input: 5, read: 0.5, write: 6.25, output: 25 },
  "claude-sonnet-4-6": { input: 3, read: 0.3, write: 3.75, output: 15 },
  "claude-haiku-4-5": { input: 1, read: 0.1, write: 1.25, output: 5 },
  "gpt-6-sol": { input: 2, read: 0.2, write: 2.5, output: 10 },
};

function costOf({ model, prompt, cached, fresh, output }: Turn): number {
  const { input, read, write, output: out } = PRICES[model]!;
  return (fresh * input + cached * read + (prompt - cached - fresh) * write + output * out) / 1e6;
}

/** Steps of a session; the requests of a step run at the same time. */
function* playSession(model: string, small: string): Generator<readonly Turn[], void> {
  let main = 22_000;
  let cached = 0;
  for (let count = 1; ; count += 1) {
    const output = count % 17 === 0 ? 4_000 : 150 + ((count * 377) % 900);
    const turn = { model, prompt: main, cached, fresh: 4, output };
    const beside = { model: small, prompt: 900, cached: 0, fresh: 900, output: 20 };
    yield [turn, beside];
    cached = main - 4;
    main += output + 600;
    if (count % 9 !== 0) continue;
    const prompt = 9_000 + count * 100;
    const agent = { model, prompt, cached: count === 9 ? 0 : 8_000, fresh: 4, output: 300 };
    yield [agent, agent, agent];
  }
}

/** An upstream that answers when all requests of a step have come. */
function startUpstream() {
  let step: readonly Turn[] = [];
  let arrived: (() => void)[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const turn = step[Number(request.headers.get("x-turn"))]!;
      await request.arrayBuffer();
      const all = new Promise<void>((resolve) => arrived.push(resolve));
      if (arrived.length === step.length) for (const go of arrived) go();
      await all;
      return Response.json(new URL(request.url).pathname === "/v1/responses" ? respond(turn) : reply(turn));
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    stop: () => void server.stop(true),
    release: () => {
      for (const go of arrived) go();
    },
    play: (turns: readonly Turn[]) => {
      step = turns;
      arrived = [];
    },
  };
}

function reply({ model, prompt, cached, fresh, output }: Turn) {
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text: "x" }],
    stop_reason: "end_turn",
    usage: {
      input_tokens: fresh,
      cache_read_input_tokens: cached,
      cache_creation_input_tokens: prompt - cached - fresh,
      output_tokens: output,
    },
  };
}

function respond({ model, prompt, cached, fresh, output }: Turn) {
  return {
    id: "resp_1",
    object: "response",
    status: "completed",
    model,
    output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text: "x" }] }],
    usage: {
      input_tokens: prompt,
      input_tokens_details: { cached_tokens: cached, cache_write_tokens: prompt - cached - fresh },
      output_tokens: output,
      total_tokens: prompt + output,
    },
  };
}

const SESSION = "0d1f4c1e-5c5b-4a4a-9f6e-2b6d3f1a7c10";

const text = (tokens: number): string => "word".repeat(tokens);

function ask(port: number, { model, prompt }: Turn, index: number) {
  const fields = { "content-type": "application/json", "x-turn": String(index) };
  if (model.startsWith("gpt"))
    return rawRequest(port, {
      target: "/v1/responses",
      fields: {
        ...fields,
        authorization: `Bearer ${keyOf("responses")}`,
        originator: "codex_cli_rs",
        "user-agent": "codex_cli_rs/0.100.0",
        "session-id": SESSION,
      },
      body: JSON.stringify({ model, input: text(prompt), max_output_tokens: 128_000 }),
    });
  return rawRequest(port, {
    target: "/v1/messages",
    fields: {
      ...fields,
      "x-api-key": keyOf("messages"),
      "user-agent": "claude-cli/2.1.0 (external, cli)",
      "x-claude-code-session-id": SESSION,
    },
    body: JSON.stringify({
      model,
      max_tokens: 128_000,
      messages: [{ role: "user", content: text(prompt) }],
    }),
  });
}

const BUDGET_USD = 1.5;

test.each([
  ["claude-sonnet-4-6", "claude-haiku-4-5"],
  ["claude-opus-4-8", "claude-haiku-4-5"],
  ["gpt-6-sol", "gpt-6-sol"],
])("a session of %s that costs $1.50 has no refusal under $2 a day and a session", async (model, small) => {
  const upstream = startUpstream();
  const config = makeConfig(upstream);
  const limits = { usd_per_day: "2", usd_per_session: "2" };
  const keys = config.keys.map((key) => ({ ...key, limits }));
  const gateway = startGatewayHere({ config: { ...config, keys } });
  let spent = 0;
  let requests = 0;
  for (const turns of playSession(model, small)) {
    const cost = turns.reduce((sum, turn) => sum + costOf(turn), 0);
    if (spent + cost > BUDGET_USD) break;
    upstream.play(turns);
    const answers = await Promise.all(
      turns.map(async (turn, index) => {
        const answer = await ask(gateway.port, turn, index);
        // The others must not wait for a request that was refused.
        if (answer.status !== 200) upstream.release();
        return answer;
      }),
    );
    expect(answers.map((answer) => (answer.status === 200 ? 200 : answer.text))).toEqual(
      turns.map(() => 200),
    );
    spent += cost;
    requests += turns.length;
    await gateway.recorded(requests);
  }
  expect(spent).toBeGreaterThan(BUDGET_USD * 0.95);
  const charged = gateway.ledger().reduce((sum, line) => sum + Number(line["charge_usd"]), 0);
  expect(charged).toBeCloseTo(spent, 6);
  const sessions = new Set(gateway.ledger().map((line) => Object(line["client"])["session"]));
  expect([...sessions]).toEqual([SESSION]);
  await gateway.stop();
  upstream.stop();
});
