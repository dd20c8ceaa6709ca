// A client's WebSocket and its upstream's, without sockets: what happens in moments that are hard to hit from outside.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { OpenConnection } from "../../../src/gateway/websocket/connect.ts";
import { SocketConnection } from "../../../src/gateway/websocket/connection.ts";
import { Fields } from "../../../src/lib/http/fields.ts";
import type { Wire } from "../../../src/lib/http1/wire.ts";
import { FrameReader, writeClose, writeMessage } from "../../../src/lib/http1/websocket/frames.ts";
import { MemoryBudget } from "../../../src/lib/memory/memory-budget.ts";
import { FramedPeer } from "../../../src/lib/http1/websocket/peer.ts";
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
      { masked, maxMessageBytes: 8 * 1024 * 1024 },
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

const MEBIBYTE = 1024 * 1024;
/** For large messages: of 8 MiB, which exist twice. */
let memory = new MemoryBudget(16 * MEBIBYTE);
beforeEach(() => {
  memory = new MemoryBudget(16 * MEBIBYTE);
});
const LIMITS = {
  maxMessageBytes: 8 * MEBIBYTE,
  get memory() {
    return memory;
  },
};

interface Upstream {
  readonly wire: RecordedWire;
  readonly connection: OpenConnection;
  /** Sends an event to the gateway. */
  readonly say: (event: object) => void;
  readonly feed: (bytes: Uint8Array) => void;
  /** Everything that was sent to it has left. */
  readonly drain: () => void;
}

/** The upstream of one channel. It has accepted a WebSocket. */
function openUpstream(channel: string): Upstream {
  const wire = new RecordedWire(true);
  const candidate = { channel: scripted.gateway.catalog.channels.get(channel)!, model: "m" };
  let peer: FramedPeer | null = null;
  const start: OpenConnection["start"] = (open) => {
    peer = new FramedPeer(wire, { side: "client", ...LIMITS }, open);
  };
  return {
    wire,
    connection: { kind: "open", candidate, fields: new Fields(), start, discard: () => {} },
    say: (event) => peer?.receive(Buffer.from(writeMessage(asText(event), false))),
    feed: (bytes) => peer?.receive(Buffer.from(bytes)),
    drain: () => peer?.drain(),
  };
}

const asText = (event: object) => ({ kind: "text", bytes: Buffer.from(JSON.stringify(event)) }) as const;

interface Setting {
  readonly next?: string;
  readonly more?: Record<string, unknown>;
  readonly pieceMs?: number;
}

async function openSocket({ next, more = {}, pieceMs = 60_000 }: Setting = {}) {
  const target = "/v1/responses";
  scripted = await openScripted({ platform: "responses", target, channels: { a: [], b: [] }, more });
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
  const client = new FramedPeer(wire, { side: "server", ...LIMITS, pieceMs }, (peer) => {
    connection.start(peer, upstream.connection);
    return connection.clientListener;
  });
  return {
    upstream,
    following,
    wire,
    ended: ended.promise,
    send: (event: object) => client.receive(Buffer.from(writeMessage(asText(event), true))),
    feed: (bytes: Uint8Array) => client.receive(Buffer.from(bytes)),
    drain: () => client.drain(),
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

  test("a client that leaves while responses are open does not make the log blame the upstream", async () => {
    const { upstream, send, leave, ended } = await openSocket();
    for (const id of ["1", "2"]) send({ ...CREATE, stream_id: id });
    await arrived(upstream.wire, 2);
    upstream.say({ ...CREATED, stream_id: "1" });
    leave();
    upstream.say({ ...CREATED, stream_id: "2" });
    expect(await ended).toBe(2);
    expect(scripted.notices.filter((text) => text.includes("nobody requested"))).toEqual([]);
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

const frameOf = (event: object): Buffer => Buffer.from(writeMessage(asText(event), true));
const LARGE = { ...CREATE, input: "x".repeat(4 * MEBIBYTE) };

describe("large messages", () => {
  test("a message of a client waits for memory, and gives it back when the upstream has taken it", async () => {
    const { upstream, wire, feed } = await openSocket();
    const other = await memory.reserve(12 * MEBIBYTE);
    const frame = frameOf(LARGE);
    feed(frame.subarray(0, 1000));
    expect(wire.paused).toBe(true);
    other.free();
    await new Promise(setImmediate);
    expect([wire.paused, memory.usedBytes > 8 * MEBIBYTE]).toEqual([false, true]);
    const sent = new Promise<void>((resolve) => {
      upstream.wire.onMessage = () => {
        upstream.wire.unsentBytes = 1;
        resolve();
      };
    });
    feed(frame.subarray(1000));
    await sent;
    await new Promise(setImmediate);
    expect(memory.usedBytes).toBeGreaterThan(8 * MEBIBYTE);
    upstream.wire.unsentBytes = 0;
    upstream.drain();
    expect(memory.usedBytes).toBe(0);
  });

  test("a message in fragments takes memory for the longest message that it may become", async () => {
    const { feed } = await openSocket();
    const fragment = frameOf(LARGE);
    fragment[0] = 0x01; // a text that goes on in another frame
    feed(fragment);
    await new Promise(setImmediate);
    expect(memory.usedBytes).toBe(16 * MEBIBYTE);
  });

  test("a message of an upstream holds memory until the client has read it", async () => {
    const { upstream, wire, send, drain, leave } = await openSocket();
    send(CREATE);
    await arrived(upstream.wire, 1);
    const frame = Buffer.from(writeMessage(asText({ ...DELTA, delta: "x".repeat(4 * MEBIBYTE) }), false));
    upstream.say(CREATED);
    upstream.feed(frame.subarray(0, 1000));
    await new Promise(setImmediate);
    wire.unsentBytes = 1;
    upstream.feed(frame.subarray(1000));
    expect([memory.usedBytes > 8 * MEBIBYTE, upstream.wire.paused]).toEqual([true, true]);
    wire.unsentBytes = 0;
    drain();
    expect([memory.usedBytes, upstream.wire.paused]).toEqual([0, false]);
    leave();
  });

  test("a message that stops arriving ends its connection, however little of it is missing", async () => {
    const { wire, feed, ended } = await openSocket({ pieceMs: 25 });
    feed(frameOf(CREATE).subarray(0, -1));
    expect(await ended).toBe(0);
    expect(wire.closings).toEqual([1008]);
  });
});

test("a message of a type that nobody sends is refused by its name, and the log says so once", async () => {
  const { upstream, wire, send } = await openSocket();
  for (const type of ["response.append", "Response.Create", "response.create "]) send({ type, model: "m" });
  await arrived(wire, 3);
  expect(wire.messages.map(({ type, error }) => [type, Object(error).message])).toEqual([
    ["error", expect.stringContaining('"response.append"')],
    ["error", expect.stringContaining("of an unknown type")],
    ["error", expect.stringContaining("of an unknown type")],
  ]);
  expect([upstream.wire.messages, wire.closings]).toEqual([[], []]);
  expect(scripted.notices.filter((text) => text.includes("was refused"))).toHaveLength(1);
});
