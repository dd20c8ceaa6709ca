// The listings on real terminals of 60 and 120 columns: no row wraps, no digit is cut, and the names that tell
// rows apart stay whole.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS } from "../../../src/billing/ledger/line.ts";
import { draftOf } from "../../billing/ledger/ledger-samples.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { watch } from "../../harness/terminal/watching.ts";

const CONFIG = `channels:
  anthropic-main-of-the-team: { platform: messages, base_url: "http://127.0.0.1:9", credential: x }
  anthropic-main-of-the-spare: { platform: messages, base_url: "http://127.0.0.1:9", credential: x }
groups:
  claude:
    platform: messages
    multiplier: "0.85"
    description: Anthropic at a good rate for all who work here, and for their machines
    channels: [anthropic-main-of-the-team, anthropic-main-of-the-spare]
  claude-max: { platform: messages, multiplier: "0.2", channels: [anthropic-main-of-the-team], exclusive: true }
plans: { gold: { groups: [claude-max] }, silver: { groups: [claude-max], until: 2031-01-31 } }
keys:
  - { name: laptop, group: claude, secret: sk-laptop, limits: { usd_per_day: 5, usd_total: 5000 } }
  - { name: continuous-integration, group: claude, secret: sk-ci, expires: 2031-01-31, created: 2026-01-02T03:04:05Z }
`;

const HOUR_MS = 3_600_000;

function writeLedger(path: string): void {
  const lines = Array.from({ length: 120 }, (_, index) => {
    // Some days have no request.
    const time = new Date(Date.now() - (index + (index % 7) * 24) * HOUR_MS).toISOString();
    const key = index % 2 === 0 ? "laptop" : "continuous-integration";
    const channel = index % 3 === 0 ? "anthropic-main-of-the-team" : "anthropic-main-of-the-spare";
    const usage = { input: 123_456, cache_read: 11_000_000 + index, output: 35_000 };
    // Whatever the hour is, what was spent today has at most two digits.
    const usd = index < 24 ? 1 : index * 10;
    const amounts = { official_usd: `${index}.123456789`, charge_usd: `${usd}.987654321` };
    return encodeLine(draftOf(`req_0199${index}`, { time, key, channel, usage, ...amounts }), GENESIS);
  });
  writeFileSync(path, `${lines.join("\n")}\n`);
}

let folder: TempFolder;
beforeAll(() => {
  folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
  writeLedger(folder.join("ledger.jsonl"));
});
afterAll(() => folder.remove());

const LISTINGS: ReadonlyArray<readonly [args: readonly string[], names: readonly string[]]> = [
  [
    ["keys", "list"],
    ["laptop", "continuous-integration", "$5 per day", "TODAY $"],
  ],
  [["keys", "show", "laptop"], ["laptop"]],
  [["groups", "list", "--all"], ["claude-max"]],
  [["plans", "list"], ["silver"]],
  [["channels"], ["anthropic-main-of-the-team", "anthropic-main-of-the-spare"]],
  [["usage"], ["total"]],
  [
    ["usage", "--by", "key,model"],
    ["continuous-integration", "claude-sonnet-4-5"],
  ],
  [["usage", "30d"], ["total"]],
  [["prices", "check"], []],
];

describe.each([60, 120])("at %p columns", (columns) => {
  test.each(LISTINGS.map(([args, names]) => [args.join(" "), args, names] as const))(
    "%s fits",
    async (_, args, names) => {
      const shown = watch({ folder: folder.path, columns, rows: 24 }, ...args);
      await shown.status;
      const rows = shown.screen.history();
      while (rows.at(-1) === "") rows.pop();
      const text = rows.join("\n");
      const { stdout, stderr } = await run({ folder: folder.path }, ...args);
      const table = stdout.trimEnd().split("\n");
      // Notes below a table are sentences, which may wrap.
      const notes = stderr === "" ? 0 : Math.max(1, rows.length - table.length);
      // On a terminal, `tail` has a line of titles.
      const titles = args.includes("tail") ? 1 : 0;
      expect(rows.length - notes, text).toBe(stdout === "" ? 0 : table.length + titles);
      expect(text).not.toMatch(/\d…/);
      for (const name of names) expect(text).toContain(name);
    },
    60_000,
  );

  test.each([
    ["ledger show", ["ledger", "show", "last"]],
    ["an error", ["usage", "--by", "nothing"]],
    ["help", ["--help"]],
    ["run --list", ["run", "--list"]],
  ])("%s breaks between words, and every word is there", async (_, args) => {
    const shown = watch({ folder: folder.path, columns, rows: 24, env: { PATH: "/nonexistent" } }, ...args);
    await shown.status;
    const { stdout, stderr } = await run({ folder: folder.path, env: { PATH: "/nonexistent" } }, ...args);
    const words = new Set(`${stdout}${stderr}`.split(/\s+/).filter((word) => word.length <= columns - 6));
    const seen = shown.screen.history().join("\n").split(/\s+/);
    // Of a table, columns may be left out.
    const missing = [...words].filter((word) => !seen.includes(word));
    expect(args[0] === "run" ? missing.filter((word) => /npm|@|claude/.test(word)) : missing).toEqual([]);
  });
});

test("amounts in a column of keys have the same number of decimals, and times are for people", async () => {
  const { stdout } = await run({ folder: folder.path, env: { TZ: "Asia/Tokyo" } }, "keys", "list");
  const [, laptop = "", total = "", ci = ""] = stdout.split("\n");
  expect(laptop).toMatch(/ never +(just now|\d+ min ago)( +\d+\.\d{6}){3}  \$5 per day +in (\d+|less) /);
  expect(total).toMatch(/^ +\d+\.\d{6}  \$5000 total +never$/);
  // 2031-01-31 at 0:00 UTC and 2026-01-02T03:04:05Z, in Tokyo.
  expect(ci).toMatch(/ 2026-01-02 +2031-01-31 +7 h ago +\d+\.\d{6} +\d+\.\d{6}$/);
});
