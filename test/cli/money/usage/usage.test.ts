import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { readPeriod } from "../../../../src/billing/reports/period.ts";
import { createZone } from "../../../../src/lib/text/zone.ts";
import { makeTempFolder } from "../../../harness/temp.ts";
import { run, writeLedger } from "../ledger/ledger-runs.ts";

const CLOCK = { zone: createZone("UTC"), now: new Date("2026-11-20T15:30:00Z") };

const UNPRICED = { basis: "unpriced", prices: null, official_usd: null, charge_usd: null } as const;

const path = writeLedger([
  { id: "1", time: "2026-11-19T10:00:00.000Z", model: "a", key: "laptop" },
  { id: "2", time: "2026-11-20T10:00:00.000Z", model: "b", key: 'c"i,', charge_usd: "1.000000000001" },
  { id: "3", time: "2026-11-20T11:00:00.000Z", model: "b", key: "laptop", ...UNPRICED },
]);

test("`usage` shows a row for each day, the total, and requests that are not in the amounts", async () => {
  const { status, stdout, stderr } = await run("usage", "--ledger", path);
  expect(status).toBe(0);
  expect(stdout.trimEnd().split("\n")).toEqual([
    "DAY         REQUESTS  INPUT  CACHE READ  CACHE WRITE  OUTPUT  CACHED  OFFICIAL $  CHARGED $",
    "2026-11-19         1     12      11,000          420     350     96%    0.011106   0.011106",
    "2026-11-20         2     24      22,000          840     700     96%    0.011106   1.000000",
    "total              3     36      33,000        1,260   1,050     96%    0.022212   1.011106",
  ]);
  expect(stderr).toBe(
    "1 request has no price and is not in the amounts. `gateway prices set` sets one, and `gateway ledger reprice --since DAY` corrects the lines.\n",
  );
});

test("P156: `usage` has separate columns for what plans paid and what was charged, and never adds them", async () => {
  const paid = { model: "c", charge_usd: "0", multiplier: "0" };
  const ledger = writeLedger([
    { id: "1", time: "2026-11-19T10:00:00.000Z", model: "a" },
    { ...paid, id: "2", time: "2026-11-19T11:00:00.000Z", paid_by: "plan", limit_usd: "0.011106" },
    { ...paid, id: "3", time: "2026-11-19T12:00:00.000Z", paid_by: "plan", limit_usd: "0.011106" },
    { ...paid, id: "4", time: "2026-11-19T13:00:00.000Z", paid_by: "plan_overage", limit_usd: "0.011106" },
  ]);
  const { stdout } = await run("usage", "--ledger", ledger, "--by", "model");
  expect(stdout).toContain("OFFICIAL $  CHARGED $  PAID BY PLAN $  PLAN OVERAGE $");
  expect(stdout).toMatch(/total .* 0\.044424 +0\.011106 +0\.022212 +0\.011106\n$/);
  const { total } = JSON.parse((await run("usage", "--ledger", ledger, "--json")).stdout);
  expect(total).toMatchObject({
    charge_usd: "0.011106",
    paid_by_plan_usd: "0.022212",
    plan_overage_usd: "0.011106",
  });
  const explained = await run("ledger", "show", "4", "--ledger", ledger);
  expect(explained.stdout).toContain("the plan was used up, and its account is billed");
});

test("`usage` says in one line what requests cost according to their sellers, what was charged, and how many amounts differ", async () => {
  const line = { time: "2026-11-19T10:00:00.000Z", official_usd: "0.5", charge_usd: "0.25" };
  const sold = writeLedger([
    { ...line, id: "1", provider_usd: "0.5" },
    { ...line, id: "2", provider_usd: "0.7" },
    { ...line, id: "3" },
    { ...line, id: "4", time: "2026-10-19T10:00:00.000Z", provider_usd: "9" },
  ]);
  const { stderr } = await run("usage", "2026-11", "--ledger", sold);
  expect(stderr).toContain(
    "Sellers named $1.200000 for 2 requests. Charged: $0.500000. Official amounts that are missing or differ: 1.",
  );
  expect((await run("usage", "2026-11", "--ledger", sold, "--key", "laptop")).stderr).not.toContain("named");
  expect((await run("usage", "2026-11", "--ledger", path)).stderr).not.toContain("Sellers");
});

test("usage --json is one document with exact amounts", async () => {
  const period = ["--since", "2026-11-20", "--until", "2026-11-20"];
  const { stdout } = await run("usage", "--ledger", path, "--by", "model", ...period, "--json");
  const reported: unknown = JSON.parse(stdout);
  const totals = {
    requests: 2,
    usage: {
      input: 24,
      cache_read: 22_000,
      cache_write_5m: 0,
      cache_write_1h: 840,
      output: 700,
      reasoning: 240,
    },
    official_usd: "0.011106",
    charge_usd: "1.000000000001",
    cache_hit_rate: 0.9622,
    unpriced: 1,
    unknown: 0,
    partial: 0,
  };
  expect(reported).toEqual({
    by: "model",
    since: "2026-11-20T00:00:00.000Z",
    until: "2026-11-21T00:00:00.000Z",
    timezone: "UTC",
    rows: [{ model: "b", ...totals }],
    total: totals,
    unreadable: 0,
  });
});

test("`usage --csv` has the same columns whatever was used, and quotes names", async () => {
  const { stdout } = await run("usage", "--ledger", path, "--by", "key", "--csv");
  const [head, first] = stdout.split("\n");
  expect(head).toStartWith(
    "key,requests,input,cache_read,cache_write_5m,cache_write_1h,cache_write,cache_write_12h,output,reasoning,",
  );
  expect(head).toEndWith(
    ",call,official_usd,charge_usd,unpriced,unknown,partial,cache_hit_rate,paid_by_plan_usd,plan_overage_usd",
  );
  expect(head).toContain(",web_search,web_search_preview,x_search,");
  expect(first).toStartWith('"c""i,",1,12,11000,0,420,0,0,350,120,');
  expect(first).toEndWith(",0,0.011106,1.000000000001,0,0,0,0.9622,0,0");
});

test("`usage --csv` escapes control characters, and no name becomes a formula in a spreadsheet", async () => {
  const names = [
    "a\u001B]0;x\u0007",
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\tx",
    "a\u202Eb",
    "a;=1",
    " =1",
    "＝1",
  ];
  const ledger = writeLedger(names.map((model, index) => ({ id: String(index), model })));
  const { stdout } = await run("usage", "--ledger", ledger, "--by", "model", "--csv");
  const cells = stdout
    .trimEnd()
    .split("\n")
    .slice(1)
    .map((line) => line.split(",")[0]);
  expect(new Set(cells)).toEqual(
    new Set([
      `"'=1+1"`,
      `"'+1"`,
      `"'-1"`,
      `"'@SUM(A1)"`,
      `"a;'=1"`,
      `"' =1"`,
      `"'＝1"`,
      "\\u0009x",
      `"a\\u001b]0;x\\u0007"`,
      "a\\u202eb",
    ]),
  );
  const { stdout: table } = await run("usage", "--ledger", ledger, "--by", "model");
  expect(table).toContain("a\\u202eb ");
  const { stdout: json } = await run("usage", "--ledger", ledger, "--by", "model", "--json");
  expect(json).not.toMatch(/[\u007F-\u009F\u202E]/);
  expect(
    JSON.parse(json)
      .rows.map(({ model }: { model: string }) => model)
      .toSorted(),
  ).toEqual(names.toSorted());
});

test("`usage` reports an empty period, and refuses flags that it cannot read", async () => {
  const none = await run("usage", "--ledger", path, "--since", "2030-01-01");
  expect(none).toMatchObject({ status: 0, stdout: "", stderr: "No requests in this period.\n" });
  const missing = await run("usage", "--ledger", `${path}.none`);
  expect(missing).toMatchObject({ status: 1, stdout: "" });
  expect(missing.stderr).toContain("There is no ledger at");
  expect(missing.stderr).not.toContain("begins with");
  for (const args of [
    ["--by", "project"],
    ["--by", "day,key,model"],
    ["--by", "key,key"],
    ["--since", "tomorrow"],
    ["someday"],
    ["today", "--since", "7d"],
    ["--csv", "--json"],
    ["--since", "2026-11-20", "--until", "2026-11-19"],
    ["--since", "2026-11-20T10:00:00Z", "--until", "2026-11-20T10:00:00Z"],
  ]) {
    const { status, stderr } = await run("usage", "--ledger", path, ...args);
    expect([status, stderr.includes("--history")]).toEqual([2, args[1] === "project"]);
  }
});

test("before the first request a report is empty, with a note that there is no ledger yet", async () => {
  using folder = makeTempFolder();
  const channel = { platform: "messages", base_url: "https://a.example", credential: "none" };
  const groups = { g: { platform: "messages", multiplier: 1, channels: ["a"] } };
  const config = folder.join("gateway.yaml");
  writeFileSync(config, JSON.stringify({ channels: { a: channel }, groups }), { mode: 0o600 });
  const note = `There is no ledger at ${folder.join("ledger.jsonl")} yet. The first request creates it.\n`;
  const usage = await run("usage", "--json", "--config", config);
  expect(usage).toMatchObject({ status: 0, stderr: note });
  expect(JSON.parse(usage.stdout)).toMatchObject({ rows: [], total: { requests: 0 }, unreadable: 0 });
  // A ledger that is lost must not look like an empty one.
  const verdict = await run("ledger", "verify", "--config", config);
  expect(verdict).toEqual({ status: 1, stdout: "", stderr: `gateway: ${note}` });
});

test.each([
  ["7d", "2026-11-14T00:00:00.000Z"],
  ["1d", "2026-11-20T00:00:00.000Z"],
  ["2w", "2026-11-07T00:00:00.000Z"],
  ["12h", "2026-11-20T03:30:00.000Z"],
  ["2026-10-01", "2026-10-01T00:00:00.000Z"],
  ["2026-10-01T12:00:00+02:00", "2026-10-01T10:00:00.000Z"],
])("P59: at 15:30 on 2026-11-20, `--since %s` begins at %s", (text, expected) => {
  expect(readPeriod({ since: text }, CLOCK).since).toBe(expected);
});

test("a folder in place of the ledger is an error", async () => {
  const { status, stderr } = await run("usage", "--ledger", dirname(path));
  expect([status, stderr]).toEqual([1, `gateway: ${dirname(path)} is a folder, not a ledger.\n`]);
});

test("P49: --until with a date includes that day, and with a moment excludes that moment", () => {
  expect(readPeriod({ until: "2026-10-31" }, CLOCK).until).toBe("2026-11-01T00:00:00.000Z");
  expect(readPeriod({ until: "2026-10-31T12:00:00Z" }, CLOCK).until).toBe("2026-10-31T12:00:00.000Z");
  expect(() => readPeriod({ until: "7d" }, CLOCK)).toThrow("--until: expected");
});

const DAYS = writeLedger([
  { id: "1", time: "2026-11-01T07:30:00.000Z", model: "a", key: "laptop" },
  { id: "2", time: "2026-11-03T10:00:00.000Z", model: "b", key: "laptop" },
  { id: "3", time: "2026-11-03T11:00:00.000Z", model: "b", key: "ci" },
]);

async function countBy(...args: string[]): Promise<string[]> {
  const { stdout } = await run("usage", "--ledger", DAYS, "--csv", ...args);
  const [head = "", ...rows] = stdout.trimEnd().split("\n");
  const count = head.split(",").indexOf("requests");
  return rows.map((row) =>
    row
      .split(",")
      .slice(0, count + 1)
      .join(" "),
  );
}

test("`usage` includes days, weeks and hours without requests", async () => {
  expect(await countBy()).toEqual(["2026-11-01 1", "2026-11-02 0", "2026-11-03 2"]);
  expect(await countBy("--since", "2026-10-31", "--until", "2026-11-04")).toEqual([
    "2026-10-31 0",
    "2026-11-01 1",
    "2026-11-02 0",
    "2026-11-03 2",
    "2026-11-04 0",
  ]);
  expect(await countBy("--by", "week")).toEqual(["2026-W44 1", "2026-W45 2"]);
  expect(await countBy("2026-11-03", "--by", "month")).toEqual(["2026-11 2"]);
  const hours = await countBy("2026-11-03", "--by", "hour");
  expect([hours.length, hours[10]]).toEqual([24, "2026-11-03 10:00 1"]);
});

test("`usage` takes filters, and has a row for each value of one or two dimensions", async () => {
  expect(await countBy("--key", "laptop")).toEqual(["2026-11-01 1", "2026-11-02 0", "2026-11-03 1"]);
  expect(await countBy("--by", "model", "--key", "ci")).toEqual(["b 1"]);
  expect(await countBy("--by", "model", "--channel", "none")).toEqual([]);
  expect(await countBy("--by", "model,key")).toEqual(["a laptop 1", "b ci 1", "b laptop 1"]);
  expect(await countBy("--by", "key,day")).toEqual([
    "laptop 2026-11-01 1",
    "ci 2026-11-03 1",
    "laptop 2026-11-03 1",
  ]);
  const { stdout } = await run("usage", "--ledger", DAYS, "--by", "key,model", "--json");
  expect(JSON.parse(stdout)).toMatchObject({ by: "key,model", rows: [{ key: "ci", model: "b" }, {}, {}] });
});

test.each(["key", "group", "model", "channel", "tool", "session", "label"])(
  "P59: --%s leaves out requests with another value",
  async (name) => {
    const client = { tool: "other", session: "other", label: "other" };
    const other = { key: "other", group: "other", model: "other", channel: "other", client };
    const ledger = writeLedger([{ id: "1" }, { id: "2" }, { id: "3", ...other }]);
    for (const command of ["usage", "cache"]) {
      const { stdout } = await run(command, "--ledger", ledger, `--${name}`, "other", "--json");
      const { requests, total } = JSON.parse(stdout);
      expect([command, requests ?? total.requests]).toEqual([command, 1]);
    }
  },
);

test("P49: days follow the config's timezone", async () => {
  using folder = makeTempFolder();
  const config = folder.join("gateway.yaml");
  writeFileSync(config, `timezone: America/Los_Angeles\nledger: { path: ${DAYS} }`, { mode: 0o600 });
  const { stdout } = await run("usage", "--config", config, "--json");
  expect(JSON.parse(stdout)).toMatchObject({
    timezone: "America/Los_Angeles",
    rows: [{ day: "2026-11-01" }, {}, {}],
  });
  const october = await run("usage", "2026-10-31", "--config", config, "--json");
  expect(JSON.parse(october.stdout)).toMatchObject({
    since: "2026-10-31T07:00:00.000Z",
    until: "2026-11-01T07:00:00.000Z",
    total: { requests: 0 },
  });
  const night = await run("usage", "2026-11-01", "--by", "hour", "--config", config, "--json");
  expect(JSON.parse(night.stdout).rows[0]).toMatchObject({ hour: "2026-11-01 00:00", requests: 1 });
  writeFileSync(config, "timezone: Mars/Olympus", { mode: 0o600 });
  const { status, stderr } = await run("usage", "--config", config);
  expect(status).toBe(2);
  expect(stderr).toContain("Europe/Berlin");
});

test.each([
  ["today", "2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"],
  ["yesterday", "2026-11-19T00:00:00.000Z", "2026-11-20T00:00:00.000Z"],
  ["week", "2026-11-16T00:00:00.000Z", "2026-11-23T00:00:00.000Z"],
  ["last-week", "2026-11-09T00:00:00.000Z", "2026-11-16T00:00:00.000Z"],
  ["month", "2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z"],
  ["last-month", "2026-10-01T00:00:00.000Z", "2026-11-01T00:00:00.000Z"],
  ["2026-02", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"],
  ["2026-11-20", "2026-11-20T00:00:00.000Z", "2026-11-21T00:00:00.000Z"],
  ["7d", "2026-11-14T00:00:00.000Z", null],
  ["12h", "2026-11-20T03:30:00.000Z", null],
  ["2w", "2026-11-07T00:00:00.000Z", null],
])("P59: the period %s is from %s to %s", (word, since, until) => {
  expect(readPeriod({ period: word }, CLOCK)).toEqual({ since, until });
});

test("a local day with a change of clocks begins and ends at local midnight", () => {
  const zone = createZone("Europe/Berlin");
  expect(readPeriod({ period: "2026-10-25" }, { ...CLOCK, zone })).toEqual({
    since: "2026-10-24T22:00:00.000Z",
    until: "2026-10-25T23:00:00.000Z",
  });
});

describe("`usage --as` shows what another model would have cost", () => {
  const usage = { input: 100_000, cache_read: 100_000, output: 10_000 };
  const amounts = { official_usd: "0.48", charge_usd: "0.48" };
  const other = { id: "2", usage: { input: 5, cache_write_1h: 7 }, key: "ci", model: "old" };
  const ledger = writeLedger([{ id: "1", usage, ...amounts }, other]);

  test("`usage --as` shows what the same usage would have cost, and what is not compared", async () => {
    const args = ["--ledger", ledger, "--by", "key", "--as", "gpt-6-sol"];
    const { status, stdout, stderr } = await run("usage", ...args);
    expect(status).toBe(0);
    // The prices of gpt-6-sol are 2 for input, 0.2 for cached input and 10 for output.
    expect(stdout.trimEnd().split("\n")).toEqual([
      "KEY     REQUESTS  COMPARED  CHARGED $  WOULD COST $  DIFFERENCE $",
      "laptop         1         1   0.480000      0.320000     -0.160000",
      "ci             1         0          -             -             -",
      "total          2         1   0.480000      0.320000     -0.160000",
    ]);
    expect(stderr).toContain("openai (by name).\n");
    expect(stderr).toContain(
      "Not compared: 1 request for old, charged $0.011106: no price for cache_write_1h of gpt-6-sol.\n",
    );
  });

  test("`usage --as --json` has exact amounts, and says what is not compared", async () => {
    const args = ["--ledger", ledger, "--by", "key", "--as", "gpt-6-sol"];
    const { stdout } = await run("usage", ...args, "--json");
    expect(JSON.parse(stdout)).toMatchObject({
      by: "key",
      as: { model: "gpt-6-sol" },
      total: { requests: 2, compared: 1, as_charge_usd: "0.32", charge_usd: "0.48" },
      not_compared: [{ model: "old", requests: 1, charge_usd: "0.011106" }],
    });
    const csv = await run("usage", ...args, "--csv");
    expect(csv.stdout.split("\n")[0]).toBe(
      "key,requests,compared,partial,official_usd,charge_usd,as_official_usd,as_charge_usd,difference_usd",
    );
    expect(csv.stdout).toContain("laptop,1,1,0,0.48,0.48,0.32,0.32,-0.16\n");
  });

  test("`usage --as` refuses a model that nobody sells, and names the nearest", async () => {
    const { status, stdout, stderr } = await run("usage", "--ledger", ledger, "--as", "gpt-6-soll");
    expect([status, stdout]).toEqual([1, ""]);
    expect(stderr).toContain('there is no price for "gpt-6-soll" (did you mean "gpt-6-sol"?)');
  });
});
