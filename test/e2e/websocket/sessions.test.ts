// Tests the responses API over a WebSocket, through the gateway: what is passed on, what is billed, and how each end is recorded.

import { describe, expect, onTestFinished, test } from "bun:test";
import {
  CREDENTIAL,
  type InsideGateway,
  keyOf,
  startGateway as startChild,
  startGatewayHere,
} from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { getField } from "../../../src/lib/json/json.ts";
import { writeText } from "../../harness/frames.ts";
import { openCounter, rawRequest, writeRequest } from "../../harness/raw.ts";
import {
  openSocket,
  responseEvents,
  type SocketClient,
  type SocketUpstream,
  startSocketUpstream,
  type UpstreamScript,
} from "../../harness/web-socket.ts";
import { bearer, flushLedger, type Line, waitUntilStill } from "../world.ts";

type Section = Record<string, unknown>;

function startUpstream(script?: UpstreamScript): SocketUpstream {
  const upstream = startSocketUpstream(script);
  onTestFinished(() => upstream.stop());
  return upstream;
}

const KEY = keyOf("responses");

const UPGRADE = {
  connection: "keep-alive, Upgrade",
  upgrade: "WebSocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

function startGateway(
  upstreams: Readonly<Record<string, { url: string }>>,
  models: Readonly<Record<string, readonly string[]>> = {},
): InsideGateway {
  const shared = { platform: "responses", credential: CREDENTIAL };
  const channels = Object.fromEntries(
    Object.entries(upstreams).map(([name, { url }], index) => [
      name,
      { ...shared, base_url: url, priority: index + 1, models: models[name] },
    ]),
  );
  const groups = { responses: { platform: "responses", channels: Object.keys(upstreams) } };
  const keys = [{ name: "responses", group: "responses", secret: KEY }];
  const gateway = startGatewayHere({ config: { channels, groups, keys } });
  onTestFinished(() => gateway.stop());
  return gateway;
}

async function connectTo(
  upstream: SocketUpstream,
): Promise<{ gateway: InsideGateway; client: SocketClient }> {
  const gateway = startGateway({ main: upstream });
  return { gateway, client: await openSocket(gateway.port, KEY) };
}

const create = (more: Section = {}): Section => ({
  type: "response.create",
  model: "gpt-5.4",
  input: "Hello",
  ...more,
});

async function linesAfter(gateway: InsideGateway, count: number): Promise<readonly Line[]> {
  await gateway.recorded(count);
  await flushLedger();
  return gateway.ledger();
}

async function runResponse(client: SocketClient, more: Section = {}): Promise<Section> {
  const from = client.messages.length;
  client.send(create(more));
  return await client.next("response.completed", from);
}

describe("a WebSocket carries responses, each with its own line", () => {
  test("the line of a response on a WebSocket says why its prompt missed the cache", async () => {
    const usage = {
      input_tokens: 5000,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 2,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 5002,
    };
    const upstream = startUpstream({
      reply: (event, socket) => {
        const events = responseEvents(event);
        const last = events.at(-1)!;
        last["response"] = { ...Object(last["response"]), usage };
        for (const each of events) socket.send(JSON.stringify(each));
      },
    });
    const { gateway, client } = await connectTo(upstream);
    const input = [{ role: "user", content: "Hello ".repeat(4000) }];
    await runResponse(client, { input, instructions: "Be short", prompt_cache_key: "s1" });
    await runResponse(client, { input, instructions: "Be long", prompt_cache_key: "s1" });
    const [first, second] = await linesAfter(gateway, 2);
    expect(first).not.toHaveProperty("cache");
    expect(second).toMatchObject({ cache: { because: "system_changed" } });
  });

  test("P171: a WebSocket runs responses of several stream_ids at once, each with its own line", async () => {
    const held: { event: Section; send: (text: string) => void }[] = [];
    const upstream = startUpstream({
      reply: (event, socket) => {
        held.push({ event, send: (text) => void socket.send(text) });
        if (held.length < 3) return;
        const streams = held.map(({ event: each }, index) =>
          responseEvents(
            each,
            Array.from({ length: index + 1 }, () => "word"),
          ),
        );
        for (let at = 0; at < 5; at += 1)
          for (const events of streams) if (events[at] !== undefined) socket.send(JSON.stringify(events[at]));
      },
    });
    const { gateway, client } = await connectTo(upstream);
    for (const stream_id of ["a", "b", "c"]) client.send(create({ stream_id }));
    const lines = await linesAfter(gateway, 3);
    const outputs = lines.map(({ usage }) => Number(getField(usage, "output")));
    expect(outputs.toSorted((a, b) => a - b)).toEqual([1, 2, 3]);
    expect(lines.every(({ outcome, basis }) => outcome === "complete" && basis === "exact")).toBe(true);
  });
});

describe("P100, P170: the handshake of a WebSocket fails over or is refused", () => {
  test("a handshake goes to the next channel if the first one fails", async () => {
    const broken = startUpstream({ refuse: () => new Response("{}", { status: 503 }) });
    // The body of this answer breaks off.
    const answer = "HTTP/1.1 503 No\r\ncontent-length: 9\r\n\r\nhalf";
    const listener = Bun.listen({
      hostname: "127.0.0.1",
      port: 0,
      socket: { data: (socket) => void socket.end(answer) },
    });
    onTestFinished(() => listener.stop(true));
    const cutting = { url: `http://127.0.0.1:${listener.port}` };
    const upstream = startUpstream();
    const gateway = startGateway({ broken, cutting, upstream });
    const client = await openSocket(gateway.port, KEY);
    await runResponse(client);
    expect((await linesAfter(gateway, 1))[0]).toMatchObject({ channel: "upstream" });
  });

  test.each([
    ["an unknown key", { authorization: "Bearer sk-nobody-knows-this-key" }, 401],
    ["no key", { authorization: "" }, 401],
    ["an old version", { "sec-websocket-version": "8" }, 400],
    ["a key that is not 16 bytes", { "sec-websocket-key": "c2hvcnQ=" }, 400],
  ] as const)("a handshake with %s is refused in the shape of the dialect", async (_, fields, status) => {
    const upstream = startUpstream();
    const gateway = startGateway({ main: upstream });
    const answer = await rawRequest(gateway.port, {
      target: "/v1/responses",
      fields: { ...bearer("responses"), ...UPGRADE, ...fields },
    });
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.text).error.message).not.toBe("");
  });
});

describe("a WebSocket can move to another channel before its first response", () => {
  test("before the first response, a channel whose connection broke is replaced by the next one", async () => {
    const [first, second] = [startUpstream(), startUpstream()];
    const gateway = startGateway({ first, second });
    const client = await openSocket(gateway.port, KEY);
    const broken = [...first.open];
    expect(broken).toHaveLength(1);
    first.stop();
    for (const socket of broken) socket.terminate();
    await runResponse(client);
    expect((await linesAfter(gateway, 1))[0]).toMatchObject({ channel: "second", outcome: "complete" });
  });

  test("at the first response, a WebSocket moves to a channel that serves the model", async () => {
    const [first, second] = [startUpstream(), startUpstream()];
    const gateway = startGateway({ first, second }, { first: ["gpt-6*"], second: ["gpt-5*"] });
    const client = await openSocket(gateway.port, KEY);
    await runResponse(client);
    expect([first.handshakes.length, second.received.length]).toEqual([1, 1]);
    // Now the connection stays at this channel.
    client.send(create({ model: "gpt-6.2-sol" }));
    expect(await client.next("error")).toMatchObject({
      error: { code: "websocket_connection_limit_reached" },
    });
    expect(await client.closing).toMatchObject({ code: 1001 });
  });
});

describe("a slow client of a WebSocket makes its upstream wait", () => {
  const PIECE = "x".repeat(1024 * 1024);
  const COUNT = 60;

  test("a client that does not read its response on a WebSocket makes the upstream wait", async () => {
    let sent = 0;
    const upstream = startUpstream({
      reply: async (event, socket) => {
        const [created, , completed] = responseEvents(event, [PIECE]);
        socket.send(JSON.stringify(created));
        for (; sent < COUNT; sent += 1) {
          while (socket.getBufferedAmount() > 0) await Bun.sleep(1);
          socket.send(JSON.stringify({ type: "response.output_text.delta", delta: PIECE }));
        }
        socket.send(JSON.stringify(completed));
      },
    });
    const gateway = startGateway({ main: upstream });
    const client = await openCounter(gateway.port);
    client.send(
      writeRequest({
        method: "GET",
        target: "/v1/responses",
        fields: { ...bearer("responses"), ...UPGRADE },
      }),
    );
    await client.until(100);
    client.pause();
    client.send(writeText(JSON.stringify(create()), true));
    await upstream.arrived(1);
    await waitUntilStill(() => sent);
    expect(sent).toBeLessThan(COUNT / 2);
    client.resume();
    await client.until(COUNT * PIECE.length);
    expect(await linesAfter(gateway, 1)).toMatchObject([{ outcome: "complete", basis: "exact" }]);
    client.close();
  });
});

describe("P108, P172: a refused response.create gets an error event", () => {
  test("P171: if the key of a WebSocket is disabled or expired, a message gets an error event", async () => {
    const upstream = startUpstream();
    const { gateway, client } = await connectTo(upstream);
    await runResponse(client);
    const { catalog } = gateway.running.gateway;
    for (const ended of [{ disabled: true }, { expires: new Date() }]) {
      const keys = [...catalog.keysBySha256].map(([sha, key]) => [sha, { ...key, ...ended }] as const);
      gateway.running.gateway.catalog = { ...catalog, keysBySha256: new Map(keys) };
      for (const message of [create(), { type: "response.inject", input: "Faster" }]) {
        const from = client.messages.length;
        client.send(message);
        expect(await client.next("error", from)).toMatchObject({ status: 401 });
      }
    }
    expect(upstream.received).toHaveLength(1);
  });

  test("if a client's channel is disabled, an error asks the client to reconnect, and another channel serves it", async () => {
    const [first, second] = [startUpstream(), startUpstream()];
    const gateway = startGateway({ first, second });
    const client = await openSocket(gateway.port, KEY);
    await runResponse(client);
    const { catalog, channels, now } = gateway.running.gateway;
    channels.setDisabled(catalog.channels.get("first")!, true, now());
    client.send(create());
    expect(await client.next("error")).toMatchObject({
      status: 503,
      error: { code: "websocket_connection_limit_reached" },
    });
    expect(await client.closing).toMatchObject({ code: 1001 });
    await runResponse(await openSocket(gateway.port, KEY));
    expect([first.received.length, second.received.length]).toEqual([1, 1]);
  });
});

/** An upstream that stops in the middle of each response. */
const HALF: UpstreamScript = {
  reply: (event, socket) => {
    for (const each of responseEvents(event).slice(0, 2)) socket.send(JSON.stringify(each));
  },
};

describe("each end of a response on a WebSocket is recorded", () => {
  test("P96: a response whose client leaves in the middle is cancelled upstream, and its line says client_closed", async () => {
    const closed = Promise.withResolvers<number>();
    const upstream = startUpstream({ ...HALF, closed: (code) => closed.resolve(code) });
    const { gateway, client } = await connectTo(upstream);
    client.send(create());
    await client.next("response.output_text.delta");
    client.terminate();
    await closed.promise;
    expect(await linesAfter(gateway, 1)).toMatchObject([
      { outcome: "client_closed", basis: "partial", attempts: [{ channel: "main", status: 200 }] },
    ]);
  });

  test("a response whose first event is an error costs nothing", async () => {
    const error = { type: "error", status: 400, error: { code: "invalid_prompt", message: "No" } };
    const upstream = startUpstream({ reply: (_, socket) => void socket.send(JSON.stringify(error)) });
    const { gateway, client } = await connectTo(upstream);
    client.send(create());
    expect(await client.next("error")).toEqual(error);
    expect(await linesAfter(gateway, 1)).toMatchObject([
      {
        status: 400,
        outcome: "upstream_error",
        charge_usd: "0",
        attempts: [{ channel: "main", status: 400 }],
      },
    ]);
  });

  test("a request that the upstream refuses does not disturb the response that runs on the same stream", async () => {
    const refusal = { type: "error", status: 429, error: { code: "rate_limit_exceeded", message: "No" } };
    let rest: object[] = [];
    const upstream = startUpstream({
      reply: (event, socket) => {
        const [created, ...others] = responseEvents(event);
        const events = rest.length === 0 ? [created] : [refusal, ...rest];
        if (rest.length === 0) rest = others;
        for (const each of events) socket.send(JSON.stringify(each));
      },
    });
    const { gateway, client } = await connectTo(upstream);
    client.send(create());
    await client.next("response.created");
    client.send(create({ model: "gpt-5.4-mini" }));
    await client.next("response.completed");
    const lines = await linesAfter(gateway, 2);
    expect(lines.toSorted((a, b) => String(a["model"]).length - String(b["model"]).length)).toMatchObject([
      { model: "gpt-5.4", status: 200, outcome: "complete", basis: "exact", usage: { output: 2 } },
      { model: "gpt-5.4-mini", status: 429, outcome: "upstream_error", charge_usd: "0" },
    ]);
  });

  test("P98: a gateway that stops lets running responses finish, and answers a new one with the advice to connect again", async () => {
    const gate = Promise.withResolvers<void>();
    const upstream = startUpstream({
      reply: async (event, socket) => {
        const events = responseEvents(event).map((each) => JSON.stringify(each));
        socket.send(events[0]!);
        await gate.promise;
        for (const each of events.slice(1)) socket.send(each);
      },
    });
    const { gateway, client } = await connectTo(upstream);
    client.send(create());
    await client.next("response.created");
    const stopped = gateway.running.stop(60_000);
    client.send(create({ stream_id: "late" }));
    expect(await client.next("error")).toMatchObject({
      status: 503,
      stream_id: "late",
      error: { code: "websocket_connection_limit_reached" },
    });
    gate.resolve();
    await client.next("response.completed");
    expect(await client.closing).toMatchObject({ code: 1001 });
    await stopped;
    expect(gateway.ledger()).toMatchObject([{ outcome: "complete", basis: "exact" }]);
  });

  test("P124: the start after a kill writes one line for each response that was running", async () => {
    const upstream = startUpstream(HALF);
    const folder = makeTempFolder();
    const config = {
      channels: { main: { platform: "responses", base_url: upstream.url, credential: CREDENTIAL } },
      groups: { responses: { platform: "responses", channels: ["main"] } },
      keys: [{ name: "responses", group: "responses", secret: KEY }],
    };
    const child = await startChild({ config, folder });
    const clients = await Promise.all([1, 2, 3].map(() => openSocket(child.port, KEY)));
    for (const client of clients) {
      await runHalf(client, { stream_id: "a" });
      await runHalf(client, { stream_id: "b" });
    }
    child.signal("SIGKILL");
    await Promise.all(clients.map(({ closing }) => closing));
    const next = await startChild({ config, folder });
    onTestFinished(() => next.stop());
    onTestFinished(() => folder.remove());
    expect(next.ledger().map(({ outcome, channel, transport }) => [outcome, channel, transport])).toEqual(
      Array.from({ length: 6 }, () => ["interrupted", "main", "websocket"]),
    );
  });
});

async function runHalf(client: SocketClient, more: Section): Promise<void> {
  const from = client.messages.length;
  client.send(create(more));
  await client.next("response.output_text.delta", from);
}
