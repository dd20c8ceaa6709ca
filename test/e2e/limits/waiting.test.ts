// A request for which a limit has no room waits in the gateway, over HTTP and over a WebSocket.
// Meanwhile, nothing of it is sent to the upstream, and the journal does not name it.

import { expect, onTestFinished, test } from "bun:test";
import { readFileSync } from "node:fs";

import { checkConfigText } from "../../../src/config/file/load.ts";
import { makeGate, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import {
  CREDENTIAL,
  type InsideGateway,
  keyOf,
  makeConfig,
  startGatewayHere,
} from "../../harness/gateway.ts";
import { openRaw, rawRequest, writeRequest } from "../../harness/raw.ts";
import { openSocket, responseEvents, startSocketUpstream } from "../../harness/web-socket.ts";

/** One request is let in although it may cost more than this. Another one waits until the first has ended. */
const LIMITS = { usd_per_day: "0.001" };

const message = (more: object = {}) => ({
  target: "/v1/messages",
  fields: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
  body: {
    model: "claude-haiku-4-5",
    max_tokens: 64_000,
    messages: [{ role: "user", content: "Hello" }],
    ...more,
  },
});

async function isWaiting({ running }: InsideGateway, count: number): Promise<void> {
  while (running.gateway.waiting.size !== count) await Bun.sleep(1);
}

/** Starts a gateway with a request in flight, whose limit has no room for another one. */
async function openFull(): Promise<Full> {
  const upstream = startDemoUpstream();
  const { keys, ...config } = makeConfig(upstream);
  const withKey = (changed: object) => ({
    ...config,
    keys: keys.map((key) => (key["name"] === "messages" ? { ...key, ...changed } : key)),
  });
  const gateway = startGatewayHere({ config: withKey({ limits: LIMITS }) });
  const change = (changed: object): void => {
    const text = JSON.stringify(withKey(changed));
    gateway.running.reload(checkConfigText(text, gateway.configPath, {}).catalog);
  };
  const gate = makeGate();
  upstream.next({ gates: { 2: gate } });
  const first = await openRaw(gateway.port);
  first.send(writeRequest(message({ stream: true })));
  await gate.reached;
  onTestFinished(() => first.close());
  onTestFinished(() => gateway.stop());
  onTestFinished(() => upstream.stop());
  return { upstream, gateway, change, end: () => gate.open() };
}

interface Full {
  readonly upstream: ReturnType<typeof startDemoUpstream>;
  readonly gateway: InsideGateway;
  readonly end: () => void;
  /** Changes settings of the key, and reloads the config. */
  readonly change: (changed: object) => void;
}

test("a request waits for room in its limit, keeps no other key waiting, and is let in when the request in flight has ended", async () => {
  const { upstream, gateway, end } = await openFull();
  const second = rawRequest(gateway.port, message());
  await isWaiting(gateway, 1);
  expect(upstream.requests).toHaveLength(1);
  const journal = readFileSync(gateway.folder.join("ledger.jsonl.open"), "utf8");
  expect(journal.match(/"key":"messages"/g)).toHaveLength(1);
  const other = { target: "/v1/responses", body: { model: "gpt-5.4", input: "Hello" } };
  const fields = { authorization: `Bearer ${keyOf("responses")}` };
  expect((await rawRequest(gateway.port, { ...other, fields })).status).toBe(200);
  end();
  expect((await second).status).toBe(200);
  await gateway.recorded(3);
  expect(upstream.requests).toHaveLength(3);
});

test("P122: a client that leaves while its request waits costs nothing", async () => {
  const { upstream, gateway, end } = await openFull();
  const second = await openRaw(gateway.port);
  second.send(writeRequest(message()));
  await isWaiting(gateway, 1);
  second.close();
  const [record] = await gateway.recorded(1);
  expect([record?.outcome, record?.chargeUsd, gateway.running.gateway.waiting.size]).toEqual([
    "client_closed",
    null,
    0,
  ]);
  end();
  await gateway.recorded(2);
  expect(upstream.requests).toHaveLength(1);
  expect((await rawRequest(gateway.port, message())).status).toBe(200);
});

test("a gateway that stops with a grace period lets waiting requests in and answers them", async () => {
  const { upstream, gateway, end } = await openFull();
  const second = rawRequest(gateway.port, message());
  await isWaiting(gateway, 1);
  const stopped = gateway.running.stop(30_000);
  end();
  expect((await second).status).toBe(200);
  await stopped;
  expect(upstream.requests).toHaveLength(2);
});

test.each([
  ["is refused at once when its key is disabled", { disabled: true, limits: LIMITS }, 401, 1],
  ["is let in when its limit is raised", { limits: { usd_per_day: "100" } }, 200, 2],
])("a request that waits %s", async (_, changed, status, sent) => {
  const { upstream, gateway, change } = await openFull();
  const second = rawRequest(gateway.port, message());
  await isWaiting(gateway, 1);
  change(changed);
  for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
  expect(gateway.running.gateway.waiting.size).toBe(0);
  expect((await second).status).toBe(status);
  expect(upstream.requests).toHaveLength(sent);
});

test("a request that waits is let in when the upstream of the request in flight dies", async () => {
  const { upstream, gateway } = await openFull();
  const second = rawRequest(gateway.port, message());
  await isWaiting(gateway, 1);
  upstream.stop();
  expect((await second).status).toBe(502);
  expect(gateway.records.map(({ outcome }) => outcome)).toEqual(["upstream_cut", "upstream_error"]);
});

test("a gateway that stops without a grace period sends no waiting request to the upstream", async () => {
  const { upstream, gateway } = await openFull();
  const second = rawRequest(gateway.port, message()).catch(() => null);
  await isWaiting(gateway, 1);
  await gateway.running.stop(0);
  expect((await second)?.status).not.toBe(200);
  expect([upstream.requests.length, gateway.running.gateway.waiting.size]).toEqual([1, 0]);
  expect(gateway.ledger().map(({ outcome }) => outcome)).toEqual(["interrupted"]);
});

test("a response on a WebSocket waits for room in its limit, too, but only until its client leaves", async () => {
  const ended = Promise.withResolvers<void>();
  const upstream = startSocketUpstream({
    reply: async (asked, socket) => {
      const events = responseEvents(asked);
      socket.send(JSON.stringify(events[0]));
      await ended.promise;
      for (const event of events.slice(1)) socket.send(JSON.stringify(event));
    },
  });
  const config = makeConfig(upstream, {
    channels: { responses: { platform: "responses", base_url: upstream.url, credential: CREDENTIAL } },
    groups: { responses: { platform: "responses", channels: ["responses"] } },
    keys: [{ name: "responses", group: "responses", secret: keyOf("responses"), limits: LIMITS }],
  });
  const gateway = startGatewayHere({ config });
  const create = { type: "response.create", model: "gpt-5.4", input: "Hello" };
  const clients = [];
  for (let count = 0; count < 3; count += 1) {
    const client = await openSocket(gateway.port, keyOf("responses"));
    client.send(create);
    if (count === 0) await upstream.arrived(1);
    else await isWaiting(gateway, count);
    clients.push(client);
  }
  expect(upstream.received).toHaveLength(1);
  clients[2]!.close();
  await isWaiting(gateway, 1);
  ended.resolve();
  await upstream.arrived(2);
  await gateway.recorded(3);
  expect(upstream.received).toHaveLength(2);
  for (const client of clients) client.close();
  await gateway.stop();
  upstream.stop();
});
