// NO_PROXY as `gateway run` and `gateway env` set it.

import { expect, test } from "bun:test";
import { exemptGateway } from "../../../src/cli/tools/environment/no-proxy.ts";

const LOOPBACK = "localhost,127.0.0.1,::1";

const cases: ReadonlyArray<
  readonly [what: string, base: string, env: Record<string, string>, capital: string, small: string]
> = [
  ["without one", "http://127.0.0.1:4141", {}, LOOPBACK, LOOPBACK],
  ["with another host", "http://gw:1", {}, `${LOOPBACK},gw`, `${LOOPBACK},gw`],
  [
    "with an entry there already",
    "http://gw:1",
    { NO_PROXY: "GW LocalHost, a" },
    "GW LocalHost, a,127.0.0.1,::1",
    "GW LocalHost, a,127.0.0.1,::1",
  ],
  ["with lower case only", "http://gw:1", { no_proxy: "a" }, `a,${LOOPBACK},gw`, `a,${LOOPBACK},gw`],
  [
    "with two that differ",
    "http://127.0.0.1:1",
    { NO_PROXY: "a", no_proxy: "b," },
    `a,${LOOPBACK}`,
    `b,${LOOPBACK}`,
  ],
  [
    "with an empty one",
    "http://127.0.0.1:1",
    { NO_PROXY: "", no_proxy: "b" },
    `b,${LOOPBACK}`,
    `b,${LOOPBACK}`,
  ],
  ["with *", "http://127.0.0.1:1", { NO_PROXY: "*" }, `*,${LOOPBACK}`, "*"],
  ["with * in lower case", "http://127.0.0.1:1", { no_proxy: "*" }, `*,${LOOPBACK}`, "*"],
  ["with * among others", "http://127.0.0.1:1", { no_proxy: "*,a" }, `*,a,${LOOPBACK}`, `*,a,${LOOPBACK}`],
  ["with an IPv6 gateway", "http://[::1]:1", {}, `${LOOPBACK},[::1]`, `${LOOPBACK},[::1]`],
  ["with an HTTPS gateway, which a proxy cannot read", "https://gw.example", {}, LOOPBACK, LOOPBACK],
];

for (const [what, base, env, capital, small] of cases) {
  test(`${what}: the gateway is added and every other entry stays`, () => {
    expect(exemptGateway(base, env, true)).toEqual({ NO_PROXY: capital, no_proxy: small });
  });
}

test("an IPv6 gateway has no brackets for SDKs", () => {
  expect(exemptGateway("http://[fd00::1]:1", {}, false)["NO_PROXY"]).toBe(`${LOOPBACK},fd00::1`);
});
