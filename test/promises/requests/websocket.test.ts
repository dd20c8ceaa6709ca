// The contract's promises about the responses API over a WebSocket.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  openSocket,
  responseEvents,
  type SocketUpstream,
  startSocketUpstream,
} from "../../harness/web-socket.ts";
import { openRaw, writeRequest } from "../../harness/raw.ts";
import { whole } from "../world/answers.ts";
import { bearer, eventually, type Section, World } from "../world/world.ts";

const UPGRADE = {
  connection: "Upgrade",
  upgrade: "websocket",
  "sec-websocket-version": "13",
  "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
};

/** How the upstream answers the next message. */
type Act = (
  event: Section,
  socket: { send(message: string | Buffer): void; close(code?: number): void; terminate(): void },
) => void;
let act: Act | null = null;
let upstream: SocketUpstream;
let received: string[] = [];
let posts = 0;

/** Channels whose upstream supports WebSockets. The config switches them off for http-main. */
const SOCKETS = "socket-main mixed-main http-main twin-one twin-two bridged-main fallback-main".split(" ");
const world = new World({
  config: (built) => ({
    ...built,
    channels: {
      ...built.channels,
      ...Object.fromEntries(
        SOCKETS.map((name) => [name, { ...built.channels[name], base_url: upstream.url }]),
      ),
    },
  }),
});
const socket = world.group("socket", {
  platform: "responses",
  channels: { main: { credential: "cred-of-the-socket", aliases: { fast: "test-model" } } },
  keys: { limited: { limits: { requests_per_minute: 1 } } },
});
const mixed = world.group("mixed", {
  platform: "responses",
  channels: { deaf: { websocket: false }, main: { priority: 2 } },
});
const refusing = world.group("refusing", { platform: "responses" });
const fallback = world.group("fallback", { platform: "responses", group: { default_model: "test-model" } });
const chats = world.group("chats", {
  platform: "responses",
  channels: { main: { platform: "chat" } },
});
const twin = world.group("twin", { platform: "responses", channels: { one: {}, two: {} } });
const bridged = world.group("bridged", {
  platform: "responses",
  channels: { main: { priority: 3, models: ["test-model"] }, messages: { platform: "messages" } },
  group: { convert: true },
});
const http = world.group("http", { platform: "responses", channels: { main: { websocket: false } } });

beforeAll(async () => {
  upstream = startSocketUpstream({
    refuse: ({ url, method }) => {
      if (method === "POST")
        return Response.json({ ...whole("responses"), id: `resp_${(posts += 1)}_posted` });
      return url.endsWith("/models") ? Response.json({ data: [{ id: "test-model" }] }) : null;
    },
    reply: (event, connection, text) => {
      received.push(text);
      const next = act;
      act = null;
      if (next !== null) return next(event, connection);
      if (event["type"] === "response.create")
        for (const each of responseEvents(event)) connection.send(JSON.stringify(each));
    },
  });
  await world.start();
});
afterAll(async () => {
  await world.stop();
  upstream.stop();
});

const CREATE = { type: "response.create", model: "test-model", input: "Hello" };
const linesOf = (key: string) => world.lines().filter((line) => line["key"] === key);

test("P75, P170, P188: a client gets a WebSocket if a channel of its group supports it, and otherwise 426", async () => {
  for (const { key } of [http, chats])
    expect((await world.request("/v1/responses", { ...bearer(key), ...UPGRADE })).status).toBe(426);
  expect(chats.channel().seen).toEqual([]);
  // The upstream of this channel answers that it has no WebSocket.
  refusing.channel().next({ status: 404, body: {} });
  const target = `/v1/responses?copy=${refusing.key}`;
  const unknown = await world.request(target, { ...bearer(refusing.key), ...UPGRADE });
  expect([unknown.status, refusing.channel().seen.map(({ path }) => path)]).toEqual([426, ["/v1/responses"]]);
  const head = await openRaw(world.port);
  head.send(writeRequest({ target: "/v1/responses", fields: { ...bearer(socket.key), ...UPGRADE } }));
  await head.until((all) => /101 [^]*x-request-id: req_/i.test(all.toString()));
  head.close();
  const client = await openSocket(world.port, socket.key);
  client.send(CREATE);
  expect(await client.next("response.completed")).toMatchObject({ response: { status: "completed" } });
  client.close();
  await eventually(() => linesOf("socket").length === 1);
  for (const { key } of [mixed, bridged]) {
    const second = await openSocket(world.port, key);
    if (key === bridged.key) {
      // Only the channel of another dialect has this model.
      second.send({ ...CREATE, model: "other-model" });
      expect(await second.next("error")).toMatchObject({ status: 426 });
    }
    // A thought from a channel of another dialect, in an envelope (`gw1.`), is left out.
    second.send({ ...CREATE, input: [{ type: "reasoning", id: "rs_1", encrypted_content: "gw1.x" }] });
    await second.next("response.completed");
    expect(received.at(-1)).not.toContain("gw1.");
    second.close();
  }
});

const credential = () => upstream.handshakes.at(-1)!.get("authorization");

test("P60, P106: a request that names a response goes to the channel of that response, over HTTP and WebSocket", async () => {
  for (let turn = 0; turn < 12; turn += 1) {
    act = (event, connection) => connection.send(JSON.stringify(responseEvents(event)[0]));
    const client = await openSocket(world.port, twin.key);
    const used = credential();
    client.send(CREATE);
    const { response } = await client.next("response.created");
    await world.request(`/v1/responses/${Object(response)["id"]}`, bearer(twin.key));
    expect(credential()).toBe(used);
    client.close();
    const posted = JSON.parse((await twin.ask("responses", { input: `Hello ${turn}` })).text);
    const own = credential();
    const next = await openSocket(world.port, twin.key);
    next.send({ ...CREATE, previous_response_id: posted.id });
    await next.next("response.completed");
    expect(credential()).toBe(own);
    const from = next.messages.length;
    next.send({ ...CREATE, previous_response_id: Object(response)["id"] });
    // A WebSocket that has had a response stays on its channel.
    if (used === own) await next.next("response.completed", from);
    else expect(Object((await next.next("error", from))["error"])["code"]).toContain("connection_limit");
    next.close();
  }
});

test("P106, P188: a session's WebSockets and HTTP requests go to one channel, which never gets the client's key", async () => {
  for (const name of "abcdefghijkl")
    for (const group of [mixed, twin]) {
      const session = { "session-id": name };
      (await openSocket(world.port, group.key, session)).close();
      const used = credential();
      expect(used).not.toContain(group.key);
      const client = await openSocket(world.port, group.key, session);
      expect(credential()).toBe(used);
      client.send(CREATE);
      await client.next("response.completed");
      client.close();
      await group.ask("responses", {}, session);
      expect(credential()).toBe(used);
    }
  expect(mixed.channel("deaf").seen).toEqual([]);
});

test("P171: each response.create is a request with its own line", async () => {
  const before = linesOf("socket").length;
  const client = await openSocket(world.port, socket.key);
  for (let count = 0; count < 3; count += 1) {
    const from = client.messages.length;
    client.send(CREATE);
    await client.next("response.completed", from);
  }
  const lines = (await eventually(() => linesOf("socket").length >= before + 3 && linesOf("socket"))).slice(
    before,
  );
  expect(new Set(lines.map(({ id }) => id)).size).toBe(3);
  for (const line of lines)
    // 60 tokens at $1 a million, 40 at $0.1 and 2 at $2.
    expect(line).toMatchObject({ outcome: "complete", transport: "websocket", charge_usd: "0.000068" });
  // An incomplete response has its line, too.
  act = (event, connection) => {
    for (const each of responseEvents(event))
      connection.send(JSON.stringify(each).replace("response.completed", "response.incomplete"));
  };
  client.send(CREATE);
  await client.next("response.incomplete");
  const last = await eventually(() => linesOf("socket")[before + 3]);
  expect(last).toMatchObject({ outcome: "complete", charge_usd: "0.000068" });
  // A response that the upstream refuses has its line, even if the status is no integer.
  act = (_, connection) => connection.send(JSON.stringify({ type: "error", status: 429.5, error: {} }));
  client.send(CREATE);
  expect(await eventually(() => linesOf("socket")[before + 4])).toMatchObject({ status: 429 });
  client.close();
});

test("P81: default_model replaces the unknown model of a WebSocket's first response.create", async () => {
  const client = await openSocket(world.port, fallback.key);
  client.send({ ...CREATE, model: "strange-model" });
  expect(await client.next("response.created")).toMatchObject({ response: { model: "test-model" } });
  client.close();
});

test("P172: a refused response.create gets an error event with the same status and error as over HTTP", async () => {
  const key = socket.keyOf("limited");
  const client = await openSocket(world.port, key);
  client.send(CREATE);
  await client.next("response.completed");
  const from = client.messages.length;
  client.send(CREATE);
  const error = await client.next("error", from);
  expect(error).toMatchObject({
    status: 429,
    headers: { "retry-after": expect.stringMatching(/^\d+$/) },
    error: { message: expect.stringContaining("requests_per_minute") },
  });
  const overHttp = await socket.ask("responses", {}, bearer(key));
  expect(JSON.parse(overHttp.text).error).toEqual(error["error"]);
  client.send({ ...CREATE, model: 5 });
  expect(await client.next("error", from + 1)).toMatchObject({ status: 400 });
  expect(linesOf("socket-limited")).toHaveLength(1);
  client.close();
});

test("P173: messages are forwarded byte for byte, except for an alias", async () => {
  received = [];
  const raw = ['{ "type":"codex.rate_limits",  "plan_type":"Gr\\u00fc\\u00dfe" }'];
  act = (_, connection) => {
    const events = responseEvents({ model: "test-model" }, ["Gr\u00fc\u00dfe"]).map((event) =>
      JSON.stringify(event).replace('{"type"', '{ "type"'),
    );
    raw.push(...events);
    // This message is binary, and has no type.
    connection.send(Buffer.from('{ "\u00e9":1.0 }'));
    for (const event of raw) connection.send(event);
  };
  const client = await openSocket(world.port, socket.key);
  const [aliased, plain] = ["fast", "test-model"].map(
    (model) => `{ "type":"response.create",  "model":"${model}","input":"Hello \\u00e9" }`,
  );
  client.send(aliased!);
  await client.next("response.completed");
  expect(client.texts).toEqual(['binary: { "\u00e9":1.0 }', ...raw]);
  client.send(plain!);
  await eventually(() => received.length === 2);
  expect(received).toEqual([plain!, plain!]);
  client.close();
});

test("P189: no message on a WebSocket contains a channel's credential", async () => {
  act = (event, connection) => {
    for (const each of responseEvents(event, ["cred-of-the-socket"])) connection.send(JSON.stringify(each));
  };
  const client = await openSocket(world.port, socket.key);
  client.send(CREATE);
  await client.next("response.completed");
  expect(client.texts.join("")).not.toContain("cred-of-the-socket");
  client.close();
});

test("P173, P174: response.inject and response.interrupt go upstream; a message of another type, or of two, gets an error", async () => {
  received = [];
  const client = await openSocket(world.port, socket.key);
  const held = Promise.withResolvers<void>();
  act = (event, connection) => {
    const events = responseEvents(event).map((each) => JSON.stringify(each));
    connection.send(events[0]!);
    void held.promise.then(() => events.slice(1).forEach((each) => connection.send(each)));
  };
  client.send(CREATE);
  await client.next("response.created");
  const inject = '{ "type":"response.inject",  "items":[1.0, "\\u00e9"] }';
  client.send(inject);
  client.send({ type: "response.interrupt" });
  await eventually(() => received.length === 3);
  expect(received.slice(1).map((text) => JSON.parse(text).type)).toEqual([
    "response.inject",
    "response.interrupt",
  ]);
  expect(received[1]).toBe(inject);
  held.resolve();
  await client.next("response.completed");
  for (const text of [
    '{"type":"session.update"}',
    '{"type":"response.cancel"}',
    '{"kind":"response.create","model":"test-model"}',
    '{"type":"session.update","type":"response.create","model":"test-model"}',
    '{"type":"response.create","model":"test-model","t\\u0079pe":"session.update"}',
    '{"type":"response.inject","type":"response.create","model":"test-model"}',
    '{"type":"response.inject","Type":"response.create","model":"test-model"}',
    '{"type":"response.inject","a":[/*"*/1],"type":"response.create","b":[/*"*/1]}',
  ]) {
    const from = client.messages.length;
    client.send(text);
    await client.next("error", from);
  }
  expect(received).toHaveLength(3);
  client.close();
});

describe("P175: the end of the upstream's WebSocket reaches the client", () => {
  test.each([1000, 1001, 1008, 1013, 4007])(
    "the client's WebSocket closes with the same code as the upstream's: %d",
    async (code) => {
      const client = await openSocket(world.port, socket.key);
      act = (_, connection) => connection.close(code);
      client.send(CREATE);
      expect((await client.closing).code).toBe(code);
    },
  );

  test("if the connection to the upstream breaks, the client's WebSocket closes with 1011", async () => {
    const client = await openSocket(world.port, socket.key);
    act = (event, connection) => {
      connection.send(JSON.stringify(responseEvents(event)[0]));
      connection.terminate();
    };
    client.send(CREATE);
    expect((await client.closing).code).toBe(1011);
    expect(client.messages.at(-1)?.["type"]).not.toBe("response.completed");
  });
});
