// The gateway fails while it computes a request's cost. That is our own fault: the client gets its answer, and the
// request gets its line, frees its memory, and counts against limits with its reservation.

import { expect, test } from "bun:test";
import { PriceBook } from "../../../src/billing/prices/book.ts";
import { makeConfig } from "../../harness/gateway.ts";
import { DIALECTS, flushLedger, openOwnWorld, makeRequest } from "../world.ts";

/** Returns the config's keys, each of which may have one request at a time. */
function limitKeys(url: string): { keys: object[] } {
  const { keys } = makeConfig({ url });
  return { keys: keys.map((key) => ({ ...key, limits: { concurrent_requests: 1 } })) };
}

function makeBrokenBook(): PriceBook {
  return new PriceBook(() => {
    throw new Error("this book cannot be read");
  });
}

test.each(DIALECTS.map((dialect, index) => ({ dialect, stream: index % 2 === 0 })))(
  "P122: if the charge of a $dialect request with stream: $stream cannot be computed, the request is answered and has its line, and the next request is let in",
  async ({ dialect, stream }) => {
    const world = openOwnWorld(limitKeys);
    const { gateway } = world;
    const { running } = gateway;
    const { prices } = running.gateway;
    running.gateway.prices = makeBrokenBook();
    const { answer, lines } = await world.trace(makeRequest(dialect, stream));
    expect(answer.status).toBe(200);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      outcome: "complete",
      basis: "unknown",
      usage: {},
      charge_usd: null,
      suspect: "the gateway failed to compute the amounts",
    });
    expect(lines[0]?.["raw_usage"]).toBeObject();
    running.gateway.prices = prices;
    expect((await world.ask(makeRequest(dialect, stream))).status).toBe(200);
    await flushLedger();
    expect(gateway.ledger().map(({ basis }) => basis)).toEqual(["unknown", "exact"]);
  },
);
