// The ledger of a running gateway: rotation, prices that arrive
// later, the config's own prices, exact multipliers, and a second writer.

import { readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect, test } from "bun:test";
import type { Finding } from "../../../src/billing/verify/finding.ts";
import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { readWholeLedger } from "../../billing/ledger/ledger-samples.ts";
import { run } from "../../cli/driving.ts";
import {
  CREDENTIAL,
  makeConfig,
  startGateway,
  startGatewayHere,
  type TestConfig,
} from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { bearer, inWorld, makeRequest } from "../world.ts";

function findFaults(path: string): Finding[] {
  const findings: Finding[] = [];
  verifyLedger(path, { partial: false, running: false }, (finding) => void findings.push(finding));
  return findings;
}

function withMultiplier(config: TestConfig, multiplier: string): TestConfig {
  const groups = Object.entries(config.groups).map(([name, group]) => [name, { ...group, multiplier }]);
  return { ...config, groups: Object.fromEntries(groups) };
}

/** An answer of the responses dialect that uses a million tokens each way. */
function answerMillion(model: string | undefined, more: object = {}): Answer {
  const usage = { input_tokens: 1_000_000, output_tokens: 1_000_000, total_tokens: 2_000_000 };
  const body = { id: "resp_1", object: "response", status: "completed", model, output: [], usage, ...more };
  const pieces = [Buffer.from(JSON.stringify(body))];
  return {
    family: "responses",
    status: 200,
    fields: [["content-type", "application/json"]],
    pieces,
    framing: "length",
  };
}

const ask = (model: string) => ({
  target: "/v1/responses",
  fields: bearer("responses"),
  body: { model, input: "Hello" },
});

test("rotation while serving keeps the chain and every line, across a restart too", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = makeConfig(upstream, { ledger: { rotate: { size: "8KiB" } } });
  const ids: (string | undefined)[] = [];
  for (const _ of ["first", "second"]) {
    const gateway = startGatewayHere({ config, folder });
    for (let batch = 0; batch < 5; batch += 1) {
      const answers = Array.from({ length: 10 }, (_, index) =>
        rawRequest(gateway.port, makeRequest("messages", index % 2 === 0)),
      );
      ids.push(...(await Promise.all(answers)).map((answer) => answer.field("x-request-id")));
    }
    await gateway.stop();
  }
  upstream.stop();
  const path = folder.join("ledger.jsonl");
  const rotated = readdirSync(folder.path).filter((name) => /^ledger-\d{4}-\d{2}(\.\d+)?\.jsonl$/.test(name));
  expect(rotated.length).toBeGreaterThan(3);
  expect(
    readWholeLedger(path)
      .lines.map(({ id }) => id)
      .sort(),
  ).toEqual(ids.map(String).sort());
  expect(findFaults(path)).toEqual([]);
});

/** Serves these answers to requests for these models, then reprices with these prices. */
async function repriceAfter(
  upstream: DemoUpstream,
  config: TestConfig,
  asked: readonly [model: string, answer: Answer][],
  prices: object,
): Promise<{ lines: Record<string, unknown>[]; usage: unknown; findings: Finding[]; reported: unknown }> {
  using folder = makeTempFolder();
  const gateway = startGatewayHere({ config, folder });
  for (const [model, answer] of asked) {
    upstream.next({ answer });
    await rawRequest(gateway.port, ask(model));
  }
  await gateway.stop();
  writeFileSync(gateway.configPath, JSON.stringify({ ...config, prices }), { mode: 0o600 });
  const place = { folder: folder.path };
  const since = ["--since", "2026-01-01", "--config", gateway.configPath];
  const reported = await run(place, "ledger", "reprice", ...since, "--json");
  const usage = await run(place, "usage", ...since, "--by", "group", "--json");
  const path = folder.join("ledger.jsonl");
  return {
    lines: readWholeLedger(path).lines,
    usage: JSON.parse(usage.stdout),
    findings: findFaults(path),
    reported: JSON.parse(reported.stdout),
  };
}

test("a line has the fields of docs/contract.md in its order", async () => {
  await inWorld(async (world) => {
    const { lines } = await world.trace(makeRequest("messages"));
    expect(Object.keys(lines[0] ?? {}).join(" ")).toBe(
      "v id time key group platform channel endpoint model upstream_model stream status outcome basis usage raw_usage " +
        "prices price_source tier official_usd multiplier charge_usd first_byte_ms duration_ms attempts client " +
        "upstream_request_id prev",
    );
  });
});

test("reprice adds missing amounts, with the tier of the answer and the requested name", async () => {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = withMultiplier(makeConfig(upstream), "0.5");
  config.channels["responses"] = { ...config.channels["responses"], aliases: { mine: "served-here" } };
  const { lines, findings, reported, usage } = await repriceAfter(
    upstream,
    config,
    [
      ["new-model", answerMillion("new-model")],
      // The config's price has no flex rate, and the standard rate does not apply.
      ["new-model", answerMillion("new-model", { service_tier: "flex" })],
      // The answer's own name has no price, nor has the client's.
      ["mine", answerMillion("some-weights.gguf")],
      ["other", answerMillion("other")],
    ],
    { "new-model": { input: "2", output: "8.000001" }, "served-here": { input: "0.1", output: "0.3" } },
  );
  upstream.stop();
  const money = lines.map(({ model, corrects, basis, tier, tariff, official_usd, charge_usd }) => {
    return { model, corrects, basis, tier, tariff, official_usd, charge_usd };
  });
  const unpriced = {
    corrects: undefined,
    basis: "unpriced",
    tier: null,
    tariff: {},
    official_usd: null,
    charge_usd: null,
  };
  const corrected = { basis: undefined, tier: "standard", tariff: undefined };
  const [first, , third] = lines.map(({ id }) => id);
  expect(money).toEqual([
    { ...unpriced, model: "new-model" },
    { ...unpriced, model: "new-model", tariff: { service_tier: "flex" } },
    { ...unpriced, model: "mine" },
    { ...unpriced, model: "other" },
    { ...corrected, model: "new-model", corrects: first, official_usd: "10.000001", charge_usd: "5.0000005" },
    { ...corrected, model: "mine", corrects: third, official_usd: "0.4", charge_usd: "0.2" },
  ]);
  expect(reported).toMatchObject({ dry_run: false, corrections: 2 });
  expect(usage).toMatchObject({ total: { requests: 4, charge_usd: "5.2000005", unpriced: 2 } });
  expect(findings).toEqual([]);
});

test("a link to a ledger is resolved", async () => {
  using folder = makeTempFolder();
  using other = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  symlinkSync(folder.join("ledger.jsonl"), other.join("again.jsonl"));
  symlinkSync("again.jsonl", other.join("link.jsonl"));
  const configOf = (path: string) => makeConfig(upstream, { ledger: { path } });
  const first = await startGateway({ config: configOf(folder.join("ledger.jsonl")), folder });
  const linked = { config: configOf(other.join("link.jsonl")), folder: other };
  const refused = await startGateway(linked).then(() => "it started", String);
  expect(refused).toContain(`is being written by process ${first.pid} since`);
  await first.stop();
  const next = await startGateway(linked);
  await next.stop();
  upstream.stop();
  expect(readdirSync(other.path).filter((name) => name.includes("jsonl."))).toEqual([]);
});
