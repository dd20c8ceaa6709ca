// Which key a call has, whether it may call the endpoint, and whose name a refused call has in the log.

import { afterAll, beforeAll, expect, test } from "bun:test";
import { recognise } from "../../../src/dialects/index.ts";
import { findKey } from "../../../src/gateway/intake/authenticate.ts";
import { handle } from "../../../src/gateway/pipeline.ts";
import { Request } from "../../../src/gateway/request.ts";
import { type InsideGateway, startGatewayHere } from "../../harness/gateway.ts";
import { RecordedExchange } from "../scripted.ts";

const CONFIG = {
  channels: {
    a: { platform: "messages", base_url: "http://127.0.0.1:9", credential: "xxxx" },
    b: { platform: "responses", base_url: "http://127.0.0.1:9", credential: "xxxx" },
  },
  groups: {
    open: { platform: "messages", channels: ["a"] },
    other: { platform: "responses", channels: ["b"] },
    planned: { platform: "messages", channels: ["a"], exclusive: true },
  },
  plans: { max: { groups: ["planned"], active: false } },
  keys: [
    { name: "good", group: "open", secret: "sk-good-0123456789" },
    { name: "disabled", group: "open", secret: "sk-disabled-0123456789", disabled: true },
    { name: "expired", group: "open", secret: "sk-expired-0123456789", expires: "2020-01-01" },
    { name: "elsewhere", group: "other", secret: "sk-elsewhere-0123456789" },
    { name: "unplanned", group: "planned", secret: "sk-unplanned-0123456789" },
  ],
};

let inside: InsideGateway;
beforeAll(() => {
  inside = startGatewayHere({ config: CONFIG });
});
afterAll(() => inside.stop());

/** The status that the client gets, and the key in the record of the request. */
async function call(fields: readonly (readonly [string, string])[]): Promise<[number | null, string | null]> {
  const { gateway } = inside.running;
  const exchange = new RecordedExchange("/v1/messages", fields, {
    model: "none",
    max_tokens: 9,
    messages: [],
  });
  const found = recognise(exchange, gateway.catalog);
  if (found.kind !== "target") throw new Error("no endpoint");
  const { target, query } = found;
  const times = { time: gateway.now(), arrived: performance.now() };
  // A call that is admitted ends here.
  exchange.readBody = () => Promise.reject(new Error("admitted"));
  handle(new Request({ id: "req_1", exchange, ...times }, { target, query }), gateway);
  await new Promise(setImmediate);
  return [exchange.status, inside.records.at(-1)?.key ?? null];
}

test.each<[string, string[], number, string | null]>([
  ["without a key", [], 401, null],
  ["with an unknown key", ["sk-unknown-0123456789"], 401, null],
  ["with a disabled key", ["sk-disabled-0123456789"], 401, null],
  ["with an expired key", ["sk-expired-0123456789"], 401, null],
  ["with a key of another platform", ["sk-elsewhere-0123456789"], 403, "elsewhere"],
  ["with a key whose plan is not active", ["sk-unplanned-0123456789"], 403, "unplanned"],
  ["with a good key, which fails later", ["sk-good-0123456789"], 500, "good"],
])("a call %s", async (_name, secrets, status, key) => {
  expect(await call(secrets.map((secret) => ["x-api-key", secret] as const))).toEqual([status, key]);
});

test.each([
  ["sk-unknown-0123456789", "Bearer sk-good-0123456789"],
  ["sk-good-0123456789", "Bearer sk-unknown-0123456789"],
])("of two keys, the first known one counts: %s, %s", async (key, authorization) => {
  const fields = [
    ["x-api-key", key],
    ["authorization", authorization],
  ] as const;
  expect(await call(fields)).toEqual([500, "good"]);
});

test.each<[string, string, number, string | null]>([
  ["a good key", "sk-good-0123456789", 500, "good"],
  ["a disabled key", "sk-disabled-0123456789", 401, null],
  ["an unknown key, in spite of a good one elsewhere", "sk-unknown-0123456789", 401, null],
  ["nothing, in spite of a good one elsewhere", "", 401, null],
])("x-gateway-key alone counts: with %s", async (_name, own, status, key) => {
  const others = ["unknown", "good"].map((name) => `sk-${name}-0123456789`);
  for (const other of others) {
    const fields = [
      ["authorization", `Bearer ${other}`],
      ["x-api-key", other],
      ["x-gateway-key", own],
    ] as const;
    expect(await call(fields)).toEqual([status, key]);
  }
});

test("x-gateway-key is read whichever headers an endpoint accepts, before a key in the URL", () => {
  const { catalog } = inside.running.gateway;
  const find = (own: string) => {
    const exchange = new RecordedExchange("/?key=sk-other-0123456789", [["x-gateway-key", own]], {});
    return (["bearer", "query"] as const).map((source) => findKey(exchange, [source], catalog, 0)?.name);
  };
  expect(find("sk-good-0123456789")).toEqual(["good", "good"]);
  expect(() => find("sk-no")).toThrow("the key in x-gateway-key, and reads no other header");
});

test("a key expires at its time, not a moment later", () => {
  const { catalog } = inside.running.gateway;
  const exchange = new RecordedExchange("/", [["x-api-key", "sk-expired-0123456789"]], {});
  const expires = Date.parse("2020-01-01T00:00:00Z");
  const find = (now: number) => findKey(exchange, ["x-api-key"], catalog, now)?.name;
  expect(find(expires - 1)).toBe("expired");
  expect(() => find(expires)).toThrow("expired at 2020-01-01");
});
