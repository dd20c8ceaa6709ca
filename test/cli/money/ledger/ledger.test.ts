import { expect, test } from "bun:test";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { openLedger } from "../../../../src/billing/ledger/ledger.ts";
import { takeLock } from "../../../../src/lib/files/file-lock.ts";
import { startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";
import { keyOf, makeConfig, startGateway } from "../../../harness/gateway.ts";
import { STOPPED } from "../../../harness/program.ts";
import { makeTempFolder } from "../../../harness/temp.ts";
import {
  bill,
  draftOf,
  intentOf,
  optionsFor,
  readWholeLedger,
} from "../../../billing/ledger/ledger-samples.ts";
import { runProcess } from "../../driving.ts";
import { AROUND, run, writeLedger } from "./ledger-runs.ts";

const UNPRICED = {
  basis: "unpriced",
  prices: null,
  price_source: null,
  tier: null,
  official_usd: null,
  charge_usd: null,
} as const;

test("`ledger verify` accepts a valid ledger", async () => {
  const path = writeLedger([{ id: "req_1" }, { id: "req_2" }]);
  const { status, stdout } = await run("ledger", "verify", "--ledger", path);
  expect(status).toBe(0);
  expect(stdout).toStartWith("OK: 2 lines verified in 1 file, no corrections, ");
  const json: unknown = JSON.parse((await run("ledger", "verify", "--ledger", path, "--json")).stdout);
  expect(json).toEqual({
    ledger: path,
    right: true,
    files: 1,
    lines: 2,
    corrections: 0,
    findings: 0,
    unchecked: 0,
    notes: [expect.stringContaining("The journal is not next to this ledger")],
    problems: [],
  });
});

test("`ledger verify` says that a ledger was removed if its journal is still there", async () => {
  const path = writeLedger([{ id: "req_1" }]);
  renameSync(path, `${path}.open`);
  const { status, stderr } = await run("ledger", "verify", "--ledger", path);
  expect(status).toBe(1);
  expect(stderr).toContain("was removed, but its journal was not");
});

test("P139: `ledger verify` names file, line and request of each problem, says what to do, and fails", async () => {
  const path = writeLedger([{ id: "req_1" }, { id: "req_2" }, { id: "req_3" }]);
  writeFileSync(
    path,
    readFileSync(path, "utf8").replace('"charge_usd":"0.011106"', '"charge_usd":"0.011105"'),
  );
  const { status, stdout, stderr } = await run("ledger", "verify", "--ledger", path);
  expect(status).toBe(1);
  expect(stdout.split("\n")).toEqual([
    "ledger.jsonl:1 req_1: charge_usd is 0.011105, but usage, prices and multiplier give 0.011106",
    "ledger.jsonl:2 req_2: it does not follow line 1: that line was changed, lines between them are missing, or this one does not belong here",
    "",
  ]);
  expect(stderr).toContain("Compare these lines with a backup and restore them");
  expect(stderr).toContain(`The ledger ${path} has 2 problems.`);
  const forScripts = await run("ledger", "verify", "--ledger", path, "--json");
  expect(JSON.parse(forScripts.stdout)).toMatchObject({ right: false, findings: 2 });
  expect(forScripts.status).toBe(1);
});

test("`ledger show` reports a damaged line", async () => {
  const path = writeLedger([{ id: "req_1" }]);
  writeFileSync(path, `${JSON.stringify({ v: 1, id: "req_2" })}\n\0\0\0\n`, { flag: "a" });
  const shown = await run("ledger", "show", "req_2", "--ledger", path);
  expect(shown).toMatchObject({ status: 1, stdout: "" });
  expect(shown.stderr).toBe(
    "gateway: ledger.jsonl:2 is damaged: `gateway ledger verify` says what is wrong with it.\n",
  );
});

test("`ledger reprice` writes through a running gateway, and two reprices at the same time correct no request twice", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream();
  const prices = { "claude-haiku-4-5": { input: "1", output: "1" } };
  const gateway = await startGateway({ config: makeConfig(upstream, { prices }), folder });
  for (let index = 0; index < 3; index += 1) {
    const body = JSON.stringify({
      model: "claude-haiku-4-5",
      max_tokens: 64,
      messages: [{ role: "user", content: "Hello" }],
    });
    const headers = { "x-api-key": keyOf("messages"), "content-type": "application/json" };
    expect((await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body })).status).toBe(200);
  }
  await gateway.recorded(3);
  const config = {
    listen: { port: 0 },
    ...makeConfig(upstream, { prices: { "claude-haiku-4-5": { input: "2", output: "2" } } }),
  };
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
  const args = ["ledger", "reprice", "--since", "1d", "--config", folder.join("gateway.yaml"), "--json"];
  const runs = await Promise.all([runProcess(AROUND, ...args), runProcess(AROUND, ...args)]);
  const written = runs
    .filter(({ status }) => status === 0)
    .map(({ stdout }) => JSON.parse(stdout).corrections);
  expect(written.reduce((sum: number, count: number) => sum + count, 0)).toBe(3);
  for (const { status, stderr } of runs)
    // The process that has just taken the lock may not have written its name yet.
    if (status !== 0) expect(stderr).toMatch(/reprice\.lock is held by (?:another )?process/);
  expect((await run(...args)).stdout).toContain('"corrections":0');
  expect(await gateway.stop()).toBe(STOPPED);
  upstream.stop();
  const lines = readWholeLedger(folder.join("ledger.jsonl")).lines;
  expect(lines.filter((line) => line["corrects"] !== undefined)).toHaveLength(3);
  expect((await run("ledger", "verify", "--ledger", folder.join("ledger.jsonl"))).status).toBe(0);
});

test("`ledger reprice` reads nothing while another reprice has the lock", async () => {
  const path = writeLedger([{ id: "req_1" }]);
  const lock = takeLock(`${path}.reprice.lock`);
  const refused = await runProcess(AROUND, "ledger", "reprice", "1d", "--ledger", path);
  lock.release();
  expect([refused.status, existsSync(`${path}.index`)]).toEqual([1, false]);
});

test.each(["a running gateway", "no gateway"])(
  "P142: with %s, `ledger accept` accepts a loss that the gateway found when it started",
  async (how) => {
    using folder = makeTempFolder();
    const path = folder.join("ledger.jsonl");
    const ledger = openLedger(optionsFor(path));
    await bill(ledger, "req_1");
    await bill(ledger, "req_2");
    await ledger.close();
    const [first = ""] = readFileSync(path, "utf8").split("\n");
    writeFileSync(path, `${first}\n`);
    const upstream = startDemoUpstream();
    const gateway = await startGateway({ config: makeConfig(upstream), folder });
    await gateway.noticed("lines were gone or changed");
    if (how === "no gateway") expect(await gateway.stop()).toBe(STOPPED);
    const found = await run("ledger", "verify", "--ledger", path);
    expect([found.status, found.stdout]).toEqual([1, expect.stringContaining("ledger.jsonl:2 mark_")]);
    const accepted = await run("ledger", "accept", "--ledger", path);
    expect([accepted.status, accepted.stdout]).toEqual([
      0,
      expect.stringContaining("lines were gone or changed"),
    ]);
    expect((await run("ledger", "accept", "--ledger", path)).stderr).toContain("Nothing to accept");
    expect((await run("ledger", "verify", "--ledger", path)).status).toBe(0);
    // These commands open the index until their process ends. On Windows, the folder cannot be removed before.
    const ask = async (...words: string[]) => (await runProcess(AROUND, ...words, "--ledger", path)).stdout;
    expect(await ask("ledger", "show", "last")).toContain("Request req_1");
    expect(JSON.parse(await ask("usage", "--json")).total.requests).toBe(1);
    if (how !== "no gateway") expect(await gateway.stop()).toBe(STOPPED);
    upstream.stop();
  },
);

test("`ledger reprice` shows changes, appends corrections once, and refuses while another process writes the ledger", async () => {
  const path = writeLedger([
    {
      id: "req_1",
      ...UNPRICED,
      model: "mine",
      upstream_model: "mine",
      usage: { input: 2_000_000 },
      multiplier: "0.5",
    },
  ]);
  const config = join(dirname(path), "gateway.yaml");
  writeFileSync(
    config,
    [
      "channels: { one: { platform: messages, base_url: http://127.0.0.1:1, credential: x } }",
      "groups: { claude: { platform: messages, multiplier: 1, channels: [one] } }",
      "keys: []",
      'prices: { mine: { input: "3", output: "15" } }',
    ].join("\n"),
  );
  const args = ["ledger", "reprice", "2026-11", "--config", config];
  expect((await run("ledger", "reprice", "--config", config)).stderr).toContain("Name the period");
  const dry = await run(...args, "--dry-run", "--json");
  const models = [{ model: "mine", requests: 1, unpriced: 1, was_usd: "0", now_usd: "3" }];
  expect(JSON.parse(dry.stdout)).toEqual({ dry_run: true, corrections: 1, models });
  expect(readWholeLedger(path).lines).toHaveLength(1);

  const running = openLedger(optionsFor(path));
  const refused = await run(...args);
  expect(refused.status).toBe(1);
  expect(refused.stderr).toContain(`is being written by process ${process.pid} since`);
  expect(refused.stderr).toContain("Stop the gateway first, or use --dry-run.");
  void running.open(intentOf("req_2"));
  running.append(draftOf("req_2"));
  await running.close();

  expect(await run(...args)).toMatchObject({ status: 0 });
  expect(readWholeLedger(path).lines.at(-1)).toMatchObject({
    corrects: "req_1",
    request_time: "2026-11-20T10:00:00.000Z",
    official_usd: "6",
    charge_usd: "3",
    was: { official_usd: null, charge_usd: null },
  });
  expect((await run("ledger", "verify", "--ledger", path)).stdout).toContain(", 1 correction, ");
  expect((await run("usage", "--ledger", path, "--by", "model", "--json")).stdout).toContain(
    '"charge_usd":"3","cache_hit_rate":0,"unpriced":0',
  );
  const again = await run(...args);
  expect(again).toMatchObject({ status: 0, stdout: "" });
  expect(again.stderr).toContain("Nothing to do");
});

test("P141: `ledger show` finds a request by the beginning of its id, with or without req_", async () => {
  const ids = ["req_0mi9x2k3a000001aaaaaaaa", "req_0mi9x2k3a000002aaaaaaaa", "req_0mi9x2k3b000003aaaaaaaa"];
  const ledger = writeLedger(ids.map((id) => ({ id })));
  for (const words of ["0mi9x2k3b", "req_0mi9x2k3b", ids[2]!])
    expect((await run("ledger", "show", words, "--ledger", ledger)).stdout).toContain(`Request ${ids[2]}\n`);
  const several = await run("ledger", "show", "0mi9x2k3a", "--ledger", ledger);
  expect([several.status, several.stdout]).toEqual([1, ""]);
  expect(several.stderr).toBe(
    `gateway: Several requests begin with 0mi9x2k3a. Use more of the id:\n  ${ids[0]}\n  ${ids[1]}\n`,
  );
  expect((await run("ledger", "show", "0zz", "--ledger", ledger)).stderr).toContain(
    "There is no request 0zz in",
  );
});

test("`ledger show last` shows the last request, or with --key the last request of that key", async () => {
  const drafts = Array.from({ length: 200 }, (_, index) => ({
    id: `req_${String(index).padStart(4, "0")}`,
    key: index === 3 ? "laptop" : "ci",
  }));
  const ledger = writeLedger(drafts);
  const lastOf = async (...more: string[]): Promise<string | undefined> =>
    /^Request (\S+)/.exec((await run("ledger", "show", "last", "--ledger", ledger, ...more)).stdout)?.[1];
  expect(await lastOf()).toBe("req_0199");
  expect(await lastOf("--key", "laptop")).toBe("req_0003");
  expect((await run("ledger", "show", "last", "--key", "x", "--ledger", ledger)).stderr).toContain(
    'There is no request of the key "x" in',
  );
  expect((await run("ledger", "show", "req_0001", "--key", "x", "--ledger", ledger)).status).toBe(2);
});
