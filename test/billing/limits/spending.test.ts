// What `keys list` and `keys show` say a key has spent: each amount of the period that it belongs to.

import { expect, test } from "bun:test";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { readSpending } from "../../../src/billing/limits/spending.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { draftOf, intentOf, newLedgerPath, optionsFor } from "../ledger/ledger-samples.ts";

const NOON = Date.parse("2026-11-20T12:00:00Z");

test("spent and estimated amounts are those of the limit's own period", async () => {
  const path = newLedgerPath();
  const ledger = openLedger(optionsFor(path, { now: () => NOON }));
  const rows = [
    ["2026-10-31T12:00:00.000Z", "1", "0.1"],
    ["2026-11-19T12:00:00.000Z", "2", "0.2"],
    ["2026-11-20T11:00:00.000Z", "4", "0.4"],
  ] as const;
  let count = 0;
  for (const [time, charge_usd, limit_usd] of rows) {
    for (const amounts of [{ charge_usd }, { charge_usd: null, official_usd: null, limit_usd }]) {
      const id = `req_${(count += 1)}`;
      await ledger.open(intentOf(id, { time, key: "k" }));
      ledger.append(draftOf(id, { time, key: "k", ...amounts }));
    }
  }
  await ledger.close();
  const limits = { usd_per_day: "50", usd_per_month: "60", usd_total: "70" };
  const config = {
    timezone: "UTC",
    channels: { a: { platform: "messages", base_url: "http://127.0.0.1:9", credential: "xxxx" } },
    groups: { g: { platform: "messages", channels: ["a"] } },
    keys: [{ name: "k", group: "g", secret: "sk-test", limits }],
  };
  const { catalog } = checkConfigText(JSON.stringify(config), "/nonexistent/gateway.yaml", {});
  const use = readSpending({ ...catalog, ledger: { ...catalog.ledger, path } }, NOON)("k");
  expect(use).toMatchObject({ spentToday: "4", spentTotal: "7" });
  expect(use.limits.map(({ limit, spent, estimated }) => [limit, spent, estimated])).toEqual([
    ["usd_per_day", "4", "0.4"],
    ["usd_per_month", "6", "0.6"],
    ["usd_total", "7", "0.7"],
  ]);
});
