// Clients that leave at the edges of a request (money/outcomes.test.ts has the moments between), clients that stop reading,
// and 300 of them at once.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { startDemoUpstream, makeGate, type Gate } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openCounter, openRaw, type RawConnection, writeRequest } from "../../harness/raw.ts";
import { DIALECTS, inWorld, makeRequest, type Running } from "../world.ts";

/** Two ways to leave: a normal close, and a reset. */
const LEAVINGS = {
  fin: (client: RawConnection) => client.close(),
  reset: (client: RawConnection) => client.reset(),
} as const;
const WAYS = ["fin", "reset"] as const;

/** The text that marks an answer as whole. */
const TERMINAL = {
  messages: '"message_stop"',
  responses: '"response.completed"',
  chat: "[DONE]",
  content: '"finishReason"',
} as const;

/** Opens one gate after the other until the client has got the text; the next gate stays shut. */
async function openUntil(gates: readonly Gate[], { client }: Running, text: string): Promise<void> {
  const seen = client.until(text).then(() => "seen" as const);
  for (const gate of gates) {
    if ((await Promise.race([seen, gate.reached])) === "seen") return;
    // Time for what was sent before this gate to arrive.
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    if (client.bytes().includes(text)) return;
    gate.open();
  }
  await seen;
}

function makeGates(): { list: Gate[]; gates: Record<number, Gate> } {
  const list = Array.from({ length: 80 }, makeGate);
  return { list, gates: Object.fromEntries(list.map((gate, index) => [index, gate])) };
}

describe.each(WAYS)("a client that leaves (%s)", (way) => {
  const leave = LEAVINGS[way];

  test.each(DIALECTS)(
    "a client that leaves right after the terminal event has received a complete answer: %s",
    async (dialect) => {
      await inWorld(async (world) => {
        const { list, gates } = makeGates();
        world.upstream.next({ gates });
        const running = await world.begin(makeRequest(dialect, true));
        await openUntil(list, running, TERMINAL[dialect]);
        leave(running.client);
        for (const gate of list) gate.open();
        const { record, lines } = await running.over();
        expect(record.outcome).toBe("complete");
        expect(lines).toHaveLength(1);
        expect(lines[0]).toMatchObject({ outcome: "complete", basis: "exact", status: 200 });
      });
    },
  );

  test("a client that leaves while still sending its request leaves no trace upstream or in the ledger", async () => {
    await inWorld(async (world) => {
      const client = await openRaw(world.gateway.port);
      const bytes = writeRequest(makeRequest("messages"));
      client.send(bytes.subarray(0, bytes.length - 5));
      for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
      leave(client);
      const [record] = await world.gateway.recorded(1);
      expect(record).toMatchObject({ status: 499, outcome: "client_closed" });
      expect(world.upstream.requests).toHaveLength(0);
      expect(world.gateway.ledger()).toEqual([]);
    });
  });
});

const isLinux = process.platform === "linux";

function readResident(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

/** A gateway in a process of its own; both it and its upstream end with the test, however that ends. */
async function serve(env: Record<string, string> = {}) {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const gateway = await startGateway({ config: makeConfig(upstream), env });
  return {
    upstream,
    gateway,
    [Symbol.asyncDispose]: async () => {
      await gateway.stop();
      upstream.stop();
    },
  };
}

/** Resolves when the number has not changed for as long as a full-speed sender would need for many megabytes. */
async function waitUntilStill(read: () => number): Promise<void> {
  for (let last = -1, now = read(); last !== now; now = read()) {
    last = now;
    await Bun.sleep(250);
  }
}

describe("a client that stops reading", () => {
  test.skipIf(!isLinux).each([true, false])(
    "makes the upstream wait, and the process does not grow (stream: %p)",
    async (stream) => {
      await using served = await serve();
      const { upstream, gateway } = served;
      const warm = await openRaw(gateway.port);
      warm.send(writeRequest(makeRequest("messages", stream)));
      await gateway.recorded(1);
      warm.close();
      const before = readResident(gateway.pid);
      upstream.next("huge");
      const client = await openCounter(gateway.port);
      client.pause();
      client.send(writeRequest(makeRequest("messages", stream)));
      const sent = await upstream.received(1);
      await waitUntilStill(() => sent.sentBytes());
      expect(sent.sentBytes()).toBeLessThan(32 * 1024 * 1024);
      // Of an answer of 64 MB. A process of the source takes up to 24 MB for its own code on a busy machine.
      expect(readResident(gateway.pid) - before).toBeLessThan(40);
      client.resume();
      await client.until(64 * 1024 * 1024);
      expect(await upstream.ended(1)).toBe("answered");
      await gateway.recorded(2);
      client.close();
    },
  );
});

test("requests and answers that break off leave nothing on stderr, even if the runtime was asked to show them", async () => {
  await using served = await serve({ BUN_CONFIG_VERBOSE_FETCH: "curl" });
  const { upstream, gateway } = served;
  // The last line that a start prints.
  while (!gateway.stderr().includes("(relay)\n")) await Bun.sleep(1);
  const before = gateway.stderr();
  const broken = await openRaw(gateway.port);
  broken.send(
    writeRequest(makeRequest("messages"))
      .toString()
      .replace(/content-length: \d+/, "transfer-encoding: chunked"),
  );
  await broken.ended;
  upstream.next("huge");
  const left = await openRaw(gateway.port);
  left.send(writeRequest(makeRequest("messages", true)));
  await left.until("event:");
  left.reset();
  upstream.next("reset-mid-stream");
  const cut = await openRaw(gateway.port);
  cut.send(writeRequest(makeRequest("messages", true)));
  await cut.until('"type":"error"');
  await gateway.recorded(3);
  expect(gateway.stderr()).toBe(before);
});
