// Tests what `gateway` shows when it is called without a command.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { renameSync, writeFileSync } from "node:fs";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { run } from "../driving.ts";
import { writeLedger } from "../money/ledger/ledger-runs.ts";

const COMMANDS = [
  "gateway run claude",
  "gateway open",
  "gateway usage today",
  "gateway top",
  "gateway doctor",
];

test("without a config, `gateway` alone names the commands with which to begin", async () => {
  using folder = makeTempFolder();
  const env = { GATEWAY_CONFIG: "", XDG_CONFIG_HOME: folder.path };
  const { status, stdout, stderr } = await run({ folder: folder.path, env });
  expect([status, stderr]).toEqual([0, ""]);
  expect(await run({ folder: folder.path })).toMatchObject({ status: 2, stdout: "" });
  expect(stdout).toEndWith("\n\nAll commands: gateway --help\n");
  expect(stdout).toStartWith("There is no config yet. `gateway init` writes one");
  for (const command of COMMANDS) expect(stdout).toContain(`  ${command} `);
});

describe("`gateway` without a command shows what runs and what needs attention", () => {
  let upstream: ReturnType<typeof startDemoUpstream>;
  let gateway: ChildGateway;

  beforeAll(async () => {
    upstream = startDemoUpstream();
    const folder = makeTempFolder();
    gateway = await startGateway({
      config: makeConfig(upstream),
      folder,
      env: { XDG_RUNTIME_DIR: folder.path },
    });
    const body = { model: "claude-opus-4-5", max_tokens: 50, messages: [{ role: "user", content: "Hello" }] };
    const headers = { "x-api-key": keyOf("messages") };
    await fetch(`${gateway.url}/v1/messages`, { method: "POST", headers, body: JSON.stringify(body) });
    await gateway.recorded(1);
  });
  afterAll(async () => {
    await gateway.stop();
    gateway.folder.remove();
    upstream.stop();
  });

  const show = (...words: string[]) => {
    const env = { XDG_RUNTIME_DIR: gateway.folder.path, GATEWAY_CONFIG: "" };
    return run({ folder: gateway.folder.path, env }, ...words);
  };

  test.each([
    ["--config FILE", (path: string) => ["--config", path]],
    ["--config=FILE", (path: string) => [`--config=${path}`]],
  ])("`gateway %s` shows what runs and where, and what was spent", async (_, words) => {
    const { status, stdout, stderr } = await show(...words(gateway.configPath));
    expect([status, stderr]).toEqual([0, ""]);
    const [first, second, third] = stdout.split("\n");
    expect(first).toMatch(new RegExp(`^The gateway runs on ${gateway.url} \\(version [\\d.]+\\)\\.$`));
    expect(second).toContain(gateway.configPath);
    const charged = String(gateway.ledger()[0]?.["charge_usd"]);
    expect(Number(charged)).toBeGreaterThan(0);
    const [, today, month] = /^spent today: \$([\d.]+) {3}this month: \$([\d.]+)$/.exec(third ?? "") ?? [];
    expect(Number(today)).toBeCloseTo(Number(charged), 6);
    expect(month).toBe(today);
    const flag = ` --config ${gateway.configPath}`;
    for (const command of COMMANDS.slice(1)) expect(stdout).toContain(`  ${command}${flag} `);
    expect(stdout).toContain(`  gateway run${flag} claude `);
  });

  test("if the running gateway has another config, `gateway open` says so", async () => {
    const { stderr } = await show("open", "--print");
    // The text also depends on whether other gateways of this user run.
    const shown = [`Its ledger: ${gateway.folder.join("ledger.jsonl")}`, `open --url ${gateway.url}`];
    expect(shown.some((text) => stderr.includes(text))).toBe(true);
  });

  test("each problem that needs attention has a line of its own", async () => {
    using folder = makeTempFolder();
    const { keys: _, ...config } = makeConfig(upstream);
    config.channels["messages"] = { ...config.channels["messages"], credential: "${UNSET}" };
    writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
    const unpriced = { basis: "unpriced", prices: null, official_usd: null, charge_usd: null } as const;
    renameSync(writeLedger([{ id: "1", ...unpriced }]), folder.join("ledger.jsonl"));
    const { status, stdout } = await run({ folder: folder.path });
    expect(status).toBe(0);
    expect(stdout).toStartWith("The gateway does not run. Start it: gateway serve\n");
    for (const text of [
      "1 request has no price and is in no amount: gateway usage --by model, then gateway prices check",
      `UNSET is not set, but the config uses it: add UNSET=… to ${folder.join("gateway.env")}`,
      "there are no keys yet: gateway keys add",
    ])
      expect(stdout).toContain(`\nattention: ${text}\n`);
  });

  test("a channel that was disabled and a limit that is spent need attention", async () => {
    await show("channels", "disable", "messages", "--config", gateway.configPath);
    await show("keys", "limit", "messages", "usd_total=0.000001", "--config", gateway.configPath);
    const { stdout } = await show("--config", gateway.configPath);
    const spent = 'The key "messages" has reached its limit: $';
    expect(stdout).toContain(`\nattention: ${spent}`);
    expect((await show("doctor", "--config", gateway.configPath)).stdout).toContain(spent);
    expect(stdout).toContain("\nattention: channel messages: disabled");
  });

  test("a changed config that the running gateway refuses needs attention", async () => {
    const words = ["channels", "set", "messages", "credential=${ONLY_HERE}", "--no-check"];
    const env = { XDG_RUNTIME_DIR: gateway.folder.path, ONLY_HERE: "x" };
    const runHere = (...all: string[]) =>
      run({ folder: gateway.folder.path, env }, ...all, "--config", gateway.configPath);
    expect((await runHere(...words)).status).toBe(1);
    expect((await runHere()).stdout).toContain("attention: the changed config is not in force: ");
    expect((await runHere("doctor")).stdout).toContain("✗ config");
  });
});

test("a config that cannot be used is an error with status 2", async () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), "channels: 5\n", { mode: 0o600 });
  expect(await run({ folder: folder.path })).toMatchObject({ status: 2, stdout: "" });
});
