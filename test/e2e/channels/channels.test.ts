// Channels over time, on real sockets: which are in cooldown and for how long, which answer
// meanwhile, and what the client gets if none can.

import { afterEach, describe, expect, test } from "bun:test";
import { askGateway } from "../../../src/cli/access/control.ts";
import { startDemoUpstream, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { type Pair, openPair, type PairOptions } from "../pair.ts";
import { bearer, makeRequest, MESSAGE } from "../world.ts";

let pair: Pair | null = null;
afterEach(async () => {
  await pair?.stop();
  pair = null;
});
const open = (options?: PairOptions): Pair => (pair = openPair(options));

/** Bytes as an upstream sends them. */
const say = (head: string, body: string) => ({
  steps: () => [Buffer.from(`HTTP/1.1 ${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`)],
});

/** A 429 with the time to wait. */
const LIMITED = say("429 Slow\r\nretry-after: 30", '{"error":{"message":"Slow"}}');

let asked = 0;
/** A new conversation, which is not bound to another one's channel. */
const askAnew = () => ({
  ...makeRequest("messages"),
  fields: { ...bearer("messages"), "session-id": `conversation ${(asked += 1)}` },
});

describe("a rate limit", () => {
  test("a rate limit keeps requests away for the time that the upstream gave", async () => {
    const { a, ask, view } = open();
    a.next(LIMITED);
    for (const sent of [1, 2, 3]) {
      const outcome = await ask(makeRequest("messages"));
      expect([outcome.answer.status, ...outcome.sent]).toEqual([200, 1, sent]);
    }
    const seen = view("messages-a");
    expect(seen).toMatchObject({ state: "resting", reason: "is rate limited: 429 Slow (claude-haiku-4-5)" });
    expect(Date.parse(seen.until!) - Date.parse(seen.since!)).toBe(30_000);
  });

  test("a rate limit of all channels reaches the client as the upstream sent it, then as a 503 with the time to wait", async () => {
    const { a, b, ask } = open();
    a.next(LIMITED);
    b.next(LIMITED);
    const first = await ask(makeRequest("messages"));
    expect(first.answer.status).toBe(429);
    expect(first.answer.text).toBe('{"error":{"message":"Slow"}}');
    expect(first.answer.field("retry-after")).toBe("30");
    const second = await ask(makeRequest("messages"));
    expect([second.answer.status, ...second.sent]).toEqual([503, 1, 1]);
    expect(Number(second.answer.field("retry-after"))).toBeWithin(1, 31);
    expect(second.answer.text).toContain('\\"messages-b\\" is rate limited');
    expect(second.answer.text).not.toContain("Slow");
    expect(second.line).toBeUndefined();
    const other = await ask(makeRequest("messages", false, { model: "claude-sonnet-4-6" }));
    expect(other.answer.status).toBe(200);
  });
});

test("a channel that enters cooldown during an attempt elsewhere is not tried", async () => {
  const { a, b, ask, gateway } = open({ a: { timeouts: { first_byte: "100s" } } });
  const gate = makeGate();
  const overloaded = "HTTP/1.1 529 Busy\r\ncontent-length: 2\r\n\r\n{}";
  a.next({ steps: () => [gate, Buffer.from(overloaded)] });
  const early = rawRequest(gateway.port, makeRequest("messages"));
  await gate.reached;
  a.next(say("529 Busy", "{}"));
  b.next(LIMITED);
  expect((await ask(makeRequest("messages"))).answer.status).toBe(429);
  gate.open();
  expect((await early).status).toBe(529);
  expect([a.requests.length, b.requests.length]).toEqual([2, 1]);
});

test("a channel that is down does not delay later requests, and is used again when it is back", async () => {
  const { a, ask, view, gateway } = open();
  a.refuse();
  await ask(askAnew());
  const second = await ask(askAnew());
  expect(second.line).toMatchObject({ attempts: [{ channel: "messages-b", status: 200 }] });
  a.accept();
  await askGateway(gateway.running.gateway.catalog.ledger.path, "POST", "/channels/messages-a/probe");
  expect(view("messages-a")).toMatchObject({ state: "available" });
  const third = await ask(askAnew());
  expect(third.line).toMatchObject({ attempts: [{ channel: "messages-a", status: 200 }] });
});

describe("when nothing answers", () => {
  test("an error whose body never arrives ends in time too", async () => {
    const { a, ask } = open({
      a: { timeouts: { idle: "100s" } },
      config: { failover: { total: "1s" } },
    });
    const head = "HTTP/1.1 500 Failed\r\ncontent-length: 100\r\n\r\n";
    a.next({ steps: () => [Buffer.from(head), "stall"] });
    const { answer, sent } = await ask(makeRequest("messages"));
    expect([answer.status, ...sent]).toEqual([500, 1, 0]);
  });
});

describe("not counted against a channel", () => {
  test("a client that leaves before or during the answer is no failure of the channel", async () => {
    const { a, gateway, view } = open({ a: { timeouts: { first_byte: "20s", idle: "20s" } } });
    for (const fault of ["never-answer", "stall"] as const) {
      a.next(fault);
      const count = a.requests.length;
      const ended = gateway.records.length;
      const socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: gateway.port,
        socket: { data: () => {} },
      });
      const body = JSON.stringify({ ...MESSAGE, stream: true });
      socket.write(
        `POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: ${bearer("messages")["authorization"]}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      const received = await a.received(count);
      // The client can leave in the middle only after something has arrived.
      const least = fault === "stall" ? 1000 : 0;
      while (received.sentBytes() < least) await Bun.sleep(1);
      socket.end();
      await gateway.recorded(ended + 1);
    }
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(["client_closed", "client_closed"]);
    expect(view("messages-a")).toMatchObject({ errors_hour: 0 });
    expect(view("messages-a").state).not.toBe("unavailable");
  });

  test("count_tokens that fails goes to another channel, and is no failure of the first", async () => {
    const { a, ask, view } = open();
    a.next("status-500", "status-401", "status-529");
    for (const sent of [1, 2, 3]) {
      const request = { ...makeRequest("messages"), target: "/v1/messages/count_tokens" };
      const outcome = await ask(request);
      expect([outcome.answer.status, ...outcome.sent]).toEqual([200, sent, sent]);
    }
    expect(view("messages-a")).toMatchObject({ state: "unknown", requests_hour: 0, errors_hour: 0 });
  });

  test("a model list that fails is no failure of the channel", async () => {
    const { a, gateway, view } = open();
    a.next({ fault: "status-401", when: () => true });
    const answer = await rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
    expect(answer.status).toBe(200);
    expect(view("messages-a")).toMatchObject({ state: "unknown", errors_hour: 0 });
  });
});

describe("data that only one channel has is fetched from that channel", () => {
  test("a stored response is fetched from the channel that has it", async () => {
    const { a, b, ask, view } = open();
    a.next("status-404");
    const request = { target: "/v1/responses/resp_1/input_items", fields: bearer("responses") };
    await ask(request);
    expect([a.requests.length, b.requests.length]).toEqual([1, 1]);
    a.next("status-404");
    b.next("status-404");
    const nowhere = await ask(request);
    expect(nowhere.answer.status).toBe(404);
    expect(view("responses-a")).toMatchObject({ state: "unknown" });
  });

  test("a request that continues a response goes to the channel that has it", async () => {
    const { a, ask, view } = open();
    const code = "previous_response_not_found";
    a.next(say("400 Bad", JSON.stringify({ error: { message: "no", type: "invalid_request_error", code } })));
    const { answer, line } = await ask(makeRequest("responses", false, { previous_response_id: "resp_1" }));
    expect(answer.status).toBe(200);
    expect(line).toMatchObject({ attempts: [{ status: 400 }, { status: 200 }] });
    expect(view("responses-a")).toMatchObject({ state: "available", errors_hour: 0 });
  });
});

test("a gateway whose channel has its own address is refused at start", () => {
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
    const config = { ...makeConfig({ url: `http://${host}:45123` }), listen: { port: 45_123 } };
    expect(() => startGatewayHere({ config })).toThrow(
      'The base_url of the channel "messages" is the address of this gateway itself',
    );
  }
});

test("a request that comes back to its gateway through a proxy is refused", async () => {
  // It passes everything on to the gateway.
  let target = 0;
  const between = Bun.serve({
    port: 0,
    fetch: (request) =>
      fetch(`http://127.0.0.1:${target}/v1/messages`, {
        method: "POST",
        headers: { ...Object.fromEntries(request.headers), authorization: `Bearer ${keyOf("messages")}` },
        body: request.body,
      }),
  });
  const gateway = startGatewayHere({ config: makeConfig({ url: `http://127.0.0.1:${between.port}` }) });
  target = gateway.port;
  const answer = await rawRequest(gateway.port, makeRequest("messages"));
  expect(answer.status).toBe(502);
  expect(answer.text).toContain("comes from this gateway itself");
  expect(gateway.records).toHaveLength(2);
  await gateway.stop();
  await between.stop(true);
});

test("a probe checks a channel without calling a model", async () => {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const channel = { platform: "messages", base_url: upstream.url, probe: "1h" };
  const gateway = startGatewayHere({
    config: {
      channels: { well: { ...channel, credential: CREDENTIAL }, ill: { ...channel, credential: "wrong" } },
      groups: { g: { platform: "messages", channels: ["well", "ill"] } },
    },
  });
  const { channels, catalog } = gateway.running.gateway;
  const states = () => channels.view(catalog, Date.now()).map(({ state }) => state);
  while (states().includes("unknown")) await Bun.sleep(1);
  expect(states()).toEqual(["available", "unavailable"]);
  expect([upstream.listRequests.length, upstream.requests.length]).toEqual([2, 0]);
  await gateway.stop();
  upstream.stop();
});

test("metrics count requests and contain no secret", async () => {
  const { a, ask, gateway } = open();
  a.next("status-500");
  await ask(makeRequest("messages"));
  await ask(askAnew());
  await rawRequest(gateway.port, { target: "/v1/messages", method: "POST", body: "{}" });
  const fields = { authorization: `Bearer ${keyOf("messages")}` };
  const page = await rawRequest(gateway.port, { target: "/metrics", fields });
  const { text } = page;
  expect(page.status).toBe(200);
  expect(page.field("content-type")).toContain("text/plain; version=0.0.4");
  expect(text).toContain(
    'gateway_requests_total{key="messages",group="messages",channel="messages-b",endpoint="/v1/messages",status="200",outcome="complete"} 1\n',
  );
  const refused = 'group="",channel="",endpoint="/v1/messages",status="401",outcome="refused"} 1\n';
  expect(text).not.toContain(refused);
  expect((await rawRequest(gateway.port, { target: "/metrics" })).text).toContain(refused);
  expect(text).toMatch(
    /gateway_tokens_total\{.*channel="messages-b",model="claude-haiku-4-5",kind="output"\} \d+\n/,
  );
  expect(text).toMatch(/gateway_charge_usd_total\{.*channel="messages-b".*\} 0\.\d+\n/);
  expect(text).toContain('gateway_first_byte_seconds_bucket{channel="messages-b",le="+Inf"} 1\n');
  expect(text).toContain('gateway_first_byte_seconds_count{channel="messages-a"} 1\n');
  expect(text).toContain('gateway_channel_state{channel="messages-b",state="available"} 1\n');
  expect(text).toContain("gateway_open_streams 0\n");
  for (const line of text.trimEnd().split("\n")) {
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{([a-z_]+="([^"\\]|\\.)*",?)*\})? [\d.e+-]+)$/);
  }
  for (const secret of [keyOf("messages"), "credential-of-", "Hello"]) expect(text).not.toContain(secret);
});
