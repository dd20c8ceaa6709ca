// Tests connections that are open before they are needed: when they are opened, replaced and closed, and that nothing is sent
// on them.

import { afterEach, beforeEach, describe, expect, setSystemTime, test } from "bun:test";
import type { NetworkInterfaceInfo } from "node:os";
import type { Origin, Upstream as HttpClient } from "../../../src/lib/http/upstream.ts";
import { faultOf, openClient, outbound, readAll, startUpstream, type Upstream } from "./peers.ts";

const OK = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const SECOND = 1000;
const WIFI = ["192.168.1.20", "fe80::1", "2001:db8::20"];

let now = 0;
let addresses: readonly string[] = WIFI;
beforeEach(() => {
  addresses = WIFI;
  now = Date.now();
  // From now on, only `pass` moves the clock.
  setSystemTime(new Date(now));
});
afterEach(() => void setSystemTime());

function pass(ms: number): void {
  now += ms;
  setSystemTime(new Date(now));
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await turn();
}

function describeInterface(address: string): NetworkInterfaceInfo {
  const common = { address, internal: address.startsWith("127."), mac: "", cidr: null };
  return address.includes(":")
    ? { ...common, family: "IPv6", netmask: "", scopeid: 0 }
    : { ...common, family: "IPv4", netmask: "" };
}

const open = (): HttpClient => openClient(() => ({ lan: addresses.map(describeInterface) }));

async function start(): Promise<{ client: HttpClient; upstream: Upstream; origin: Origin }> {
  const upstream = await startUpstream((socket) => void socket.write(OK));
  return { client: open(), upstream, origin: upstream.origin };
}

/** What the gateway does once a second for its warm connections. */
function look(client: HttpClient, origin: Origin): void {
  client.keepWarm([origin]);
}

async function ask(client: HttpClient, origin: Origin): Promise<string> {
  return (await readAll(await client.send(outbound(origin)).answer)).toString();
}

/** Starts a client that expects a use of the upstream, and waits until it has opened six connections. */
async function startSix(): Promise<Awaited<ReturnType<typeof start>>> {
  const started = await start();
  const { client, upstream, origin } = started;
  client.keepWarm([origin], [origin]);
  await until(() => client.stats().idle === 6 && upstream.connections === 6);
  return started;
}

describe("warm connections are kept open, and replaced in time", () => {
  test("six connections are opened for an expected use, get no data, and are closed with the client", async () => {
    const { client, upstream } = await startSix();
    client.close();
    await until(() => upstream.sockets.size === 0);
    expect(upstream.requests).toHaveLength(0);
  });

  test("a warm connection is replaced before it has been idle for 55 seconds", async () => {
    const { client, upstream, origin } = await startSix();
    for (let second = 0; second < 49; second += 1) {
      pass(SECOND);
      look(client, origin);
    }
    expect(upstream.connections).toBe(6);
    pass(2 * SECOND);
    look(client, origin);
    await until(() => upstream.connections === 12);
    pass(7 * SECOND);
    expect(await ask(client, origin)).toBe("ok");
    expect(upstream.requests[0]?.connection).toBeGreaterThan(6);
  });

  test("a request fails after its own time limit if its warm connection does not open", async () => {
    // An upstream that accepts connections, but whose TLS handshake never ends.
    const upstream = await startUpstream(() => {});
    const client = open();
    const origin = { ...upstream.origin, tls: true };
    client.keepWarm([origin], [origin]);
    const deadlines = { connectMs: 50, firstByteMs: 10_000, idleMs: 10_000 };
    const { answer: head } = client.send(outbound(origin, { deadlines }));
    expect(await faultOf(head)).toEqual({ kind: "connect_timeout", answered: false });
  });

  test("a warm connection from before the machine slept is not used", async () => {
    const { client, upstream, origin } = await startSix();
    pass(20 * SECOND);
    look(client, origin);
    expect(await ask(client, origin)).toBe("ok");
    expect(upstream.requests[0]?.connection).toBeGreaterThan(6);
  });
});

describe("warm connections are replaced when the machine's network changes", () => {
  test.each<[string, readonly string[], boolean]>([
    ["another network", ["10.0.0.7", "fe80::1"], true],
    ["an address more, of a VPN", [...WIFI, "10.8.0.2"], true],
    ["an address less", ["192.168.1.20", "fe80::1"], true],
    ["no network", [], true],
    ["the same addresses in another order", WIFI.toReversed(), false],
    ["an address that reaches no other network", [...WIFI, "127.0.0.9", "fe80::2"], false],
  ])("a warm connection is used until the machine's addresses change (%s)", async (_, then, isNew) => {
    const { client, upstream, origin } = await startSix();
    addresses = then;
    pass(1.1 * SECOND);
    look(client, origin);
    expect(await ask(client, origin)).toBe("ok");
    expect((upstream.requests[0]?.connection ?? 0) > 6).toBe(isNew);
  });
});
