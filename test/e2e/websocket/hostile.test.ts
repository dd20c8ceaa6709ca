// Tests WebSockets of hostile clients and upstreams: nothing leaks, nothing hangs, and memory stays bounded.

import { describe, expect, onTestFinished, test } from "bun:test";
import { writeText } from "../../harness/frames.ts";
import { type InsideGateway, keyOf, startGatewayHere } from "../../harness/gateway.ts";
import {
  closeFrame,
  startRawSocketUpstream,
  textFrame,
} from "../../harness/upstreams/raw-socket-upstream.ts";
import { openRaw } from "../../harness/raw.ts";
import { openSocket, responseEvents, startSocketUpstream } from "../../harness/web-socket.ts";

type Section = Record<string, unknown>;

function keep<T extends { stop(): unknown }>(part: T): T {
  onTestFinished(() => part.stop());
  return part;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await Bun.sleep(1);
}

const KEY = keyOf("responses");
const credentialOf = (name: string): string => `secret-4f81c0de77-${name}-9b2e6a55d1`;

function startGateway(
  upstreams: Readonly<Record<string, { url: string }>>,
  channel: (name: string) => Section = () => ({}),
): InsideGateway {
  const channels = Object.fromEntries(
    Object.entries(upstreams).map(([name, { url }], index) => [
      name,
      {
        platform: "responses",
        base_url: url,
        credential: credentialOf(name),
        priority: index + 1,
        ...channel(name),
      },
    ]),
  );
  const groups = { responses: { platform: "responses", channels: Object.keys(upstreams) } };
  const keys = [{ name: "responses", group: "responses", secret: KEY }];
  return keep(startGatewayHere({ config: { channels, groups, keys } }));
}

const create = (more: Section = {}): Section => ({
  type: "response.create",
  model: "gpt-5.4",
  input: "Hello",
  ...more,
});

describe("an upstream that sends frames together with its 101 does no harm", () => {
  test("an upstream that sends a close frame with its 101 is replaced at the next request", async () => {
    const full = keep(startRawSocketUpstream({ early: closeFrame(4002, "full") }));
    const upstream = keep(startSocketUpstream());
    const gateway = startGateway({ full, upstream }, (name) => ({ models: [name === "full" ? "a" : "b"] }));
    const client = await openSocket(gateway.port, KEY);
    client.send(create({ model: "b" }));
    await client.next("response.completed");
    expect(client.texts).toHaveLength(4);
  });

  test("an upstream that responds before anybody has requested anything loses the connection", async () => {
    const [created] = responseEvents(create());
    const upstream = keep(startRawSocketUpstream({ early: textFrame(created) }));
    const gateway = startGateway({ main: upstream });
    const client = await openSocket(gateway.port, KEY);
    client.send(create());
    await client.closing;
    await gateway.running.stop(5_000);
    expect(gateway.ledger().filter(({ outcome }) => outcome === "complete")).toEqual([]);
  });
});

test("after a WebSocket has moved to another channel, the client gets nothing more from the old channel", async () => {
  let heard = 0;
  const old = keep(
    startRawSocketUpstream({
      // The first bytes that arrive are the gateway's close frame.
      receive: (socket) => {
        heard += socket.write(textFrame({ type: "note", text: credentialOf("old") }));
      },
    }),
  );
  const upstream = keep(startSocketUpstream());
  const gateway = startGateway({ old, upstream }, (name) => ({ models: [name === "old" ? "a" : "b"] }));
  const client = await openSocket(gateway.port, KEY);
  client.send(create({ model: "b" }));
  await client.next("response.completed");
  // The old upstream ends its connection after it has sent its message.
  await until(() => heard > 0);
  for (const socket of old.sockets) socket.end();
  const from = client.messages.length;
  client.send(create({ model: "b" }));
  await client.next("response.completed", from);
  expect(client.texts.join("\n")).not.toContain("note");
  expect(client.texts.join("\n")).not.toContain(credentialOf("old").slice(0, 14));
});

test("after an upstream has read nothing and then disconnected, the gateway answers the client again", async () => {
  const upstream = keep(startRawSocketUpstream({ opened: (socket) => socket.pause() }));
  const gateway = startGateway({ main: upstream });
  const client = await openSocket(gateway.port, KEY);
  client.send({ type: "response.inject", input: "x".repeat(16 * 1024 * 1024) });
  await until(() => client.unsent() === 0);
  for (const socket of upstream.sockets) socket.terminate();
  client.send({ type: 7 });
  expect(await client.next("error")).toMatchObject({ status: 400 });
});

const UPGRADE = `GET /v1/responses HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${KEY}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

/** Runs a client that sends this message again and again, and reads nothing before its connection has ended. */
async function sendAhead(gateway: InsideGateway, message: string): Promise<string> {
  const client = await openRaw(gateway.port);
  client.send(UPGRADE);
  await client.until("\r\n\r\n");
  client.pause();
  const frame = writeText(message, true);
  const frames = Buffer.concat(Array.from({ length: Math.ceil((1 << 20) / frame.length) }, () => frame));
  while (gateway.running.gateway.openSockets > 0) {
    client.send(frames);
    await Bun.sleep(1);
  }
  client.resume();
  await client.ended;
  return client.bytes().toString("latin1");
}

test("a client that reads nothing and goes on sending is closed", async () => {
  const upstream = keep(startSocketUpstream());
  await sendAhead(startGateway({ main: upstream }), "x".repeat(1000));
});

test("a client that sends more than 16 MB ahead of an upstream that reads nothing is closed with 1008", async () => {
  const upstream = keep(startRawSocketUpstream({ opened: (socket) => socket.pause() }));
  const gateway = startGateway({ main: upstream });
  const inject = JSON.stringify({ type: "response.inject", input: "x".repeat(1 << 20) });
  expect(await sendAhead(gateway, inject)).toContain("\x03\xf0Too many messages wait");
});

test("a WebSocket has a bounded number of responses at once", async () => {
  const upstream = keep(startSocketUpstream({ reply: () => {} }));
  const gateway = startGateway({ main: upstream });
  const client = await openSocket(gateway.port, KEY);
  for (let index = 0; index < 300; index += 1) client.send(create({ stream_id: String(index) }));
  expect(await client.next("error")).toMatchObject({ status: 429, stream_id: "256" });
  expect(upstream.received).toHaveLength(256);
});

test("open WebSockets are counted exactly", async () => {
  const upstream = keep(startSocketUpstream());
  const gateway = startGateway({ main: upstream });
  for (let time = 0; time < 3; time += 1) {
    const client = await openSocket(gateway.port, KEY);
    expect(gateway.running.gateway.openSockets).toBe(1);
    client.close(1000, "");
    await client.closing;
    await until(() => upstream.open.size === 0);
    const other = await openSocket(gateway.port, KEY);
    other.close(1000, "");
    await other.closing;
    await until(() => upstream.open.size === 0);
    expect(gateway.running.gateway.openSockets).toBe(0);
  }
});

test("the log shows when a WebSocket opens and closes", async () => {
  const upstream = keep(startSocketUpstream());
  const gateway = startGateway({ main: upstream });
  const client = await openSocket(gateway.port, KEY);
  client.send(create());
  await client.next("response.completed");
  expect(gateway.notices).toEqual(['WebSocket of the key "responses" opened on the channel "main"']);
  client.close(1000, "");
  await until(() => gateway.notices.length > 1);
  expect(gateway.notices[1]).toBe('WebSocket of the key "responses" closed, responses on it: 1');
});

test("P189: a credential in the header of a 101 does not reach the client", async () => {
  const upstream = keep(
    startRawSocketUpstream({
      fields: `x-echo: ${credentialOf("main")}\r\n${credentialOf("main")}: yes\r\nx-fine: 1\r\n`,
    }),
  );
  const gateway = startGateway({ main: upstream });
  const client = await openRaw(gateway.port);
  client.send(UPGRADE);
  const head = (await client.until("\r\n\r\n")).toString();
  expect(head).toContain("x-fine: 1");
  expect(head).not.toContain("4f81c0de77");
  client.close();
});
