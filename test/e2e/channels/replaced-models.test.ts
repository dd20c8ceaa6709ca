// A model that takes the place of the client's: by an alias for many names, or as a group's default.

import { expect, test } from "bun:test";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeTempFolder, readLedger } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";

/** What each model becomes: the header of the response, and the names in its ledger line. */
async function replace(channel: object, group: object, models: readonly string[]) {
  using upstream = Object.assign(startDemoUpstream(), { [Symbol.dispose]: () => upstream.stop() });
  const config = makeConfig(upstream);
  const { messages } = config.channels;
  using folder = makeTempFolder();
  const gateway = startGatewayHere({
    folder,
    config: {
      ...config,
      channels: { ...config.channels, messages: { ...messages, ...channel } },
      groups: { ...config.groups, messages: { platform: "messages", channels: ["messages"], ...group } },
    },
  });
  const headers: Array<string | undefined> = [];
  for (const model of models) {
    const body = { model, max_tokens: 9, messages: [{ role: "user", content: "Hello" }] };
    const fields = { "x-api-key": keyOf("messages") };
    const answer = await rawRequest(gateway.port, { target: "/v1/messages", fields, body });
    headers.push(answer.field("x-gateway-adjusted"));
  }
  await gateway.stop();
  const lines = readLedger(folder.join("ledger.jsonl"));
  return lines.map((line, index) => [line["model"], headers[index], line["upstream_model"]]);
}

test("an exact alias comes before one with *, and of those the longest beginning counts", async () => {
  const aliases = {
    "claude-*": "claude-haiku-4-5",
    "claude-opus-*": "claude-opus-4-8",
    "claude-opus-4": "claude-sonnet-4-6",
  };
  expect(await replace({ aliases }, {}, ["claude-3", "claude-opus-5", "claude-opus-4"])).toEqual([
    ["claude-3", "model=claude-haiku-4-5", "claude-haiku-4-5"],
    ["claude-opus-5", "model=claude-opus-4-8", "claude-opus-4-8"],
    ["claude-opus-4", undefined, "claude-sonnet-4-6"],
  ]);
});

test("a default model takes the place of a model that nobody lists or names, and of no other", async () => {
  const aliases = { mine: "claude-unlisted" };
  const group = { default_model: "claude-haiku-4-5" };
  expect(await replace({ aliases }, group, ["gpt-5", "claude-opus-4-8", "mine"])).toEqual([
    ["gpt-5", "model=claude-haiku-4-5", "claude-haiku-4-5"],
    ["claude-opus-4-8", undefined, "claude-opus-4-8"],
    ["mine", undefined, "claude-unlisted"],
  ]);
});

test("a default model takes the place of what `models` excludes, and not of an exact name there", async () => {
  const models = ["claude-haiku-*", "claude-unlisted"];
  const group = { default_model: "claude-haiku-4-5" };
  expect(await replace({ models }, group, ["gpt-5", "claude-unlisted"])).toEqual([
    ["gpt-5", "model=claude-haiku-4-5", "claude-haiku-4-5"],
    ["claude-unlisted", undefined, "claude-unlisted"],
  ]);
});

test("a model stays what it is where the upstream gives no list", async () => {
  using upstream = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => (request.method === "GET" ? new Response("", { status: 404 }) : Response.json({})),
  });
  const channel = { base_url: upstream.url.origin };
  const [line] = await replace(channel, { default_model: "claude-haiku-4-5" }, ["gpt-5"]);
  expect(line?.slice(0, 2)).toEqual(["gpt-5", undefined]);
});
