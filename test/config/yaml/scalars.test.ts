import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { CALL_KINDS, USAGE_KINDS } from "../../../src/billing/usage.ts";
import { findNearest } from "../../../src/config/nearest.ts";
import { findProxy } from "../../../src/config/proxy.ts";
import {
  readDecimal,
  readDuration,
  readListenHost,
  readMoment,
  readSize,
} from "../../../src/config/yaml/scalars.ts";
import { PRICE_KINDS } from "../../../src/config/schema.ts";

test("every priced kind of usage has a price setting, every kind of call one per thousand", () => {
  const tokens = USAGE_KINDS.filter((kind) => kind !== "reasoning");
  expect<string[]>([...PRICE_KINDS]).toEqual([
    ...tokens,
    ...CALL_KINDS.map((kind) => `${kind}_per_1k` as const),
  ]);
});

test("a decimal keeps its value and loses its padding, whatever its length", () => {
  const digits = fc.stringMatching(/^\d{1,18}$/);
  fc.assert(
    fc.property(digits, digits, (whole, fraction) => {
      const read = readDecimal(`${whole}.${fraction}`);
      const [integer = "", rest = ""] = read.split(".");
      expect(BigInt(integer)).toBe(BigInt(whole));
      expect(rest).toBe(fraction.replace(/0+$/, ""));
      expect(readDecimal(read)).toBe(read);
    }),
  );
});

test.each([
  "",
  " ",
  "-1",
  "+1",
  "1e3",
  "1E3",
  ".5",
  "1.",
  "1_000",
  "0x10",
  "NaN",
  ".inf",
  "Infinity",
  "1,5",
  "1.2.3",
  "9".repeat(41),
])("%p is no decimal", (text) => expect(() => readDecimal(text)).toThrow(RangeError));

test.each([
  ["500ms", 500],
  ["1.5s", 1500],
  ["5m", 300_000],
  ["2 h", 7_200_000],
  ["30d", 2_592_000_000],
  ["0s", 0],
])("%s is a duration of %d ms", (text, ms) => expect(readDuration(text)).toBe(ms));

test.each(["5", "s", "", "-5s", "1m30s", "5 parsecs", "1e3s", "constructor"])("%p is no duration", (text) =>
  expect(() => readDuration(text)).toThrow(RangeError),
);

test.each([
  ["64MiB", 67_108_864],
  ["1 GB", 1e9],
  ["1024", 1024],
  ["0.5KiB", 512],
])("%s is a size of %d bytes", (text, bytes) => expect(readSize(text)).toBe(bytes));

test.each(["0", "-1", "MiB", "1PiB", ""])("%p is no size", (text) =>
  expect(() => readSize(text)).toThrow(RangeError),
);

test.each([
  ["2027-01-31", "2027-01-31T00:00:00.000Z"],
  ["2027-01-31T12:00:00Z", "2027-01-31T12:00:00.000Z"],
  ["2027-01-31T12:00+02:00", "2027-01-31T10:00:00.000Z"],
])("%s is the moment %s", (text, iso) => expect(readMoment(text).toISOString()).toBe(iso));

test.each([
  "2027-02-29",
  "2027-13-01",
  "31.1.2027",
  "2027-01-31T25:00:00Z",
  "2027-01-31T12:00:00",
  "tomorrow",
  "",
])("%p is no moment", (text) => expect(() => readMoment(text)).toThrow(RangeError));

test.each([
  ["codx", "codex"],
  ["CODEX", "codex"],
  ["claudemax", "claude-max"],
  ["gmeini", "gemini"],
  ["zzzzzz", null],
  ["", null],
])("nearest to %p is %p", (typed, nearest) => {
  expect(findNearest(typed, ["codex", "claude", "claude-max", "gemini"])).toBe(nearest);
});

test("an address is bound without the brackets of URLs", () => {
  const hosts = ["[::1]", "::1", "127.0.0.1", "LocalHost"].map(readListenHost);
  expect(hosts).toEqual(["::1", "::1", "127.0.0.1", "localhost"]);
});

describe("the environment's proxy", () => {
  const proxyOf = (url: string, env: Record<string, string>) => findProxy(new URL(url), env)?.href ?? null;
  const env = {
    HTTPS_PROXY: "http://p:1",
    http_proxy: "q:2",
    NO_PROXY: "inner.example, .dot.example,port.example:8443",
  };
  test.each([
    ["https://a.example", "http://p:1/"],
    ["http://a.example", "http://q:2/"],
    ["https://inner.example", null],
    ["https://deep.inner.example", null],
    ["https://notinner.example", "http://p:1/"],
    ["https://dot.example", null],
    ["https://port.example:8443", null],
    ["https://port.example", "http://p:1/"],
    ["http://127.0.0.1:99", null],
    ["http://localhost:99", null],
    ["http://[::1]:99", null],
  ])("of %s is %p", (url, proxy) => expect(proxyOf(url, env)).toBe(proxy));

  test("is not used if NO_PROXY names all hosts, if none is set, or if it is not an HTTP proxy", () => {
    expect(proxyOf("https://a.example", { ...env, NO_PROXY: "*" })).toBeNull();
    expect(proxyOf("https://a.example", {})).toBeNull();
    expect(proxyOf("https://a.example", { ALL_PROXY: "socks5://s:1" })).toBeNull();
  });
});
