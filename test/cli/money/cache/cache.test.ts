// Tests `gateway cache`, which shows missed tokens by session and by cause.

import { expect, test } from "bun:test";
import type { LineDraft } from "../../../../src/billing/ledger/line.ts";
import { run, writeLedger } from "../ledger/ledger-runs.ts";

const CLAUDE = { tool: "claude-code", session: "s-1" };
const TIME = { because: "system_changed", at: 1, detail: "digits" };

let count = 0;
function line(
  cache: LineDraft["cache"],
  client: LineDraft["client"] = CLAUDE,
  more: Partial<LineDraft> = {},
) {
  count += 1;
  return {
    id: `r${count}`,
    time: `2026-11-20T10:00:${String(count).padStart(2, "0")}.000Z`,
    client,
    cache,
    ...more,
  };
}

const path = writeLedger([
  line(undefined),
  line({ missed: 110_022, usd: "0.41", because: "tools_changed", at: 3 }),
  line({ missed: 5000, usd: "0.01", ...TIME }),
  line({ missed: 5000, usd: "0.01", ...TIME }),
  line({ missed: 5000, usd: "0.010000000001", ...TIME }),
  line({ missed: 900, usd: null, because: "messages_changed", at: 7 }, { tool: "codex", session: "s-2" }),
  line({ missed: 800, usd: "0.002", because: "messages_changed", at: 9 }, { tool: "codex", session: "s-2" }),
  line(undefined, { tool: "codex", session: "s-2" }, { time: "2026-11-19T10:00:00.000Z" }),
]);

test("`cache` shows a row for each session and model, and one for each cause", async () => {
  const { status, stdout, stderr } = await run("cache", "--ledger", path);
  expect(status).toBe(0);
  expect(stdout.trimEnd().split("\n")).toEqual([
    "SESSION  LABEL  TOOL         MODEL              MISSES   MISSED    COST $  MOSTLY BECAUSE",
    "s-1             claude-code  claude-sonnet-4-5       4  125,022  0.440000  tool 3 changed",
    "s-2             codex        claude-sonnet-4-5       2    1,700  0.002000  earlier messages changed",
    "total                                                6  126,722  0.442000",
    "",
    "CAUSE                              MISSES   MISSED    COST $",
    "tool 3 changed                          1  110,022  0.410000",
    "a time or number in system part 1       3   15,000  0.030000",
    "earlier messages changed                2    1,700  0.002000",
  ]);
  expect(stderr).toBe(
    "Without a price: 900 missed tokens.\n" +
      "Again and again: a time or number in system part 1. " +
      "What helps: move the time or counter out of the system prompt, into the last message.\n",
  );
});

test("`cache --json` prints one document with exact amounts, and filters by sender and day", async () => {
  const all: Record<string, unknown> = JSON.parse((await run("cache", "--ledger", path, "--json")).stdout);
  expect(all).toMatchObject({
    requests: 8,
    unreadable: 0,
    total: { misses: 6, missed_tokens: 126_722, usd: "0.442000000001", unpriced_tokens: 900 },
    rows: [
      { session: "s-1", tool: "claude-code", misses: 4, causes: [{ because: "tools_changed", at: 3 }, TIME] },
      { session: "s-2", misses: 2, causes: [{ because: "messages_changed", misses: 2 }] },
    ],
    persistent: [{ session: "s-1", ...TIME, misses: 3, help: expect.stringContaining("last message") }],
  });
  const { stdout } = await run("cache", "2026-11-20", "--ledger", path, "--session", "s-2", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ only: { session: "s-2" }, requests: 2, total: { misses: 2 } });
});

test("`cache` says so if nothing was missed in a period", async () => {
  const { stdout, stderr } = await run("cache", "2026-11-19", "--ledger", path);
  expect(stdout).toBe("");
  expect(stderr).toBe("Nothing was missed in 1 request.\n");
});

test("`cache` tells sessions of one folder apart, and says how many requests of version 0.1.0 were not analysed", async () => {
  const of = (session: string) => ({ tool: "claude-code", session, label: "web-shop" });
  const ledger = writeLedger([
    line({ missed: 10, usd: "0.2", because: "upstream_lost" }, of("first-session")),
    line({ missed: 10, usd: "0.1", because: "upstream_lost" }, of("second-session")),
    { id: "old", time: "2026-11-20T10:00:00.000Z" },
  ]);
  const { stdout, stderr } = await run("cache", "--ledger", ledger);
  expect(
    stdout
      .split("\n")
      .slice(1, 3)
      .map((row) => row.split(/ +/).slice(0, 2)),
  ).toEqual([
    ["first-se", "web-shop"],
    ["second-s", "web-shop"],
  ]);
  expect(stderr).toContain("Not analysed: 1 request of version 0.1.0");
  const json: unknown = JSON.parse((await run("cache", "--ledger", ledger, "--json")).stdout);
  expect(json).toMatchObject({ requests: 3, unanalysed: 1 });
  const old = writeLedger([{ id: "old", time: "2026-11-20T10:00:00.000Z" }]);
  const none = await run("cache", "--ledger", old);
  expect(none.stderr).toBe("Nothing was missed in 0 requests.\nNot analysed: 1 request of version 0.1.0.\n");
});

/** A ledger with a session of a tool. The session's cache lapsed in its only pause. */
function writePaused(tool: string): string {
  const line = {
    client: { ...CLAUDE, tool },
    model: "claude-sonnet-4-5",
    usage: { cache_write_5m: 100_000 },
    official_usd: "0.375",
    charge_usd: "0.375",
  };
  const cache = { missed: 100_000, usd: "0.345", because: "lifetime_passed" };
  return writeLedger([
    { id: "p1", time: "2026-11-20T10:00:00.000Z", ...line },
    { id: "p2", time: "2026-11-20T10:30:00.000Z", ...line, cache },
  ]);
}

test("`cache` and `sessions show` say what a cache of another lifetime would have saved", async () => {
  const paused = writePaused("claude-code");
  const said = "claude-code: a cache of 1 hour would have saved $0.120000 of $0.750000.";
  expect((await run("cache", "--ledger", paused)).stderr).toContain(said);
  const shown = await run("sessions", "show", "s-1", "--ledger", paused);
  expect(shown.stderr).toContain("Set ENABLE_PROMPT_CACHING_1H=1.");
});

test.each([
  ["claude-code", "Set ENABLE_PROMPT_CACHING_1H=1."],
  ["pi", "Set PI_CACHE_RETENTION=long."],
  ["opencode", "opencode has no setting for it."],
  ["a-script", 'Set `"ttl": "1h"` in its `cache_control`.'],
])("`cache` names the setting that makes %s cache for an hour, if it has one", async (tool, help) => {
  expect((await run("cache", "--ledger", writePaused(tool))).stderr).toContain(help);
});
