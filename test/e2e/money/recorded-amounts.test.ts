// The upstream's answers name their own price, and the key's requests are recorded. Each request must have a
// recording, and its line must have the amount with all its digits.

import { expect, onTestFinished, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";

import type { Answer } from "../../harness/model/answers/answer.ts";
import { CREDENTIAL, startGateway } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { DIALECTS, makeRequest } from "../world.ts";

const SECRET = "sk-recorded-amounts";
const DIGITS = "0.00012345678901234567890";
const AMOUNTS = [`"cost":${DIGITS}`, `"cost":{"total_cost":${DIGITS}}`, '"cost_in_usd_ticks":1234567'];

/** Adds an amount to each usage of the answer. */
function addAmount(answer: Answer, amount: string): Answer {
  const pieces = answer.pieces.map((piece) =>
    Buffer.from(
      Buffer.from(piece)
        .toString()
        .replace(/"(usage|usageMetadata)":\{/g, (begin) => `${begin}${amount},`),
    ),
  );
  return { ...answer, pieces };
}

test.each([...DIALECTS])(
  "each kind of answer that names its own price has a recording (%s, streamed and not)",
  async (client) => {
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    const platform = client === "chat" ? "responses" : client;
    const gateway = await startGateway({
      config: {
        channels: {
          native: { platform, base_url: upstream.url, credential: CREDENTIAL },
          chat: { platform: "chat", base_url: upstream.url, credential: CREDENTIAL },
        },
        groups: {
          native: { platform, multiplier: "1", channels: ["native"] },
          chat: { platform, multiplier: "1", channels: ["chat"], convert: true },
        },
        keys: ["native", "chat"].map((group) => ({
          name: group,
          group,
          secret: `${SECRET}-${group}`,
          record: "rec",
        })),
      },
    });
    onTestFinished(() => gateway.stop());
    onTestFinished(() => upstream.stop());
    let asked = 0;
    for (const group of ["native", "chat"]) {
      for (const amount of AMOUNTS) {
        for (const stream of [false, true]) {
          upstream.next({ alter: (answer) => addAmount(answer, amount) });
          const fields = { authorization: `Bearer ${SECRET}-${group}` };
          const { status } = await rawRequest(gateway.port, { ...makeRequest(client, stream), fields });
          expect(status).toBe(200);
          asked += 1;
        }
      }
    }
    await gateway.recorded(asked);
    gateway.signal("SIGTERM");
    expect(await gateway.exited).toBe(0);
    const named = gateway.ledger().map((line) => line["provider_usd"]);
    const expected = AMOUNTS.flatMap((amount) => {
      const usd = amount.includes("ticks") ? "0.0001234567" : DIGITS.replace(/0+$/, "");
      return [usd, usd];
    });
    expect(named).toEqual([...expected, ...expected]);
    const ledger = readFileSync(gateway.folder.join("ledger.jsonl"), "utf8");
    expect(ledger).toContain(AMOUNTS[0]!);
    const files = readdirSync(gateway.folder.join("ledger.jsonl.recordings", "rec"));
    expect(files.filter((name) => name.endsWith(".exchange"))).toHaveLength(asked);
    expect(gateway.stdout()).not.toContain("failed inside");
    expect(gateway.stdout()).not.toContain("not written");
  },
);
