// The header that shows a loop goes only to upstreams on this machine.

import { expect, test } from "bun:test";
import { networkInterfaces } from "node:os";
import { markHop } from "../../../src/gateway/upstream/self-call.ts";
import { RecordedExchange } from "../scripted.ts";

const exchange = new RecordedExchange("/v1/messages", [], {});
const mark = (host: string, tls = false) =>
  markHop(exchange, { tls, host, port: 4141 }).map(([name]) => name);

const own = Object.values(networkInterfaces())
  .flatMap((list) => list ?? [])
  .map(({ address, family }) => (family === "IPv6" ? `[${address}]` : address));

test.each(["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "gateway.localhost", "0.0.0.0", ...own])(
  "%s belongs to this machine",
  (host) => {
    expect(mark(host)).toEqual(["x-gateway-hop"]);
    expect(mark(host, true)).toEqual(["x-gateway-hop"]);
  },
);

test.each(["192.0.2.7", "[2001:db8::7]", "203.0.113.1"])("%s does not", (host) => {
  expect(mark(host)).toEqual([]);
});

test("marks of other gateways are passed on", () => {
  const marked = new RecordedExchange("/v1/messages", [["x-gateway-hop", "other"]], {});
  expect(markHop(marked, { tls: false, host: "127.0.0.1", port: 1 })[0]?.[1]).toMatch(/^other, \w{8}$/);
});
