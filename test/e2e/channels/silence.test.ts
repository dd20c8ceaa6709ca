// Ten minutes of silence, on a clock of the test's own: only the channel's own
// limits cut it, nothing of the runtime's and nothing of the server's.

import { afterEach, beforeEach, describe, expect, jest, test } from "bun:test";
import { makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { DIALECTS, inWorld, makeRequest, onChannels } from "../world.ts";

const TEN_MINUTES = 600_000;

beforeEach(() => {
  jest.useFakeTimers();
});
afterEach(() => {
  // What was set on this clock must not be waited for on another.
  jest.advanceTimersByTime(10 * TEN_MINUTES);
  jest.useRealTimers();
});

describe.each(DIALECTS)("ten minutes of silence: %s", (dialect) => {
  test.each([
    ["11m", "complete"],
    ["9m", "upstream_cut"],
    ["default", "complete"],
  ])("in the middle of a stream, with timeouts.idle: %s, end %s", async (idle, outcome) => {
    await inWorld(
      async (world) => {
        const gate = makeGate();
        world.upstream.next({ gates: { 7: gate } });
        const running = await world.begin(makeRequest(dialect, true));
        await running.client.until("said");
        jest.advanceTimersByTime(TEN_MINUTES);
        gate.open();
        const { record, lines } = await running.over();
        expect(record.outcome).toBe(outcome);
        expect(lines).toMatchObject([{ outcome }]);
        running.client.close();
      },
      onChannels(idle === "default" ? {} : { timeouts: { idle } }),
    );
  });

  test.each([
    ["11m", 200],
    ["9m", 504],
  ])("before the head, with timeouts.first_byte: %s, end as %d", async (limit, status) => {
    await inWorld(
      async (world) => {
        const gate = makeGate();
        world.upstream.next({ gates: { [-1]: gate } });
        const running = await world.begin(makeRequest(dialect));
        await gate.reached;
        jest.advanceTimersByTime(TEN_MINUTES);
        gate.open();
        expect((await running.over()).record.status).toBe(status);
        running.client.close();
      },
      (url) => ({ ...onChannels({ timeouts: { first_byte: limit } })(url), failover: { total: "1h" } }),
    );
  });
});
