// The models that a key can call: the lists of its group's channels, filtered, merged, with aliases,
// in the shape and the pages of the client's dialect.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startDemoUpstream, type DemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, type Platform, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest, type RawAnswer } from "../../harness/raw.ts";
import { bearer, openWorld, PLATFORMS, type World } from "../world.ts";

const MESSAGES = ["claude-opus-4-8", "claude-sonnet-4-6", "claude-sonnet-4-5-20250929", "claude-haiku-4-5"];
const RESPONSES = [
  "gpt-5.6-sol",
  "gpt-5.6-luna",
  "gpt-5.4",
  "gpt-5.4-nano",
  "gpt-5.3-codex",
  "text-embedding-3-small",
];
const CONTENT = [
  "gemini-3.8-flash",
  "gemini-3.5-flash",
  "gemini-3.1-pro-preview",
  "gemini-2.5-pro",
  "gemini-embedding-001",
];

type Section = Record<string, unknown>;

/** The ids in a list of any shape. */
function idsOf(answer: RawAnswer): string[] {
  const body = JSON.parse(answer.text);
  const rows: Section[] = body.data ?? body.models;
  return rows.map((row) => String(row["id"] ?? row["name"]).replace(/^models\//, ""));
}

describe("the list of each platform", () => {
  let world: World;
  beforeAll(() => {
    world = openWorld();
  });
  afterAll(() => world.stop());
  const list = async (target: string, platform: Platform, fields = bearer(platform)) => {
    const answer = await world.ask({ target, fields });
    expect([target, answer.status]).toEqual([target, 200]);
    expect(answer.field("content-type")).toBe("application/json");
    expect(answer.field("x-request-id")).toMatch(/^req_/);
    return { ids: idsOf(answer), body: JSON.parse(answer.text) };
  };

  test("the list of each platform has its own shape", async () => {
    const messages = await list("/v1/models", "messages");
    expect(messages.ids).toEqual(MESSAGES);
    expect(messages.body).toMatchObject({ has_more: false, first_id: MESSAGES[0]!, last_id: MESSAGES[3]! });
    expect(Object.keys(messages.body.data[0])).toEqual(
      expect.arrayContaining(["id", "type", "display_name", "created_at"]),
    );
    const responses = await list("/v1/models", "responses");
    expect(responses.ids).toEqual(RESPONSES);
    expect(responses.body.object).toBe("list");
    expect(responses.body.data[0]).toMatchObject({ id: RESPONSES[0]!, object: "model" });
    for (const target of ["/v1beta/models", "/v1/models"]) {
      const content = await list(target, "content");
      expect(content.ids).toEqual(CONTENT);
      expect(content.body.models[0].name).toBe(`models/${CONTENT[0]}`);
      expect(content.body.models[0].supportedGenerationMethods).toBeArray();
    }
  });

  test("the relay's list contains both families, in a shape that both kinds of client can read", async () => {
    const relay = await list("/relay/models", "relay");
    expect(relay.ids).toEqual([...MESSAGES, ...CONTENT]);
    expect(relay.body).toMatchObject({ object: "list", has_more: false });
    expect(relay.body.models.map(({ name }: { name: string }) => name)).toEqual(
      relay.ids.map((id) => `models/${id}`),
    );
    expect((await list("/relay/v1/models", "relay")).ids).toEqual(relay.ids);
    expect((await list("/relay/v1beta/models", "relay")).ids).toEqual(CONTENT);
  });

  test("a list follows the key's group, whatever the headers say", async () => {
    const fields = { "x-goog-api-key": keyOf("messages"), "anthropic-version": "2023-06-01" };
    expect((await list("/v1/models", "messages", fields)).body.first_id).toBe(MESSAGES[0]);
    expect((await list("/v1/models", "content", { "x-api-key": keyOf("content") })).body.models).toBeArray();
  });

  test("a list contains single models that can be fetched", async () => {
    const one = async (target: string, platform: Platform, more: Record<string, string> = {}) => {
      const answer = await world.ask({ target, fields: { ...bearer(platform), ...more } });
      return { status: answer.status, body: JSON.parse(answer.text) };
    };
    expect((await one("/v1/models/claude-haiku-4-5", "messages")).body).toMatchObject({
      id: "claude-haiku-4-5",
      type: "model",
    });
    expect((await one("/v1/models/gpt-5.4", "responses")).body).toMatchObject({
      id: "gpt-5.4",
      object: "model",
    });
    expect((await one("/v1beta/models/gemini-2.5-pro", "content")).body).toMatchObject({
      name: "models/gemini-2.5-pro",
    });
    expect((await one("/relay/v1/models/claude-haiku-4-5", "relay")).body).toMatchObject({
      id: "claude-haiku-4-5",
    });
    expect((await one("/relay/v1beta/models/gemini-2.5-pro", "relay")).body).toMatchObject({
      name: "models/gemini-2.5-pro",
    });
    const none = await one("/v1/models/gpt-5.4", "messages", { "anthropic-version": "2023-06-01" });
    expect(none).toMatchObject({ status: 404, body: { error: { type: "not_found_error" } } });
    expect(none.body.error.message).toContain('serves no model "gpt-5.4"');
  });

  test("a list is fetched with the channel's credential and nothing of the client's", async () => {
    const before = world.upstream.listRequests.length;
    await world.ask({
      target: "/v1/models",
      fields: { ...bearer("messages"), "user-agent": "mine", "x-api-key": keyOf("relay") },
    });
    const asked = world.upstream.listRequests[before]!;
    expect(asked.field("x-api-key")).toBe(CREDENTIAL);
    expect(asked.field("anthropic-version")).toBeDefined();
    expect(asked.field("user-agent")).toBeUndefined();
    expect(asked.field("authorization")).toBeUndefined();
  });

  test("a list costs nothing but has a log line", async () => {
    const before = world.gateway.records.length;
    await world.ask({ target: "/v1/models", fields: bearer("messages") });
    expect(world.gateway.records.slice(before)).toMatchObject([
      { endpoint: "/v1/models", key: "messages", status: 200, outcome: "complete" },
    ]);
    expect(world.gateway.ledger()).toEqual([]);
  });
});

interface Pair {
  readonly first: DemoUpstream;
  readonly second: DemoUpstream;
  ids(): Promise<string[]>;
  answer(): Promise<RawAnswer>;
}

/** A group with two channels, each with its own upstream. */
async function withPair(
  settings: { readonly first?: Section; readonly second?: Section },
  use: (pair: Pair) => Promise<void>,
): Promise<void> {
  const first = startDemoUpstream({ platform: "messages", models: ["a-1", "b-1", "shared"] });
  const second = startDemoUpstream({ platform: "messages", models: ["shared", "c-1"] });
  const channel = (upstream: DemoUpstream, more: Section = {}): Section => ({
    platform: "messages",
    base_url: upstream.url,
    credential: CREDENTIAL,
    ...more,
  });
  const gateway = startGatewayHere({
    config: makeConfig(first, {
      channels: { one: channel(first, settings.first), two: channel(second, settings.second) },
      groups: { messages: { platform: "messages", channels: ["one", "two"] } },
      keys: [{ name: "messages", group: "messages", secret: keyOf("messages") }],
    }),
  });
  const answer = () => rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
  await use({ first, second, answer, ids: async () => idsOf(await answer()) });
  await gateway.stop();
  first.stop();
  second.stop();
}

const LIST_FAILS = {
  fault: "status-500",
  when: ({ method }: { method: string }) => method === "GET",
} as const;

describe("the list of a group with two channels", () => {
  test("the list of two channels is both lists, each model once", () =>
    withPair({}, async (pair) => {
      expect(await pair.ids()).toEqual(["a-1", "b-1", "shared", "c-1"]);
    }));

  test("the list of two channels is filtered by each channel's models, with its aliases added", () =>
    withPair(
      {
        first: { models: ["a-*", "shared"], aliases: { fast: "b-1", shared: "a-1" } },
        second: { models: ["c-*"], aliases: { fast: "c-1", slow: "not-listed" } },
      },
      async (pair) => {
        expect((await pair.ids()).toSorted()).toEqual(["a-1", "c-1", "fast", "shared", "slow"]);
      },
    ));

  test("a list is the last known one if a channel cannot be reached", () =>
    withPair({}, async (pair) => {
      await pair.ids();
      pair.first.always(LIST_FAILS);
      expect(await pair.ids()).toEqual(["a-1", "b-1", "shared", "c-1"]);
      pair.first.refuse();
      expect(await pair.ids()).toEqual(["a-1", "b-1", "shared", "c-1"]);
    }));

  test("a channel does not reuse the list of a channel's former upstream", async () => {
    const first = startDemoUpstream({ platform: "messages", models: ["a-1"] });
    const gateway = startGatewayHere({ config: makeConfig(first) });
    const ask = () => rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
    expect(idsOf(await ask())).toEqual(["a-1"]);
    const { catalog } = gateway.running.gateway;
    const channel = { ...catalog.channels.get("messages")!, baseUrl: new URL("http://127.0.0.1:9") };
    const group = { ...catalog.groups.get("messages")!, channels: [channel] };
    const key = { ...catalog.keys.get("messages")!, group };
    gateway.running.reload({
      ...catalog,
      channels: new Map([["messages", channel]]),
      keysBySha256: new Map([[key.secretSha256, key]]),
    });
    expect((await ask()).status).toBe(502);
    await gateway.stop();
    first.stop();
  });

  test("a list consists of the config's exact names if nothing else is known", () =>
    withPair({ first: { models: ["x-1", "y-*"] } }, async (pair) => {
      pair.first.always(LIST_FAILS);
      expect(await pair.ids()).toEqual(["x-1", "shared", "c-1"]);
    }));

  test("a list is an error with the reasons if nothing is known at all", () =>
    withPair({ first: { models: ["y-*"] } }, async (pair) => {
      pair.first.always(LIST_FAILS);
      pair.second.refuse();
      const answer = await pair.answer();
      expect(answer.status).toBe(502);
      const { message } = JSON.parse(answer.text).error;
      expect(message).toContain('"one"');
      expect(message).toContain("500");
      expect(message).toContain('"two"');
      expect(message).not.toContain(CREDENTIAL);
    }));

  test("a list uses what it can of a malformed list", () =>
    withPair({}, async (pair) => {
      pair.first.always({ fault: "not-json", when: LIST_FAILS.when });
      expect(await pair.ids()).toEqual(["shared", "c-1"]);
      pair.first.always({ fault: "gzip", when: LIST_FAILS.when });
      expect(await pair.ids()).toEqual(["a-1", "b-1", "shared", "c-1"]);
    }));

  test("a list is fetched once for simultaneous clients", () =>
    withPair({}, async (pair) => {
      await Promise.all(Array.from({ length: 20 }, () => pair.ids()));
      expect(pair.first.listRequests.length).toBeLessThan(20);
    }));
});

test("all pages of an upstream's list are read", async () => {
  const models = Array.from({ length: 2500 }, (_, index) => `gemini-${index}`);
  for (const platform of PLATFORMS) {
    const upstream = startDemoUpstream({ platform, models });
    const gateway = startGatewayHere({ config: makeConfig(upstream) });
    const target =
      platform === "relay" ? "/relay/models" : platform === "content" ? "/v1beta/models" : "/v1/models";
    const ids = idsOf(await rawRequest(gateway.port, { target, fields: bearer(platform) }));
    expect([platform, ids.length]).toEqual([platform, 2500]);
    await gateway.stop();
    upstream.stop();
  }
});

test("a credential that an upstream repeats in its list is removed", async () => {
  const upstream = startDemoUpstream({ platform: "messages", models: ["a", `echo-${CREDENTIAL}`] });
  const gateway = startGatewayHere({ config: makeConfig(upstream) });
  const answer = await rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
  expect(idsOf(answer)).toEqual(["a", `echo-${"*".repeat(CREDENTIAL.length)}`]);
  await gateway.stop();
  upstream.stop();
});
