// The amount that a seller puts into its answer, from the answer to the line, and in everything that reads the line.

import { expect, test } from "bun:test";

import { verifyLedger } from "../../../src/billing/verify/verify.ts";
import type { Answer } from "../../harness/model/answers/answer.ts";
import { makeConfig } from "../../harness/gateway.ts";
import { run } from "../../cli/driving.ts";
import { inWorld, makeRequest, onChannels, type World } from "../world.ts";

const END = { object: "response", status: "completed", model: "grok-4.3", output: [] };

function stream(usage: object): Answer {
  const end = {
    type: "response.completed",
    response: { ...END, usage: { input_tokens: 1000, output_tokens: 100, total_tokens: 1100, ...usage } },
  };
  return {
    family: "responses",
    status: 200,
    fields: [["content-type", "text/event-stream"]],
    pieces: [Buffer.from(`event: response.completed\ndata: ${JSON.stringify(end)}\n\n`)],
    framing: "length",
  };
}

const BELIEVED = onChannels({ bill: "reported" });

async function lineOf(world: World, usage: object) {
  world.upstream.next({ answer: stream(usage) });
  const { lines } = await world.trace(makeRequest("responses", true, { model: "grok-4.3" }));
  return lines[0]!;
}

test("the seller's own amount is in the line, and one that differs makes it suspect with both", async () => {
  await inWorld(async (world) => {
    const equal = await lineOf(world, { cost_in_usd_ticks: 15_000_000 });
    expect(equal).toMatchObject({ official_usd: "0.0015", provider_usd: "0.0015" });
    expect(equal).not.toHaveProperty("suspect");
    expect(await lineOf(world, { cost_in_usd_ticks: 65_000_000 })).toMatchObject({
      basis: "exact",
      official_usd: "0.0015",
      provider_usd: "0.0065",
      suspect: "the seller says that it cost $0.0065, and the price book makes it $0.0015",
    });
    expect(await lineOf(world, {})).not.toHaveProperty("provider_usd");
  });
});

test("a channel with `bill: reported` charges the seller's amount, and everything that reads the line follows", async () => {
  await inWorld(
    async (world) => {
      expect(await lineOf(world, { cost: 0.0065 })).toMatchObject({
        basis: "exact",
        usage: { input: 1000, output: 100 },
        prices: null,
        price_source: "reported",
        tier: null,
        official_usd: "0.0065",
        multiplier: "0.5",
        charge_usd: "0.00325",
        provider_usd: "0.0065",
      });
      // Without an amount, the book counts.
      expect(await lineOf(world, {})).toMatchObject({
        official_usd: "0.0015",
        suspect: expect.stringContaining("named no amount"),
      });
      const { folder } = world.gateway;
      const path = folder.join("ledger.jsonl");
      const verdict = verifyLedger(path, { partial: false, running: true }, (finding) =>
        expect(finding).toBeNull(),
      );
      expect(verdict.notes).toContainEqual(
        "1 line has the amount that the seller named (price_source: reported). Nothing derives such an amount: only its multiplication was checked.",
      );
      const command = async (...args: string[]): Promise<string> =>
        (await run({ folder: folder.path }, ...args, "--ledger", path)).stdout;
      const id = String(world.gateway.ledger()[0]!["id"]);
      const shown = await command("ledger", "show", id);
      for (const text of ["the seller's own amount = $0.0065", "charge = $0.0065 × 0.5"])
        expect(shown).toContain(text);
      expect(shown).not.toContain("no price");
      expect(JSON.parse(await command("usage", "--json"))).toMatchObject({ total: { charge_usd: "0.004" } });
      const dear = JSON.parse(await command("usage", "--as", "claude-opus-4-8", "--json"));
      expect(dear).toMatchObject({ total: { compared: 2, official_usd: "0.008" } });
      expect(JSON.parse(await command("usage", "--without-cache", "--json"))).toMatchObject({
        total: { compared: 1, official_usd: "0.0015" },
        not_compared: [{ because: "its seller named the amount, and no price" }],
      });
    },
    (url) => {
      const { groups } = makeConfig({ url });
      const halved = Object.entries(groups).map(([name, group]) => [name, { ...group, multiplier: "0.5" }]);
      return { ...BELIEVED(url), groups: Object.fromEntries(halved) };
    },
  );
});

test("limits in USD count the seller's amount, and a strict one refuses what only the seller bounds", async () => {
  const limited = (limits: object) => (url: string) => ({
    ...BELIEVED(url),
    keys: makeConfig({ url }).keys.map((key) => ({ ...key, limits })),
  });
  await inWorld(
    async (world) => {
      // The seller's amount covers output that it did not count.
      const line = await lineOf(world, { cost: 1.5, output_tokens: null, total_tokens: null });
      expect(line).toMatchObject({ charge_usd: "1.5", suspect: expect.stringContaining("output_tokens") });
      expect(line).not.toHaveProperty("limit_usd");
      const refused = await world.ask(makeRequest("responses", true, { model: "grok-4.3" }));
      expect([refused.status, refused.text]).toEqual([429, expect.stringContaining("has spent $1.5")]);
    },
    limited({ usd_per_day: "1" }),
  );
  await inWorld(
    async (world) => {
      const capped = makeRequest("responses", true, { model: "grok-4.3", max_output_tokens: 5 });
      const refused = await world.ask(capped);
      expect([refused.status, refused.text]).toEqual([403, expect.stringContaining("bill: reported")]);
    },
    limited({ usd_per_day: "1", strict: true }),
  );
});
