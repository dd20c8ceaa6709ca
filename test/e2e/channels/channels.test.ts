// Channels over time, on real sockets: which are in cooldown and for how long, which answer
// meanwhile, and what the client gets if none can.

import { afterEach, describe, expect, test } from "bun:test";
import { askGateway } from "../../../src/cli/access/control.ts";
import { makeGate } from "../../../src/demo/script.ts";
import { startDemoUpstream } from "../../../src/demo/upstream.ts";
import { CREDENTIAL, keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { openRaw, rawRequest, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
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
  test("keeps requests away for the time that the upstream gave", async () => {
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

test("a group whose channels are all disabled in the config is unavailable, and says why", async () => {
  const { ask } = open({ a: { disabled: true }, b: { disabled: true } });
  const { answer, sent } = await ask(makeRequest("messages"));
  expect([answer.status, ...sent]).toEqual([503, 0, 0]);
  expect(Number(answer.field("retry-after"))).toBeGreaterThan(0);
  expect(answer.text).toContain("are disabled in the config file");
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
  test("the last cause decides the status, and every channel was tried once", async () => {
    const { a, b, ask } = open();
    a.next("status-500");
    b.next("status-529");
    const { answer, line, sent } = await ask(makeRequest("messages"));
    expect(answer.status).toBe(529);
    expect(answer.text).toContain("overloaded");
    expect(sent).toEqual([1, 1]);
    expect(line).toMatchObject({ outcome: "upstream_error", attempts: [{ status: 500 }, { status: 529 }] });
  });

  test("no answer contains the refused credential", async () => {
    const { a, b, ask, gateway } = open();
    a.next("status-401");
    b.next("status-401");
    const { answer } = await ask(makeRequest("messages"));
    expect([answer.status, answer.field("x-should-retry")]).toEqual([403, "false"]);
    expect(answer.text).toContain("messages-b");
    expect(answer.text).not.toContain(gateway.running.gateway.catalog.channels.get("messages-a")!.credential);
  });

  test("no answer contains the credential of the channel's proxy", async () => {
    const pass = "pass-of-the-proxy-0123456789";
    const headers = { "cf-access-client-secret": pass, "x-tenant": "tenant-of-everybody" };
    const { a, ask } = open({ a: { headers }, config: { failover: { attempts: 1 } } });
    for (const [status, reported] of [
      ["404 Not Found", 404],
      ["401 Unauthorized", 403],
    ] as const) {
      const body = JSON.stringify({ error: { message: `${pass} of tenant-of-everybody is not known` } });
      const head = `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
      a.next({ steps: () => [Buffer.from(head + body)] });
      const { answer } = await ask(makeRequest("messages"));
      expect(answer.status).toBe(reported);
      expect(answer.text).not.toContain(pass.slice(4, 20));
      expect(answer.text).toContain("tenant-of-everybody");
    }
  });

  test("the config limits the number of attempts", async () => {
    const { a, ask } = open({ config: { failover: { attempts: 1 } } });
    a.next("status-500");
    const { answer, sent } = await ask(makeRequest("messages"));
    expect([answer.status, ...sent]).toEqual([500, 1, 0]);
  });

  test.each(["100s", "0s"])("the config limits the total time: %s", async (wait) => {
    const { a, ask } = open({
      a: { timeouts: { first_byte: wait } },
      config: { failover: { total: "200ms" } },
    });
    a.next("never-answer");
    const { answer, sent } = await ask(makeRequest("messages"));
    expect([answer.status, ...sent]).toEqual([504, 1, 0]);
  });

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
  test("a client that leaves before or during the answer", async () => {
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
      while (received.sentBytes() < least) await new Promise(setImmediate);
      socket.end();
      await gateway.recorded(ended + 1);
    }
    expect(gateway.records.map(({ outcome }) => outcome)).toEqual(["client_closed", "client_closed"]);
    expect(view("messages-a")).toMatchObject({ errors_hour: 0 });
    expect(view("messages-a").state).not.toBe("unavailable");
  });

  test("count_tokens that fails: another channel is tried", async () => {
    const { a, ask, view } = open();
    a.next("status-500", "status-401", "status-529");
    for (const sent of [1, 2, 3]) {
      const request = { ...makeRequest("messages"), target: "/v1/messages/count_tokens" };
      const outcome = await ask(request);
      expect([outcome.answer.status, ...outcome.sent]).toEqual([200, sent, sent]);
    }
    expect(view("messages-a")).toMatchObject({ state: "unknown", requests_hour: 0, errors_hour: 0 });
  });

  test("a model list that fails", async () => {
    const { a, gateway, view } = open();
    a.next({ fault: "status-401", when: () => true });
    const answer = await rawRequest(gateway.port, { target: "/v1/models", fields: bearer("messages") });
    expect(answer.status).toBe(200);
    expect(view("messages-a")).toMatchObject({ state: "unknown", errors_hour: 0 });
  });
});

test("some upstreams refuse a credential with a 400, and only the body says so", async () => {
  const { a, ask, view } = open();
  const refusal = JSON.stringify({
    error: { code: 400, message: "API key not valid.", details: [{ reason: "API_KEY_INVALID" }] },
  });
  a.next(say("400 Bad", refusal));
  const { answer } = await ask(makeRequest("content"));
  expect(answer.status).toBe(200);
  expect(view("content-a")).toMatchObject({ state: "unavailable" });
});

test("a proxy that wants a credential is a failure of the channel, not of the client", async () => {
  const { a, ask, view } = open();
  a.next(say("407 Proxy", "who are you?"));
  const { answer, sent } = await ask(makeRequest("messages"));
  expect([answer.status, ...sent]).toEqual([200, 1, 1]);
  expect(view("messages-a")).toMatchObject({ state: "unavailable" });
});

describe("data that only one channel has is fetched from that channel", () => {
  test("a stored response", async () => {
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

  test("the response that a request continues", async () => {
    const { a, ask, view } = open();
    const code = "previous_response_not_found";
    a.next(say("400 Bad", JSON.stringify({ error: { message: "no", type: "invalid_request_error", code } })));
    const { answer, line } = await ask(makeRequest("responses", false, { previous_response_id: "resp_1" }));
    expect(answer.status).toBe(200);
    expect(line).toMatchObject({ attempts: [{ status: 400 }, { status: 200 }] });
    expect(view("responses-a")).toMatchObject({ state: "available", errors_hour: 0 });
  });
});

test("a conversation stays where it was answered, by weight or after a failure", async () => {
  const { a, b, ask } = open({ b: { priority: 1 } });
  const request = askAnew();
  for (let count = 0; count < 12; count += 1) await ask(request);
  expect([a.requests.length, b.requests.length].toSorted((x, y) => x - y)).toEqual([0, 12]);
});

test("an answer that arrives byte by byte is passed on whole", async () => {
  const { a, b, gateway } = open();
  a.next("dribble");
  const { target, fields, body } = makeRequest("responses", true);
  const answer = await fetch(gateway.url + target, {
    method: "POST",
    headers: fields!,
    body: JSON.stringify(body),
  });
  expect(await answer.text()).toContain("response.completed");
  expect([a.requests.length, b.requests.length]).toEqual([1, 0]);
});

test("an answer that sends nothing of substance for a while is passed on as it is", async () => {
  const { a, gateway } = open();
  const gate = makeGate();
  a.next({
    steps: function* () {
      yield Buffer.from(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n: wait\n\n",
      );
      yield gate;
      yield "fin";
    },
  });
  const client = await openRaw(gateway.port);
  client.send(writeRequest(makeRequest("messages", true)));
  await client.until(": wait");
  gate.open();
  expect(await client.until("event: error")).toBeTruthy();
  client.close();
});

describe("a gateway that sends requests to itself", () => {
  const at = (port: number, url: string) => ({ ...makeConfig({ url }), listen: { port } });

  test("is refused at start", () => {
    for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
      expect(() => startGatewayHere({ config: at(45_123, `http://${host}:45123`) })).toThrow(
        'The base_url of the channel "messages" is the address of this gateway itself',
      );
    }
  });

  test("is refused if a config change would cause it", async () => {
    const upstream = startDemoUpstream();
    const gateway = startGatewayHere({ config: makeConfig(upstream) });
    const { catalog } = gateway.running.gateway;
    const channel = catalog.channels.get("messages")!;
    const looped = { ...channel, baseUrl: new URL(gateway.url) };
    const channels = new Map([...catalog.channels, ["messages", looped] as const]);
    expect(() => gateway.running.reload({ ...catalog, channels })).toThrow("of this gateway itself");
    expect(gateway.running.gateway.catalog).toBe(catalog);
    await gateway.stop();
    upstream.stop();
  });

  test("is noticed when a request comes back through another gateway", async () => {
    // Between the two: a proxy that passes everything on to the gateway.
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
});

test("a cooldown survives a restart", async () => {
  using folder = makeTempFolder();
  const first = openPair({ folder });
  first.a.next(LIMITED);
  await first.ask(makeRequest("messages"));
  const { url } = first.a;
  await first.stop();
  const config = { ...makeConfig({ url }), channels: {}, groups: {} };
  const second = startGatewayHere({
    folder,
    config: {
      ...config,
      channels: {
        "messages-a": { platform: "messages", base_url: url, credential: `credential-of-${url}` },
      },
      groups: { messages: { platform: "messages", channels: ["messages-a"] } },
      keys: [{ name: "messages", group: "messages", secret: keyOf("messages") }],
    },
  });
  const answer = await rawRequest(second.port, makeRequest("messages"));
  expect(answer.status).toBe(503);
  await second.stop();
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
  while (states().includes("unknown")) await new Promise(setImmediate);
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
  expect(text).toMatch(
    /gateway_requests_total\{key="",group="",channel="",endpoint="\/v1\/messages",status="401",outcome="refused"\} 1\n/,
  );
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
