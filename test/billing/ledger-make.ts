// Writes a ledger of many right lines, to measure reports and verify with:
// bun test/billing/ledger-make.ts PATH LINES

import { closeSync, openSync, writeSync } from "node:fs";

import { deriveAmounts } from "../../src/billing/charge.ts";
import { encodeLine, GENESIS, hashLine } from "../../src/billing/ledger-line.ts";
import { draftOf } from "./ledger-samples.ts";

const PRICES = [
  { input: "3", cache_read: "0.3", cache_write_5m: "3.75", cache_write_1h: "6", output: "15" },
  { input: "1.25", cache_read: "0.125", output: "10" },
  { input: "0.8", cache_read: "0.08", cache_write_5m: "1", cache_write_1h: "1.6", output: "4" },
];
const MULTIPLIERS = ["1", "0.8", "1.25"];
const START = Date.parse("2026-01-01T00:00:00Z");

export function makeLedger(path: string, lines: number): void {
  const fd = openSync(path, "w", 0o600);
  let prev = GENESIS;
  let texts: string[] = [];
  for (let number = 0; number < lines; number += 1) {
    const kind = number % 3;
    const prices = PRICES[kind] ?? {};
    const multiplier = MULTIPLIERS[kind] ?? "1";
    const counts = { input: number % 5000, cache_read: (number * 7) % 100_000, output: (number * 13) % 3000 };
    const usage =
      kind === 1
        ? { ...counts, reasoning: number % 50 }
        : { ...counts, cache_write_5m: number % 70, cache_write_1h: 420 };
    const { official, charge } = deriveAmounts({ usage, prices, multiplier });
    const text = encodeLine(
      draftOf(`req_${(number + 2 ** 40).toString(36).padStart(16, "0")}`, {
        time: new Date(START + Math.floor((number / lines) * 300) * 86_400_000).toISOString(),
        key: `key-${number % 20}`,
        group: `group-${kind}`,
        model: `model-${kind}`,
        usage,
        raw_usage: {
          input_tokens: counts.input,
          cache_read_input_tokens: counts.cache_read,
          cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 420 },
          output_tokens: counts.output,
          service_tier: "standard",
          inference_geo: "not_available",
        },
        prices,
        multiplier,
        official_usd: official,
        charge_usd: charge,
      }),
      prev,
    );
    prev = hashLine(text);
    texts.push(text);
    if (texts.length === 1000 || number === lines - 1) {
      writeSync(fd, `${texts.join("\n")}\n`);
      texts = [];
    }
  }
  closeSync(fd);
}

if (import.meta.main) makeLedger(process.argv[2] ?? "ledger.jsonl", Number(process.argv[3] ?? 1_000_000));
