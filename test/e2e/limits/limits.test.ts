// Limits end to end: how a request over a limit is refused, in its own protocol, and that a restart forgets nothing.

import { PLATFORMS } from "../../../src/config/schema.ts";
import { Anthropic, RateLimitError as AnthropicRateLimitError } from "@anthropic-ai/sdk";
import { expect, test } from "bun:test";
import { OpenAI, RateLimitError } from "openai";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { passMidnight } from "../../harness/day.ts";
import { keyOf, makeConfig, type Platform, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";

type Limits = Record<string, string | number>;

const message = (more: Record<string, unknown> = {}) => ({
  method: "POST",
  target: "/v1/messages",
  fields: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
  body: JSON.stringify({
    model: "claude-haiku-4-5",
    max_tokens: 64,
    messages: [{ role: "user", content: "Hello" }],
    ...more,
  }),
});

const CALLS: Record<Platform, { target: string; field: string; body: unknown }> = {
  messages: {
    target: "/v1/messages",
    field: "x-api-key",
    body: { model: "claude-haiku-4-5", max_tokens: 9, messages: [] },
  },
  responses: { target: "/v1/responses", field: "authorization", body: { model: "gpt-5.4", input: "Hello" } },
  content: {
    target: "/v1beta/models/gemini-2.5-pro:generateContent",
    field: "x-goog-api-key",
    body: { contents: [] },
  },
  relay: {
    target: "/relay/v1/messages",
    field: "x-api-key",
    body: { model: "claude-haiku-4-5", max_tokens: 9, messages: [] },
  },
};

function callOf(platform: Platform) {
  const { target, field, body } = CALLS[platform];
  const value = field === "authorization" ? `Bearer ${keyOf(platform)}` : keyOf(platform);
  return { method: "POST", target, fields: { [field]: value }, body: JSON.stringify(body) };
}

function limitKeys(limits: Limits) {
  return (url: string) => {
    const config = makeConfig({ url });
    return { ...config, keys: config.keys.map((key) => ({ ...key, limits })) };
  };
}

async function withGateway(
  configure: (url: string) => Record<string, unknown>,
  use: (
    gateway: ReturnType<typeof startGatewayHere>,
    upstream: ReturnType<typeof startDemoUpstream>,
  ) => Promise<void>,
): Promise<void> {
  const upstream = startDemoUpstream();
  const gateway = startGatewayHere({ config: configure(upstream.url) });
  try {
    await use(gateway, upstream);
  } finally {
    await gateway.stop();
    upstream.stop();
  }
}

test("a key over its limit gets a 429 with the limit, the amount and the reset, and nothing goes upstream", async () => {
  await passMidnight();
  await withGateway(limitKeys({ usd_per_day: "0.000001" }), async (gateway, upstream) => {
    expect((await rawRequest(gateway.port, message())).status).toBe(200);
    const refused = await rawRequest(gateway.port, message());
    const { error } = JSON.parse(refused.body.toString());
    expect([refused.status, error.type]).toEqual([429, "rate_limit_error"]);
    expect(error.message).toContain(
      'The key "messages" may spend $0.000001 (usd_per_day) and has spent $0.000103',
    );
    expect(error.message).toContain("It resets at ");
    const [reset = ""] = /\d{4}-\d\d-\d\dT[\d:]+Z/.exec(error.message) ?? [];
    const seconds = (Date.parse(reset) - Date.now()) / 1000;
    expect(Math.abs(Number(refused.field("retry-after")) - seconds)).toBeLessThan(60);
    expect(upstream.requests.length).toBe(1);
    expect(gateway.ledger().length).toBe(1);
  });
});

test("official SDKs do not wait for the reset, although they know it", async () => {
  await passMidnight();
  await withGateway(limitKeys({ usd_per_day: "0.000000000001" }), async (gateway) => {
    const openai = new OpenAI({ apiKey: keyOf("responses"), baseURL: `${gateway.url}/v1` });
    const ask = () => openai.responses.create({ model: "gpt-5.4", input: "Hello" });
    await ask();
    expect(await ask().catch((error: unknown) => error)).toBeInstanceOf(RateLimitError);
    const anthropic = new Anthropic({ apiKey: keyOf("messages"), baseURL: gateway.url });
    const messages = [{ role: "user" as const, content: "Hello" }];
    const send = () => anthropic.messages.create({ model: "claude-haiku-4-5", max_tokens: 9, messages });
    await send();
    expect(await send().catch((error: unknown) => error)).toBeInstanceOf(AnthropicRateLimitError);
    // None was tried again.
    expect(await gateway.recorded(4)).toHaveLength(4);
  });
});

test.each(PLATFORMS)("a key over its limit gets the error of its dialect: %s", async (platform) => {
  await withGateway(limitKeys({ usd_total: "0.000000000001" }), async (gateway) => {
    expect((await rawRequest(gateway.port, callOf(platform))).status).toBe(200);
    const { status, body } = await rawRequest(gateway.port, callOf(platform));
    const { error } = JSON.parse(body.toString());
    expect(status).toBe(429);
    expect(error.type ?? error.status).toMatch(/rate_limit_error|usage_limit_reached|RESOURCE_EXHAUSTED/);
    expect(error.message).toContain("does not reset");
  });
});
