// Which requests get a line, and what it says when several channels may have worked on one request.

import { afterEach, describe, expect, test } from "bun:test";
import { readJournal } from "../../../src/billing/ledger/journal.ts";
import { type FaultKind, UpstreamFault } from "../../../src/lib/http/upstream.ts";
import { openScripted, type Scripted, type ScriptedOptions, type Step } from "../scripted.ts";

let scripted: Scripted;
afterEach(() => scripted.stop());

const OK: Step = { chunks: ['{"type":"message","model":"m","usage":{"input_tokens":5,"output_tokens":7}}'] };
const fail = (kind: FaultKind): Step => new UpstreamFault(kind, "said", false);
const refuse = (status: number): Step => ({ status, chunks: ['{"error":{"message":"no"}}'] });
const HTML: Step = { fields: [["content-type", "text/html"]], chunks: ["<html>"] };

async function run(channels: ScriptedOptions["channels"]) {
  scripted = await openScripted({ channels });
  await scripted.run();
  await new Promise(setImmediate);
  return scripted.ledger();
}

test.each<FaultKind>(["connect", "connect_timeout", "tls", "shortage", "withdrawn"])(
  "a request that never left (%s) has no line, nor gets one after a crash",
  async (kind) => {
    expect(await run({ a: [fail(kind)] })).toEqual([]);
    expect([...readJournal(`${scripted.gateway.catalog.ledger.path}.open`).open]).toEqual([]);
  },
);

test.each<FaultKind>(["reset", "first_byte_timeout", "malformed", "cut", "cancelled"])(
  "a request that may have arrived (%s) has a line of unknown cost",
  async (kind) => {
    expect(await run({ a: [fail(kind)] })).toMatchObject([{ basis: "unknown", charge_usd: null }]);
  },
);

describe("after another channel's answer, the line says that the request may have been paid twice", () => {
  test.each<[string, Step, boolean]>([
    ["no connection", fail("connect"), false],
    ["a connection that broke", fail("reset"), true],
    ["no response in time", fail("first_byte_timeout"), true],
    ["an empty body with 200", {}, true],
    ["a proxy's page with 200", HTML, false],
    ["a rate limit", refuse(429), false],
    ["a server error", refuse(500), false],
  ])("%s: %j", async (_name, step, isSuspect) => {
    const [line] = await run({ a: [step], b: [OK] });
    expect(line).toMatchObject({ basis: "exact", charge_usd: "0.000019" });
    expect(line?.["suspect"] !== undefined).toBe(isSuspect);
    // Limits count the prompt of the first one, too.
    expect(Number(line?.["limit_usd"] ?? 0) > 0.000019).toBe(isSuspect);
  });
});

describe("a refusal costs nothing", () => {
  test.each<[string, Step, string, string | null]>([
    ["alone", fail("connect"), "exact", "0"],
    ["after another refusal", refuse(500), "exact", "0"],
    ["but after a request that may have been worked on, nobody knows", fail("reset"), "unknown", null],
  ])("%s", async (_name, step, basis, charge) => {
    const [line] = await run({ a: [step], b: [refuse(400)] });
    expect(line).toMatchObject({ status: 400, basis, charge_usd: charge });
  });
});

test("limits count what an upstream counted beside a count that cannot be read", async () => {
  const usage = '{"input_tokens":"5","output_tokens":7000}';
  const body = `{"type":"message","model":"m","content":[{"type":"text","text":"Hi"}],"usage":${usage}}`;
  const [line] = await run({ a: [{ chunks: [body] }] });
  expect(line).toMatchObject({ basis: "unknown", charge_usd: null });
  // $2 for a million tokens of output, and the prompt.
  expect(Number(line?.["limit_usd"])).toBeWithin(0.014, 0.0141);
});

test("the prices are those of the config at arrival", async () => {
  scripted = await openScripted({ channels: { a: [OK] } });
  const { gateway } = scripted;
  gateway.catalog = { ...gateway.catalog, prices: new Map() };
  await scripted.run();
  await new Promise(setImmediate);
  expect(scripted.ledger()).toMatchObject([{ basis: "exact", charge_usd: "0.000019" }]);
});
