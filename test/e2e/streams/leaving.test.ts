// Clients that leave while they send a request, clients that stop reading, and requests and answers that
// break off. money/outcomes.test.ts tests clients that leave later.

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openCounter, openRaw, type RawConnection, writeRequest } from "../../harness/raw.ts";
import { openOwnWorld, makeRequest, waitUntilStill } from "../world.ts";

/** Two ways to leave: a normal close, and a reset. */
const LEAVINGS = {
  fin: (client: RawConnection) => client.close(),
  reset: (client: RawConnection) => client.reset(),
} as const;
const WAYS = ["fin", "reset"] as const;

describe.each(WAYS)("P96: a client that leaves (%s)", (way) => {
  const leave = LEAVINGS[way];

  test("a client that leaves while still sending its request leaves no trace upstream or in the ledger", async () => {
    const world = openOwnWorld();
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

const isLinux = process.platform === "linux";

function readResident(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

/** A gateway in a process of its own. It and its upstream end with the test, even if the test fails. */
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

describe("a client that stops reading makes its upstream wait", () => {
  test.skipIf(!isLinux).each([true, false])(
    "a client that stops reading makes the upstream wait, and the process does not grow (stream: %p)",
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
      // The answer has 64 MB. On a busy machine, a gateway that runs from its source grows by up to 24 MB.
      expect(readResident(gateway.pid) - before).toBeLessThan(40);
      client.resume();
      await client.until(64 * 1024 * 1024);
      expect(await upstream.ended(1)).toBe("answered");
      await gateway.recorded(2);
      client.close();
    },
  );
});

test("requests and answers that break off leave nothing on stderr, even with BUN_CONFIG_VERBOSE_FETCH", async () => {
  await using served = await serve({ BUN_CONFIG_VERBOSE_FETCH: "curl" });
  const { upstream, gateway } = served;
  // This is the last line that a starting gateway prints.
  while (!/ledger: .*\n/.test(gateway.stderr())) await Bun.sleep(1);
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
