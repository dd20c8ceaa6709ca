import { PLATFORMS } from "../../../src/config/schema.ts";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { askGateway } from "../../../src/cli/access/control.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { gatewayStateSchema } from "../../../src/gateway/control/state.ts";
import { type InsideGateway, keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";

let upstream: DemoUpstream;
let gateway: InsideGateway;
beforeEach(() => {
  upstream = startDemoUpstream();
  gateway = startGatewayHere({ config: makeConfig(upstream) });
});
afterEach(async () => {
  await gateway.stop();
  upstream.stop();
});

const messages = [{ role: "user", content: "Hello" }];
const PLACES = [
  { path: "/v1/messages", key: keyOf("messages"), model: "claude-haiku-4-5", channel: "messages" },
  { path: "/v1/chat/completions", key: keyOf("responses"), model: "gpt-5.4", channel: "responses" },
] as const;
type Place = (typeof PLACES)[number];

function ask({ path, key, model }: Place, init: RequestInit = {}, stream = true): Promise<Response> {
  return fetch(gateway.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens: 64, stream, messages }),
    ...init,
  });
}

async function readState() {
  const { path } = gateway.running.gateway.catalog.ledger;
  return gatewayStateSchema.parse(await askGateway(path, "GET", "/state"));
}

test.each([...PLACES])("a stream of $path is shown with its tokens while it lasts", async (place) => {
  upstream.always("stall");
  const leaving = new AbortController();
  const answer = await ask(place, { signal: leaving.signal });
  await answer.body?.getReader().read();
  const { streams } = await readState();
  expect(streams).toMatchObject([{ key: place.channel, model: place.model, channel: place.channel }]);
  expect(streams[0]?.since).toBeLessThanOrEqual(Date.now());
  expect(streams[0]?.tokens).toBeGreaterThan(0);
  leaving.abort();
  expect(answer.status).toBe(200);
  await gateway.recorded(1);
  expect((await readState()).streams).toEqual([]);
});

test.each(["reset-mid-stream", "error-event", "truncated", "reset-after-head"] as const)(
  "a stream that ends by %s is shown no longer",
  async (fault) => {
    upstream.next(fault, fault);
    for (const place of PLACES)
      await ask(place)
        .then((answer) => answer.text())
        .catch(() => "broken");
    await gateway.recorded(2);
    expect((await readState()).streams).toEqual([]);
  },
);

test("a response in one piece is not shown as a stream, and spending adds up", async () => {
  for (const place of PLACES) await ask(place, {}, false).then((answer) => answer.text());
  const state = await readState();
  expect(state.streams).toEqual([]);
  expect(state.recent.map(({ chargeUsd }) => chargeUsd)).not.toContain(null);
  expect(Object.keys(state.spend.by_key)).toEqual([...PLATFORMS]);
  expect(state.spend.today_usd).not.toBe("0");
});
