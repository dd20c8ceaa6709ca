// A client's WebSocket and its upstream's, without sockets: what happens in moments that are hard to hit from outside.

import { afterEach, describe, expect, test } from "bun:test";
import type { OpenConnection } from "../../../src/gateway/websocket/connect.ts";
import { SocketConnection } from "../../../src/gateway/websocket/connection.ts";
import { Fields } from "../../../src/lib/http1/fields.ts";
import type { Wire } from "../../../src/lib/http1/types.ts";
import { FrameReader, writeClose, writeMessage } from "../../../src/lib/websocket/frames.ts";
import { WebSocketPeer } from "../../../src/lib/websocket/peer.ts";
import { Deadline } from "../../../src/lib/time/deadline.ts";
import { responseEvents } from "../../harness/web-socket.ts";
import { openScripted, type Scripted } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

/** One connection of the gateway. Remembers what the other side gets. */
class RecordedWire implements Wire {
  readonly messages: Record<string, unknown>[] = [];
  readonly closings: number[] = [];
  unsentBytes = 0;
  paused = false;
  ended = false;
  /** Called with each message. */
  onMessage: (message: Record<string, unknown>) => void = () => {};
  readonly #reader: FrameReader;

  constructor(masked: boolean) {
    this.#reader = new FrameReader(
      { masked, maxMessageBytes: 1024 * 1024 },
      {
        message: ({ bytes }) => {
          const message = JSON.parse(Buffer.from(bytes).toString());
          this.messages.push(message);
          this.onMessage(message);
        },
        ping: () => {},
        closing: ({ code }) => void this.closings.push(code),
      },
    );
  }

  write(bytes: Uint8Array): boolean {
    this.#reader.feed(Buffer.from(bytes));
    return this.unsentBytes === 0;
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
  }
  end(): void {
    this.ended = true;
  }
  reset(): void {
    this.ended = true;
  }
}

interface Upstream {
  readonly wire: RecordedWire;
  readonly connection: OpenConnection;
  /** Sends an event to the gateway. */
  readonly say: (event: object) => void;
}

/** The upstream of one channel. It has accepted a WebSocket. */
function openUpstream(channel: string): Upstream {
  const wire = new RecordedWire(true);
  const candidate = { channel: scripted.gateway.catalog.channels.get(channel)!, model: "m" };
  let peer: WebSocketPeer | null = null;
  const start: OpenConnection["start"] = (listener, taken) => {
    peer = new WebSocketPeer(wire, { side: "client", maxMessageBytes: 1024 * 1024 }, listener);
    taken(peer);
  };
  return {
    wire,
    connection: { kind: "open", candidate, fields: new Fields(), start, discard: () => {} },
    say: (event) => peer?.receive(Buffer.from(writeMessage(asText(event), false))),
  };
}

const asText = (event: object) => ({ kind: "text", bytes: Buffer.from(JSON.stringify(event)) }) as const;

async function openSocket({ next, more = {} }: { next?: string; more?: Record<string, unknown> } = {}) {
  const target = "/v1/responses";
  scripted = await openScripted({
    platform: "responses",
    target,
    channels: { a: [], b: [] },
    more,
  });
  const { gateway, request } = scripted;
  const upstream = openUpstream("a");
  const following = next === undefined ? null : openUpstream(next);
  const ended = Promise.withResolvers<number>();
  let count = 0;
  const connection = new SocketConnection(
    {
      call: request,
      gateway,
      newId: () => `req_socket${(count += 1)}`,
      openUpstream: async () => {
        if (following === null) throw new Error("no other channel");
        return following.connection;
      },
      ended: ended.resolve,
    },
    upstream.connection,
  );
  const wire = new RecordedWire(false);
  const client = new WebSocketPeer(
    wire,
    { side: "server", maxMessageBytes: 1024 * 1024 },
    connection.clientListener,
  );
  connection.start(client, upstream.connection);
  return {
    upstream,
    following,
    wire,
    ended: ended.promise,
    send: (event: object) => client.receive(Buffer.from(writeMessage(asText(event), true))),
    leave: () => client.receive(Buffer.from(writeClose({ code: 1000, reason: "" }, true))),
  };
}

const CREATE = { type: "response.create", model: "m", input: "Hello" };
const [CREATED = {}, DELTA = {}, , COMPLETED = {}] = responseEvents(CREATE);

/** Resolves when this many messages have come. */
function arrived(wire: RecordedWire, count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const check = (): void => void (wire.messages.length >= count && resolve());
  wire.onMessage = check;
  check();
  return promise;
}

describe("a client that leaves", () => {
  test("while its request is written to the journal is client_closed, and nothing is sent", async () => {
    const { upstream, send, leave, ended } = await openSocket();
    send(CREATE);
    leave();
    expect(await ended).toBe(0);
    expect(upstream.wire.messages).toEqual([]);
    expect(scripted.records().map(({ outcome }) => outcome)).toEqual(["client_closed"]);
  });

  test("with unread messages lets its response be read to the end, if it may be drained", async () => {
    const { upstream, wire, send, leave, ended } = await openSocket({
      more: { on_disconnect: { drain: "1h" } },
    });
    send(CREATE);
    await arrived(upstream.wire, 1);
    upstream.say(CREATED);
    wire.unsentBytes = 1000;
    upstream.say(DELTA);
    expect(upstream.wire.paused).toBe(true);
    leave();
    expect(upstream.wire.paused).toBe(false);
    upstream.say(COMPLETED);
    expect(await ended).toBe(1);
    expect(scripted.records().map(({ outcome }) => outcome)).toEqual(["complete"]);
  });

  test("before its response begins ends the trial of a channel in cooldown", async () => {
    const { upstream, send, leave, ended } = await openSocket();
    const { channels, now } = scripted.gateway;
    const { candidate } = upstream.connection;
    const failure = {
      kind: "status",
      channel: "a",
      status: 529,
      cause: "overload",
      message: "",
      waitMs: null,
    } as const;
    channels.reportFailure(candidate, { ...failure, response: null }, now());
    send(CREATE);
    await arrived(upstream.wire, 1);
    leave();
    await ended;
    expect(channels.admits(candidate, now())).toBe(true);
  });
});

describe("the silence of an upstream", () => {
  test("counts for a later response on the same stream, once the one before has ended", async () => {
    const { upstream, wire, send } = await openSocket({
      more: channelsWith({ first_byte: "50ms", idle: "0s" }),
    });
    upstream.wire.onMessage = () => upstream.say(CREATED);
    send(CREATE);
    await arrived(wire, 1);
    const both = arrived(upstream.wire, 2);
    send(CREATE);
    await both;
    upstream.say(COMPLETED);
    while (wire.closings.length === 0) await new Promise(setImmediate);
    expect(wire.closings).toEqual([1011]);
    await new Promise(setImmediate);
    const ends = scripted.records().map(({ outcome, status }) => [outcome, status]);
    expect(ends).toEqual([
      ["complete", 200],
      ["upstream_cut", 200],
    ]);
  });

  test("does not count after a response", async () => {
    const { upstream, wire, send } = await openSocket({
      more: channelsWith({ first_byte: "0s", idle: "25ms" }),
    });
    upstream.wire.onMessage = () => {
      for (const event of [CREATED, DELTA, COMPLETED]) upstream.say(event);
    };
    send(CREATE);
    await arrived(wire, 3);
    // Deadlines expire in order.
    const later = Promise.withResolvers<void>();
    new Deadline(later.resolve).arm(100);
    while (
      await Promise.race([later.promise.then(() => false), new Promise((go) => setImmediate(go, true))])
    );
    expect([upstream.wire.ended, wire.closings]).toEqual([false, []]);
  });
});

function channelsWith(timeouts: object) {
  const channel = {
    platform: "responses",
    base_url: "http://127.0.0.1:1",
    credential: "credential-of-the-channel",
  };
  return { channels: { a: { ...channel, timeouts }, b: channel } };
}

test("a connection that another channel replaces is closed", async () => {
  const { upstream, following, send } = await openSocket({
    next: "b",
    more: {
      channels: { ...channelsWith({}).channels, a: { ...channelsWith({}).channels.a, models: ["other"] } },
    },
  });
  send(CREATE);
  await arrived(following!.wire, 1);
  expect([upstream.wire.messages, upstream.wire.closings]).toEqual([[], [1000]]);
});
