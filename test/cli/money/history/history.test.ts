import { describe, expect, test } from "bun:test";
import { CLAUDE, claudeRow, CODEX, codexRows, makeHome } from "../../../billing/history/made-logs.ts";
import { run as drive } from "../../driving.ts";
import { writeLedger } from "../ledger/ledger-runs.ts";

const { meta, turn, record } = codexRows;

const home = makeHome({
  [`${CLAUDE}/a.jsonl`]: [claudeRow()],
  [`${CLAUDE}/c.jsonl`]: [
    claudeRow({ id: "msg_2", timestamp: "2026-11-21T10:00:00.000Z", sessionId: "other" }),
  ],
  [`${CODEX}/b.jsonl`]: [
    meta("t1"),
    turn("u1", "a-model-of-nobody"),
    record("r1", [100, 0, 10], [100, 0, 10]),
  ],
});

/** Runs `gateway usage --history` in UTC, without a config. */
function history(...args: string[]): ReturnType<typeof drive> {
  return drive({ folder: home, env: { HOME: home, GATEWAY_CONFIG: "" } }, "usage", "--history", ...args);
}

describe("`usage --history` shows what agents' logs say", () => {
  test("P51: without a config or a gateway, `usage --history` shows what agents used, and says what logs leave out", async () => {
    const { status, stdout, stderr } = await history("--by", "tool,model");
    expect([status, stdout.trimEnd().split("\n")]).toEqual([
      0,
      [
        "TOOL         MODEL              REQUESTS  INPUT  CACHE READ  OUTPUT  CACHED  OFFICIAL $",
        "claude-code  claude-opus-4-5           2      6         200      40     97%    0.001130",
        "codex        a-model-of-nobody         1    100           0      10      0%     unknown",
        "total                                  3    106         200      50     65%    0.001130",
      ],
    ]);
    expect(stderr.trimEnd().split("\n")).toEqual([
      "Not in the amounts: no price for a-model-of-nobody (1 request). `gateway prices set` gives a price.",
      "Claude Code logs no summaries, titles or stopped answers.",
      "Codex logs no service tier, no titles, no fees of searches, and no stopped answers.",
      "Amounts are what an API key would have paid: logs do not say what a plan paid.",
    ]);
  });

  test("`usage --history` divides by day, project and session, and takes a period and filters", async () => {
    const read = async (...args: string[]): Promise<unknown> =>
      JSON.parse((await history(...args, "--json")).stdout);
    const one = { requests: 1, official_usd: "0.000565" };
    expect(await read("2026-11-21", "--by", "day")).toMatchObject({ rows: [{ day: "2026-11-21", ...one }] });
    expect(await read("--session", "oth", "--by", "session")).toMatchObject({
      rows: [{ session: "other", ...one }],
    });
    expect(await read("--session", "last")).toMatchObject({ total: one });
    expect(await read("--tool", "codex", "--by", "project")).toMatchObject({
      rows: [{ project: "/home/user/project", requests: 1, official_usd: null, unpriced: 1 }],
      unpriced: [{ because: "no price for a-model-of-nobody", requests: 1 }],
    });
    expect(await read("--label", "project", "--model", "claude-opus-4-5")).toMatchObject({
      total: { requests: 2 },
    });
  });

  test("`usage --history --csv` has a column for every kind of usage, and no name becomes a formula", async () => {
    const odd = makeHome({ [`${CLAUDE}/a.jsonl`]: [claudeRow({ cwd: "=HYPERLINK(1)\u001b[31m" })] });
    const { stdout } = await drive(
      { folder: odd, env: { HOME: odd, GATEWAY_CONFIG: "" } },
      "usage",
      "--history",
      "--by",
      "project",
      "--csv",
    );
    const [head = "", row = ""] = stdout.split("\n");
    expect(head).toStartWith("project,requests,input,cache_read,cache_write_5m,cache_write_1h,");
    expect(row).toStartWith(String.raw`"'=HYPERLINK(1)\u001b[31m",1,3,100,0,0,`);
  });

  test.each([
    [["--key", "laptop"], "--history excludes --key: a log names no key."],
    [["--by", "channel"], '--by: there is no "channel"'],
    [["--session", "nothing"], "The logs have no session nothing."],
  ])("`usage --history` refuses %j", async (args, message) => {
    const { status, stderr } = await history(...args);
    expect(status).toBeGreaterThan(0);
    expect(stderr).toContain(message);
  });

  test("`usage --history` says so if there are no logs", async () => {
    const { status, stderr } = await drive(
      { folder: "/", env: { GATEWAY_CONFIG: "" } },
      "usage",
      "--history",
    );
    expect([status, stderr]).toEqual([
      0,
      "There are no logs of Claude Code, Codex, Gemini CLI or opencode.\n",
    ]);
  });

  test("P52: `usage --history --both` counts each request once, even if it is in the logs and in the ledger", async () => {
    const client = { tool: "claude-code", session: "other" };
    const ledger = writeLedger([
      {
        id: "1",
        time: "2026-11-21T09:59:59.000Z",
        model: "claude-opus-4-5",
        upstream_request_id: "req_msg_2",
        client,
        official_usd: "1",
        charge_usd: "1",
      },
      {
        id: "2",
        time: "2026-11-21T12:00:00.000Z",
        model: "claude-opus-4-5",
        upstream_request_id: "req_no",
        client,
        official_usd: "10",
        charge_usd: "10",
      },
    ]);
    const { stdout, stderr, status } = await history("--both", "--ledger", ledger, "--by", "tool", "--json");
    expect([status, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toMatchObject({
      rows: [
        {
          tool: "claude-code",
          requests: 3,
          only_logs_usd: "0.000565",
          only_ledger_usd: "10",
          both_usd: "1",
          official_usd: "11.000565",
        },
        { tool: "codex", requests: 1 },
      ],
    });
    const { stdout: shown } = await history("--both", "--ledger", ledger, "--by", "tool");
    expect(shown).toContain("ONLY IN LOGS $  ONLY IN LEDGER $  IN BOTH $  OFFICIAL $");
  });
});
