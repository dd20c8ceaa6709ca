import { expect, jest, test } from "bun:test";
import { fetchWhole } from "../../../src/gateway/upstream/fetch.ts";
import { UpstreamFault } from "../../../src/lib/http/upstream.ts";
import { outbound } from "../../lib/http/peers.ts";

test("a small request of the gateway's own ends within half a minute, even if its answer trickles", async () => {
  jest.useFakeTimers();
  const { promise, reject } = Promise.withResolvers<never>();
  const sent = { answer: promise, cancel: () => reject(new UpstreamFault("cancelled", "given up")) };
  const asked = fetchWhole({ send: () => sent }, outbound({ tls: false, host: "127.0.0.1", port: 1 }), 1);
  jest.advanceTimersByTime(30_000);
  jest.useRealTimers();
  expect(await asked.catch(String)).toContain("given up");
});
