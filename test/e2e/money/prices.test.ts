// Tests prices in a running gateway: a kind without a price, an update of the book, and names in upper or lower case.

import { findProvider } from "@pydantic/genai-prices";
import { expect, onTestFinished, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { KNOWN_PROVIDERS } from "../../../src/billing/prices/sellers.ts";
import { listProblems } from "../../billing/ledger/ledger-samples.ts";
import { type Answer, answerJson } from "../../harness/model/answers/answer.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run } from "../../cli/driving.ts";
import { CREDENTIAL, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { bearer, openOwnWorld } from "../world.ts";

function answer(model: string, more: object = {}): Answer {
  const usage = { input_tokens: 1_000_000, output_tokens: 0, total_tokens: 1_000_000 };
  const body = { id: "resp_1", object: "response", status: "completed", model, output: [], usage, ...more };
  return answerJson("responses", body);
}

const ask = (model: string) => ({
  target: "/v1/responses",
  fields: bearer("responses"),
  body: { model, input: "Hello" },
});

/** The shell runs at the provider, and no answer says for how long. */
const shell = {
  id: "sh_1",
  type: "shell_call",
  environment: { type: "container_reference", container_id: "cntr_1" },
};

test("a limit in USD counts the priced usage of an answer, even if other usage of the answer has no price", async () => {
  const world = openOwnWorld((url) => ({
    keys: makeConfig({ url }).keys.map((key) => ({ ...key, limits: { usd_per_day: "1" } })),
  }));
  world.upstream.next({ answer: answer("gpt-5", { output: [shell] }) });
  const { lines } = await world.trace(ask("gpt-5"));
  expect(lines[0]).toMatchObject({ charge_usd: null, at_least_usd: "1.25", limit_usd: "1.25" });
  const refused = await world.trace(ask("gpt-5"));
  expect(refused.lines).toEqual([]);
});

test("a running gateway takes a newer price book and names it in its lines, and the ledger verifies without either book", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const gateway = await startGateway({ config: makeConfig(upstream), folder });
  const call = async (): Promise<void> => {
    upstream.next({ answer: answer("gpt-5") });
    const response = await fetch(`${gateway.url}/v1/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${keyOf("responses")}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "gpt-5", input: "Hello" }),
    });
    await response.text();
  };
  await call();
  await gateway.recorded(1);
  const published: unknown = JSON.parse(
    JSON.stringify(KNOWN_PROVIDERS.flatMap((id) => findProvider({ providerId: id }) ?? [])).replaceAll(
      '"input_mtok":1.25,"cache_read_mtok":0.125,"output_mtok":10',
      '"input_mtok":1.5,"cache_read_mtok":0.125,"output_mtok":10',
    ),
  );
  writeFileSync(folder.join("data.json"), JSON.stringify(published));
  const args = ["prices", "update", "--from", "data.json", "--yes"];
  expect((await run({ folder: folder.path }, ...args)).status).toBe(0);
  while (!gateway.stderr().includes("prices: book")) await Bun.sleep(20);
  await call();
  await gateway.recorded(2);
  await gateway.stop();
  upstream.stop();
  const [first, second] = gateway.ledger();
  expect([first?.["official_usd"], second?.["official_usd"]]).toEqual(["1.25", "1.5"]);
  expect(String(second?.["price_source"])).toMatch(/^book \d{4}-\d\d-\d\d#[0-9a-f]{8} openai \(by name\)$/);
  expect(first?.["price_source"]).not.toBe(second?.["price_source"]);
  expect(listProblems(folder.join("ledger.jsonl"))).toEqual([]);
});

test("P133: a model has its price whether the book, a config or a client writes its name in upper or lower case", async () => {
  const upstream = startDemoUpstream();
  const { url } = upstream;
  const channel = (more: object) => ({
    platform: "messages",
    base_url: url,
    credential: CREDENTIAL,
    ...more,
  });
  const names = ["known", "own"] as const;
  const gateway = await startGateway({
    config: {
      channels: {
        known: channel({ price_provider: "minimax", models: ["MiniMax-M3"] }),
        own: channel({ models: ["Own-Model"] }),
      },
      groups: Object.fromEntries(
        names.map((name) => [name, { platform: "messages", multiplier: "1", channels: [name] }]),
      ),
      keys: names.map((name) => ({
        name,
        group: name,
        secret: `sk-test-case-${name}`,
        limits: { usd_per_day: 5 },
      })),
      prices: { "own-model": { input: 1, output: 1 } },
    },
  });
  onTestFinished(() => gateway.stop());
  onTestFinished(() => upstream.stop());
  for (const [name, model] of [
    ["known", "MiniMax-M3"],
    ["own", "Own-Model"],
  ] as const) {
    const answered = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": `sk-test-case-${name}` },
      body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: "user", content: "Hello" }] }),
    });
    expect([name, answered.status]).toEqual([name, 200]);
    await answered.text();
  }
  await gateway.recorded(2);
  await fetch(`${gateway.url}/healthz`);
  expect(gateway.ledger().map(({ basis }) => basis)).toEqual(["exact", "exact"]);
});
