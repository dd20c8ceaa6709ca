import { describe, expect, test } from "bun:test";
import type { LineDraft } from "../../../../src/billing/ledger/line.ts";
import { run, writeLedger } from "../ledger/ledger-runs.ts";

const SESSION = "db7f03b5-105b-464a-ba35-e8c230eff292";
const claude = { tool: "claude-code", session: SESSION, label: "gateway" };
const at = (minute: number): Partial<LineDraft> => ({ time: `2026-11-20T10:0${minute}:00.000Z` });
const MISS = { cache: { missed: 11_000, usd: "0.0297", because: "tools_changed" } };

const path = writeLedger([
  // Version 0.1 wrote lines like this one, which do not say who sent the request.
  { id: "req_0", ...at(0) },
  { id: "req_1", ...at(1), client: claude },
  { id: "req_2", ...at(2), client: { ...claude, agent: "a1" }, ...MISS },
  { id: "req_3", ...at(3), client: { ...claude, agent: "a2", parent: "a1" }, charge_usd: "1" },
  { id: "req_4", ...at(4), client: { ...claude, agent: "a3" } },
  {
    id: "req_5",
    ...at(5),
    key: "ci",
    client: { tool: "gemini-cli", session: "inferred-4e4f7a1bce01d2aa", inferred: true },
  },
]);
const LEDGER = ["--ledger", path];

// opencode gives each agent a session of its own.
const opencode = { tool: "opencode", session: "ses_main" };
const family = writeLedger([
  { id: "req_1", ...at(1), client: opencode },
  { id: "req_2", ...at(2), client: { tool: "opencode", session: "ses_part", parent: "ses_main" } },
  { id: "req_3", ...at(3), client: { ...opencode, agent: "a", parent: "ses_main" } },
  { id: "req_4", ...at(4), client: { tool: "opencode", session: "ses_other" } },
]);

async function lines(...args: string[]): Promise<string[]> {
  const { stdout, stderr, status } = await run(...args, ...LEDGER);
  expect([stderr, status]).toEqual(["", 0]);
  return stdout.trimEnd().split("\n");
}

describe("`gateway sessions` shows what sessions cost and contain", () => {
  test("`gateway sessions` lists sessions, the newest first, and the requests without one", async () => {
    expect(await lines("sessions")).toEqual([
      "LAST USED    SESSION         TOOL         LABEL    REQUESTS   INPUT  CACHED  OUTPUT  AGENTS  CHARGED $",
      "11-20 10:05  ~4e4f7a1bce01d  gemini-cli   -               1  11,432     96%     350       1   0.011106",
      "11-20 10:04  db7f03b5-105b   claude-code  gateway         4  45,728     96%   1,400       4   1.033318",
      "             no session                                   1  11,432     96%     350           0.011106",
      "             total                                        6  68,592     96%   2,100           1.055530",
    ]);
  });

  test("P49: in `sessions --json`, `sessions` and `no_session` add up to the total", async () => {
    const reported = JSON.parse((await lines("sessions", "--json")).join("\n"));
    expect(reported).toMatchObject({
      sessions: [
        { session: "inferred-4e4f7a1bce01d2aa", inferred: true, tool: "gemini-cli", label: null, key: "ci" },
        {
          session: SESSION,
          inferred: false,
          tool: "claude-code",
          label: "gateway",
          key: "laptop",
          since: "2026-11-20T10:01:00.000Z",
          until: "2026-11-20T10:04:00.000Z",
          agents: 4,
          requests: 4,
          charge_usd: "1.033318",
          cache_hit_rate: 0.9622,
        },
      ],
      no_session: { requests: 1, charge_usd: "0.011106" },
      total: { requests: 6, charge_usd: "1.05553" },
    });
  });

  test("`gateway sessions` shows a session as a tree of its agents, and where the cache was missed", async () => {
    expect(await lines("sessions", "show", "db7f")).toEqual([
      `Session ${SESSION}`,
      '  claude-code, label "gateway", key laptop, 11-20 10:01 to 11-20 10:04',
      "",
      "AGENT       MODEL              REQUESTS   INPUT  CACHED  OUTPUT  MISSES  CHARGED $",
      "main agent  claude-sonnet-4-5         1  11,432     96%     350           0.011106",
      "  a1        claude-sonnet-4-5         1  11,432     96%     350       1   0.011106",
      "    a2      claude-sonnet-4-5         1  11,432     96%     350           1.000000",
      "  a3        claude-sonnet-4-5         1  11,432     96%     350           0.011106",
      "total                                 4  45,728     96%   1,400       1   1.033318",
      "",
      "CACHE MISSED  ID  AGENT  TOKENS    COST $  BECAUSE",
      "11-20 10:02   2   a1     11,000  0.029700  tools changed",
    ]);
  });

  test("`gateway sessions` lists the turns of a session that the tool did not name", async () => {
    const reported = await lines("sessions", "show", "~4e4f", "--turns");
    expect(reported[0]).toBe("Session inferred-4e4f7a1bce01d2aa (the tool did not name it)");
    expect(reported.slice(-2)).toEqual([
      "TIME         ID  AGENT       MODEL               INPUT  CACHED  OUTPUT  CHARGED $",
      "11-20 10:05  5   main agent  claude-sonnet-4-5  11,432     96%     350   0.011106",
    ]);
    expect(await lines("sessions", "show", "last", "--turns")).toEqual(reported);
  });

  test("`gateway sessions` shows a session as JSON, with its agents, misses and turns", async () => {
    const reported = JSON.parse((await lines("sessions", "show", "db7f", "--json", "--turns")).join("\n"));
    expect(reported).toMatchObject({
      session: SESSION,
      charge_usd: "1.033318",
      agents: [
        { agent: null, parent: null, requests: 1, charge_usd: "0.011106", cache_misses: 0 },
        { agent: "a1", parent: null, cache_misses: 1 },
        { agent: "a2", parent: "a1", charge_usd: "1" },
        { agent: "a3", parent: null },
      ],
      misses: [{ id: "req_2", agent: "a1", missed: 11_000, usd: "0.0297", because: "tools_changed" }],
      turns: [
        { id: "req_1", agent: null },
        { id: "req_2" },
        { id: "req_3", charge_usd: "1" },
        { id: "req_4" },
      ],
    });
  });

  test("`gateway sessions` says by how much the windows of a plan rose while a session ran", async () => {
    const plan = { client: claude, paid_by: "plan", charge_usd: "0" } as const;
    const planned = writeLedger([
      { id: "req_1", ...at(1), ...plan, windows: { "5h": 40 } },
      { id: "req_2", ...at(2), ...plan, windows: { "5h": 43 } },
    ]);
    const { stdout } = await run("sessions", "show", "last", "--ledger", planned);
    expect(stdout.split("\n").slice(2, 6)).toEqual([
      "",
      "While the session ran, the plan's window of 5h rose by 3 % (an estimate: other sessions and devices use the same account)",
      "",
      "AGENT       MODEL              REQUESTS   INPUT  CACHED  OUTPUT  MISSES  CHARGED $  PAID BY PLAN $",
    ]);
  });

  test("`gateway sessions` shows the sessions that a session started", async () => {
    const { stdout } = await run("sessions", "show", "ses_main", "--ledger", family);
    expect(stdout.split("\n").slice(7, 10)).toEqual([
      "",
      "STARTED SESSION  REQUESTS   INPUT  CACHED  OUTPUT  MISSED  CHARGED $",
      "ses_part                1  11,432     96%     350           0.011106",
    ]);
    const json = await run("sessions", "show", "ses_main", "--json", "--ledger", family);
    expect(JSON.parse(json.stdout)).toMatchObject({
      requests: 2,
      started: [{ session: "ses_part", requests: 1 }],
    });
    const alone = await run("sessions", "show", "ses_part", "--json", "--ledger", family);
    expect(JSON.parse(alone.stdout)).toMatchObject({ started: [] });
  });

  test("`gateway sessions show` names an unknown id, and lists the sessions that a short id may mean", async () => {
    const unknown = await run("sessions", "show", "zzz", ...LEDGER);
    expect(unknown).toMatchObject({ status: 1, stderr: expect.stringContaining(`session zzz in ${path}. `) });
    const two = writeLedger(["ab", "ac"].map((session) => ({ id: session, client: { session } })));
    const several = await run("sessions", "show", "a", "--ledger", two);
    expect(several.stderr).toBe("gateway: Several sessions begin with a. Use more of the id:\n  ab\n  ac\n");
  });

  test("`gateway sessions` shows the newest twenty sessions, and the total of all sessions", async () => {
    const many = writeLedger(
      Array.from({ length: 25 }, (_, index) => ({
        id: `req_${index}`,
        client: { session: `session-${index}` },
      })),
    );
    const short = await run("sessions", "--ledger", many);
    expect(short.stdout.trimEnd().split("\n").slice(-1)).toMatchObject([
      expect.stringMatching(/^ +total +25 +285,800 /),
    ]);
    expect(short.stderr).toBe("The newest 20 of 25 sessions. --all shows every one.\n");
    expect((await run("sessions", "--all", "--ledger", many)).stdout.trimEnd().split("\n")).toHaveLength(27);
  });
});

describe("`gateway usage` divides the cost by sender", () => {
  test("`gateway usage` sums by tool, session, agent and label", async () => {
    const rows = async (by: string): Promise<string[]> =>
      (await lines("usage", "--by", by)).slice(1).map((line) => line.replace(/ {2,}.*$/, ""));
    expect(await rows("tool")).toEqual(["claude-code", "no tool", "gemini-cli", "total"]);
    expect(await rows("session")).toEqual([SESSION, "no session", "inferred-4e4f7a1bce01d2aa", "total"]);
    expect(await rows("label")).toEqual(["gateway", "no label", "total"]);
    expect(await rows("agent")).toEqual(["a2", "no agent", "a1", "a3", "total"]);
  });

  test("`usage --json` writes a missing label or tool as null", async () => {
    const reported = JSON.parse((await lines("usage", "--by", "label,tool", "--json")).join("\n"));
    expect(reported.rows).toMatchObject([
      { label: "gateway", tool: "claude-code", charge_usd: "1.033318" },
      { label: null, tool: null },
      { label: null, tool: "gemini-cli" },
    ]);
  });

  test("`gateway usage` filters by tool, session and label", async () => {
    const count = async (...args: string[]): Promise<unknown> =>
      JSON.parse((await lines("usage", "--by", "model", "--json", ...args)).join("\n")).total.requests;
    expect(await count("--tool", "claude-code")).toBe(4);
    expect(await count("--session", "db7f")).toBe(4);
    expect(await count("--session", "last")).toBe(1);
    expect(await count("--label", "gateway", "--tool", "gemini-cli")).toBe(0);
  });
});
