import { afterAll, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Fields } from "../../../../src/lib/http/fields.ts";
import { openTlsHosts } from "../../../harness/upstreams/tls-hosts.ts";
import { CLAUDE, claudeRow, makeHome } from "../../../billing/history/made-logs.ts";
import { expectMode, makeSweptFolder } from "../../../harness/temp.ts";
import { type Outcome, run as drive } from "../../driving.ts";
import { newLedgerPath } from "../../../billing/ledger/ledger-samples.ts";
import { writeLedger } from "../ledger/ledger-runs.ts";

const home = makeHome({
  "text.csv": "a,b\n1,2\n",
  [`${CLAUDE}/a.jsonl`]: [
    claudeRow(),
    claudeRow({ id: "msg_2", timestamp: "2026-11-21T10:00:00.000Z", sessionId: "past" }),
  ],
});
const client = { tool: "claude-code", session: "11111111-1111-4111-8111-111111111111" };
const usage = { input: 3, cache_read: 100, output: 20 };
const own = {
  client,
  usage,
  model: "claude-opus-4-5",
  time: "2026-11-20T10:00:00.000Z",
  upstream_request_id: "req_msg_1",
};
const ledger = writeLedger([{ id: "req_1", ...own, official_usd: "0.000565" }]);

function reconcile(...args: string[]): Promise<Outcome> {
  return drive(
    { folder: home, env: { HOME: home, GATEWAY_CONFIG: "" } },
    "reconcile",
    "--ledger",
    ledger,
    ...args,
  );
}

describe("reconcile", () => {
  test("shows what went past the gateway, with a verdict, and its exit status is 1", async () => {
    const { status, stdout, stderr } = await reconcile();
    expect([status, stderr, stdout.trimEnd().split("\n")]).toEqual([
      1,
      "",
      [
        "Only there: 1",
        "TIME                  ID         MODEL               THERE   THERE $  WHY",
        "2026-11-21T10:00:00Z  req_msg_2  claude-opus-4-5  103 + 20  0.000565  no line has it: it went past this gateway",
        "",
        "The ledger ($0.000565) and the agents' logs ($0.001130) differ: 1 only there, 0 only in the ledger, 0 both, but different; 1 agree.",
      ],
    ]);
  });

  test("agrees with the logs of a day or a tool, and its exit status is 0", async () => {
    const { status, stdout } = await reconcile("claude-code", "2026-11-20");
    expect([status, stdout]).toEqual([
      0,
      "The ledger and the logs of claude-code agree: 1 of 1, $0.000565.\n",
    ]);
    expect(await reconcile("2026-11-20")).toMatchObject({ status: 0 });
    expect(await reconcile("codex")).toMatchObject({
      status: 0,
      stdout: "There is nothing to compare with the logs of codex.\n",
    });
  });

  test("--json has the three lists with exact amounts", async () => {
    const { stdout } = await reconcile("logs", "--json");
    const theirs = { usage, usd: "0.000565" };
    expect(JSON.parse(stdout)).toMatchObject({
      agrees: false,
      agree: 1,
      only_theirs: [{ id: "req_msg_2", time: "2026-11-21T10:00:00.000Z", ours: null, theirs }],
      only_ours: [],
      different: [],
      ours_usd: "0.000565",
      theirs_usd: "0.00113",
    });
  });

  test("sellers' amounts and exports are sources too", async () => {
    expect((await reconcile("seller")).stdout).toBe(
      "There is nothing to compare with the sellers' own amounts.\n",
    );
    const file = join(home, "export.csv");
    writeFileSync(
      file,
      "usage_date_utc,model_version,usage_input_tokens_no_cache,usage_output_tokens\n2026-11-20,claude-opus-4-5,3,21\n",
    );
    const paid = writeLedger([{ id: "req_1", ...own, price_source: "book 2026-11-23 anthropic" }]);
    const { status, stdout } = await reconcile("export.csv", "--ledger", paid);
    expect(status).toBe(1);
    expect(stdout).toContain("usage_output_tokens 21, ours 20");
    // A relay sold the same model.
    const relayed = writeLedger([
      { id: "req_1", ...own, price_source: "book 2026-11-23 anthropic (by name)" },
    ]);
    expect((await reconcile(file, "--ledger", relayed)).stdout).toContain("Only there: 1");
  });

  test.each([
    [
      ["nobody", "7d"],
      2,
      "There is no source nobody. Known: logs, claude-code, codex, gemini-cli, opencode, seller, balance, or the file of an export.",
    ],
    [["nobody"], 2, 'There is no period "nobody"'],
    [["."], 1, "is not a regular file"],
    [["text.csv"], 1, "text.csv is no export"],
    [["balance"], 1, "A balance is asked with the credentials of a config, and there is none."],
  ])("%j is refused", async (args, expected, message) => {
    const { status, stderr } = await reconcile(...args);
    expect([status, stderr]).toEqual([expected, expect.stringContaining(message)]);
  });
});

let left = "20.00";
let used = "1.25";
const hosts = ["api.deepseek.com", "api.moonshot.cn", "openrouter.ai"];
const proxy = await openTlsHosts(hosts, (exchange) => {
  const bodies: Readonly<Record<string, string>> = {
    "api.deepseek.com": `{"balance_infos":[{"currency":"USD","total_balance":"${left}"}]}`,
    "api.moonshot.cn": '{"data":{"available_balance":5}}',
    "openrouter.ai": `{"data":{"limit_remaining":null,"usage":${used}}}`,
  };
  exchange.answer(200, Fields.of([]), bodies[exchange.field("host") ?? ""] ?? "");
});

describe("reconcile balance", () => {
  const folder = makeSweptFolder();
  afterAll(() => proxy.close());
  const channel = { platform: "responses", credential: "sk-of-seller", proxy: proxy.url, ca: "ca.pem" };
  writeFileSync(join(folder, "ca.pem"), proxy.authority);
  writeFileSync(
    join(folder, "gateway.yaml"),
    JSON.stringify({
      channels: {
        deepseek: { ...channel, base_url: "https://api.deepseek.com/v1" },
        moonshot: { ...channel, base_url: "https://api.moonshot.cn/v1" },
        other: { ...channel, base_url: "https://api.example.com/v1" },
      },
      ledger: { path: ledger },
    }),
    { mode: 0o600 },
  );
  const spend = (usd: string): string => {
    const time = new Date().toISOString();
    return writeLedger([
      { id: "1", ...own, time, channel: "deepseek", official_usd: usd },
      { id: "2", ...own, time, channel: "other", official_usd: "100" },
    ]);
  };
  const askRouter = (path: string): Promise<Outcome> => {
    const place = makeSweptFolder();
    const router = { ...channel, base_url: "https://openrouter.ai/api/v1", ca: join(folder, "ca.pem") };
    writeFileSync(join(place, "gateway.yaml"), JSON.stringify({ channels: { router } }), { mode: 0o600 });
    writeFileSync(path, "");
    return drive({ folder: place, env: { HOME: home } }, "reconcile", "balance", "--ledger", path);
  };
  const ask = (...args: string[]): Promise<Outcome> =>
    drive({ folder, env: { HOME: home } }, "reconcile", "balance", ...args);

  test("compares what is gone from an account with what the ledger has since the last time", async () => {
    const first = await ask();
    expect(first).toMatchObject({ status: 0, stdout: "There is nothing to compare with the balances.\n" });
    expect(first.stderr.split("\n")).toEqual([
      "deepseek has 20.00 USD: the next comparison begins here.",
      "moonshot has 5 CNY: the next comparison begins here.",
      "",
    ]);
    const noted = `${ledger}.balances.json`;
    expectMode(noted, 0o600);
    for (const [spent, now, status, verdict] of [
      ["1.504", "18.50", 0, "The ledger and the balances agree: 1 of 1, $1.504000."],
      [
        "1.60",
        "18.50",
        1,
        "The ledger ($1.600000) and the balances ($1.500000) differ: 0 only there, 0 only in the ledger, 1 both, but different; 0 agree.",
      ],
    ] as const) {
      left = now;
      const path = spend(spent);
      writeFileSync(`${path}.balances.json`, readFileSync(noted, "utf8"));
      const { status: found, stdout, stderr } = await ask("--ledger", path);
      expect([found, stdout.trimEnd().split("\n").at(-1)]).toEqual([status, verdict]);
      expect(stderr).toContain("moonshot counts in CNY, which is not compared.");
      expect(JSON.parse(readFileSync(`${path}.balances.json`, "utf8"))).toMatchObject({
        deepseek: { left: now },
      });
    }
  });

  test("each account is compared with the lines of its channel since its own last time", async () => {
    left = "18";
    const place = makeSweptFolder();
    const seller = { ...channel, base_url: "https://api.deepseek.com/v1", ca: join(folder, "ca.pem") };
    writeFileSync(
      join(place, "gateway.yaml"),
      JSON.stringify({ channels: { one: seller, two: seller, three: seller } }),
      { mode: 0o600 },
    );
    const at = (minutes: number): string => new Date(Date.now() - minutes * 60_000).toISOString();
    const path = writeLedger([
      { id: "1", ...own, time: at(30), channel: "one", official_usd: "1" },
      { id: "2", ...own, time: at(30), channel: "two", official_usd: "1" },
      { id: "3", ...own, time: at(10), channel: "two", official_usd: "2" },
      { id: "4", ...own, time: at(10), channel: "three", official_usd: "1" },
    ]);
    const reading = (minutes: number, had: string) => ({ at: at(minutes), left: had, currency: "USD" });
    const before = { one: reading(40, "19"), two: reading(20, "20"), three: reading(20, "18") };
    writeFileSync(`${path}.balances.json`, JSON.stringify(before));
    const around = { folder: place, env: { HOME: home } };
    const { stdout } = await drive(around, "reconcile", "balance", "--json", "--ledger", path);
    const { agree, different } = JSON.parse(stdout);
    expect([agree, different]).toMatchObject([
      2,
      [{ id: "three", ours: { usd: "1" }, theirs: { usd: "0" } }],
    ]);
  });

  test("a key without a limit is compared by what it has used", async () => {
    const path = newLedgerPath();
    expect((await askRouter(path)).stderr).toBe(
      "router has used 1.25 USD: the next comparison begins here.\n",
    );
    used = "1.75";
    const { status, stdout } = await askRouter(path);
    expect([status, stdout.trimEnd().split("\n").at(-1)]).toEqual([
      1,
      "The ledger ($0.000000) and the balances ($0.500000) differ: 0 only there, 0 only in the ledger, 1 both, but different; 0 agree.",
    ]);
  });

  test("a balance that has risen is not compared", async () => {
    left = "50.00";
    const { status, stderr } = await ask();
    expect([status, stderr]).toEqual([0, expect.stringContaining("something was paid in")]);
  });

  test("a damaged note of balances begins anew", async () => {
    writeFileSync(`${ledger}.balances.json`, '{"deepseek":{"at":7}}');
    expect((await ask()).stderr).toContain("the next comparison begins here");
  });
});
