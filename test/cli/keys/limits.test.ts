// Tests the commands that set limits, and those that show how much of a limit is spent.

import { describe, expect, test } from "bun:test";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { bill, optionsFor } from "../../billing/ledger/ledger-samples.ts";
import { passMidnight } from "../../harness/day.ts";
import { useFolder } from "../../harness/temp.ts";
import { type Outcome, run } from "../driving.ts";

const CONFIG = `# mine
channels: { a: { platform: messages, base_url: https://a.example, credential: x } }
groups:
  claude: { platform: messages, channels: [a] } # the group
keys:
  - { name: laptop, group: claude, secret: sk-laptop } # by hand
  - name: ci
    group: claude
    secret: sk-ci # old
    limits:
      usd_per_day: 5 # a day
      usd_total: "100"
`;

const folder = useFolder(CONFIG);
const { text } = folder;

const gateway = (...args: string[]): Promise<Outcome> => run({ folder: folder.path }, ...args);
const limitsOf = (name: string) => folder.catalog().keys.get(name)?.limits;

describe("`keys add --limit` sets limits of the new key", () => {
  test("`keys add --limit` sets limits of the new key", async () => {
    const flags = ["--group", "claude", "--limit", "usd_per_day=0.50", "--limit", "requests_per_minute=60"];
    expect((await gateway("keys", "add", "--name", "g", ...flags)).status).toBe(0);
    expect(limitsOf("g")).toMatchObject({ usdPerDay: "0.5", requestsPerMinute: 60, usdTotal: null });
    expect(text()).toStartWith(CONFIG);
  });

  test.each([
    ["usd_per_dya=5", 'did you mean "usd_per_day"?'],
    ["usd_per_day", "usd_per_day: expected a plain decimal number"],
    ["usd_per_day=-5", "usd_per_day: expected a plain decimal number"],
    ["requests_per_minute=0", "requests_per_minute: must be from 1"],
    ["unpriced", "unpriced: "],
  ])("`keys add --limit` refuses %s", async (limit, sentence) => {
    const flags = ["--name", "x", "--group", "claude", "--limit", limit];
    const { status, stdout, stderr } = await gateway("keys", "add", ...flags);
    expect({ status, stdout, config: text() }).toEqual({ status: 2, stdout: "", config: CONFIG });
    expect(stderr).toContain(sentence);
  });
});

describe("`keys limit` and `groups limit` change limits", () => {
  test("P18: `keys limit` and `groups limit` set and remove limits in USD, and the setting `unpriced`", async () => {
    const { stderr } = await gateway("keys", "limit", "laptop", "usd_per_day=5", "unpriced=allow");
    expect(stderr).toBe('The key "laptop" is limited to usd_per_day 5, unpriced allow.\n');
    expect(limitsOf("laptop")).toMatchObject({ usdPerDay: "5", allowUnpriced: true });
    expect(text()).toContain("limits: { usd_per_day: 5, unpriced: allow }");
    await gateway("keys", "limit", "laptop", "unpriced=none");
    expect(limitsOf("laptop")).toMatchObject({ usdPerDay: "5", allowUnpriced: false });
    expect(text()).toContain("limits: { usd_per_day: 5 }");
    await gateway("keys", "limit", "laptop", "usd_per_day=none");
    expect(text()).toBe(CONFIG);
    await gateway("groups", "limit", "claude", "usd_total=7", "unpriced=allow");
    expect(text()).toContain("limits: { usd_total: 7, unpriced: allow } } # the group");
  });

  test("`keys limit` changes or removes one limit, and removes `limits` when none is left", async () => {
    await gateway("keys", "limit", "ci", "usd_per_day=6", "usd_total=none", "concurrent_requests=3");
    expect(limitsOf("ci")).toMatchObject({ usdPerDay: "6", usdTotal: null, concurrentRequests: 3 });
    expect(text()).toContain("usd_per_day: 6 # a day");
    const all = await gateway("keys", "limit", "ci", "usd_per_day=none", "concurrent_requests=none");
    expect(all.stderr).toBe('The key "ci" has no limits.\n');
    expect(text()).not.toContain("limits");
  });

  test("`keys limit` and `groups limit` refuse an unknown key or group, and suggest the nearest name", async () => {
    expect((await gateway("keys", "limit", "laptpo", "usd_total=1")).stderr).toContain(
      'did you mean "laptop"?',
    );
    expect((await gateway("groups", "limit", "claud", "usd_total=1")).stderr).toContain(
      'did you mean "claude"?',
    );
    expect(text()).toBe(CONFIG);
  });
});

test("`keys list` and `keys show` give the estimate for requests of unknown cost, and `keys list` has all limits", async () => {
  const ledger = openLedger(optionsFor(folder.join("ledger.jsonl")));
  const entry = { key: "ci", group: "claude", time: new Date().toISOString() };
  await bill(ledger, "req_1", { ...entry, charge_usd: null, official_usd: null, limit_usd: "1.5" });
  await ledger.close();
  await gateway("keys", "limit", "ci", "usd_per_session=2", "requests_per_minute_per_session=9");
  expect((await gateway("keys", "show", "ci")).stdout).toContain(
    "$0 + $1.5 estimated of $100 total, never resets",
  );
  const { stdout } = await gateway("keys", "list");
  expect(stdout).toContain("$0 + $1.5 estimated of $100 total, never resets");
  expect(stdout).toContain("$2 per session, 9 requests per minute per session");
  const [, ci] = JSON.parse((await gateway("keys", "list", "--json")).stdout);
  expect(ci.limits_used[1]).toMatchObject({ limit: "usd_total", spent_usd: "0", estimated_usd: "1.5" });
});

test("`keys list` and `keys show` say how much of each limit is spent, and when it resets", async () => {
  await passMidnight();
  const ledger = openLedger(optionsFor(folder.join("ledger.jsonl")));
  const now = new Date();
  const entry = { key: "ci", group: "claude", time: now.toISOString() };
  await bill(ledger, "req_1", { ...entry, charge_usd: "1.25" });
  await ledger.close();
  const tomorrow = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
  const day = tomorrow.toISOString().slice(0, 10);
  const shown = (await gateway("keys", "show", "ci")).stdout;
  expect(shown).toMatch(/\$1\.25 of \$5 per day, resets in (\d+ (h|min)|less than 1 min)\n/);
  expect(shown).toContain("$1.25 of $100 total, never resets");
  expect((await gateway("keys", "list")).stdout).toMatch(
    /\$1\.25 of \$5 per day, resets in .*, \$1\.25 of \$100 total, never resets/,
  );
  const [, ci] = JSON.parse((await gateway("keys", "list", "--json")).stdout);
  expect(ci.limits_used).toEqual([
    { limit: "usd_per_day", usd: "5", spent_usd: "1.25", resets: `${day}T00:00:00Z` },
    { limit: "usd_total", usd: "100", spent_usd: "1.25", resets: null },
  ]);
});
