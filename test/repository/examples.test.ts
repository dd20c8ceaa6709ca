// Every config of examples/ is loaded by the real loader, and every script runs against a real gateway with simulated
// upstreams. The scripts find `gateway` on their PATH, as users' scripts do.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checkConfigText } from "../../src/config/file/load.ts";
import { type DemoUpstream, startDemoUpstream } from "../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, startGateway } from "../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../harness/temp.ts";
import { PROGRAM } from "../harness/program.ts";

// A script runs a dozen commands and requests, one after the other: a minute on a busy machine.
setDefaultTimeout(120_000);

const FOLDER = join(import.meta.dir, "../../examples");
const files = readdirSync(FOLDER);
const configs = files.filter((file) => file.endsWith(".yaml"));
const scripts = files.filter((file) => file.endsWith(".sh"));
const hasCurl = Bun.which("curl") !== null;

/** Each variable that a config refers to, set. */
function fillEnvironment(text: string): Record<string, string> {
  const names = [...text.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name = ""]) => name);
  return Object.fromEntries(names.map((name) => [name, `value-of-${name.toLowerCase()}`]));
}

describe("configs", () => {
  test.each(configs)("%s loads", (file) => {
    const text = readFileSync(join(FOLDER, file), "utf8");
    const { catalog, warnings } = checkConfigText(text, `/nonexistent/${file}`, fillEnvironment(text));
    expect(warnings).toEqual([]);
    expect(catalog.groups.size).toBeGreaterThan(0);
    const used = new Set(
      [...catalog.groups.values()].flatMap((group) => group.channels.map(({ name }) => name)),
    );
    expect(used).toEqual(new Set(catalog.channels.keys()));
  });

  test.each(configs)("%s holds no secret", (file) => {
    const text = readFileSync(join(FOLDER, file), "utf8");
    expect(text).not.toMatch(/credential: (?!\$\{|ollama$)/m);
    expect(text).not.toMatch(/secret: /);
  });

  test("the list of examples names each file", () => {
    const listed = [...readFileSync(join(FOLDER, "README.md"), "utf8").matchAll(/^\| \[(.+?)\]/gm)];
    const others = files.filter((file) => !file.endsWith(".md"));
    expect(listed.map(([, file = ""]) => file).toSorted()).toEqual(others.toSorted());
  });
});

test("the Grafana dashboard asks for metrics that there are", () => {
  const dashboard = readFileSync(join(FOLDER, "grafana-dashboard.json"), "utf8");
  const source = readFileSync(join(FOLDER, "../src/gateway/control/metrics.ts"), "utf8");
  expect(JSON.parse(dashboard).panels.length).toBeGreaterThan(8);
  const asked = [...new Set(dashboard.match(/gateway_\w+/g))].map((name) => name.replace(/_bucket$/, ""));
  expect(asked.filter((name) => !source.includes(`"${name}"`))).toEqual([]);
});

describe.skipIf(process.platform === "win32")("scripts", () => {
  let folder: TempFolder;
  let upstream: DemoUpstream;
  let gateway: ChildGateway;
  const covered = new Set<string>();
  const SECRET = "sk-of-the-tests-of-the-examples";

  beforeAll(async () => {
    folder = makeTempFolder();
    mkdirSync(folder.join("bin"));
    writeFileSync(
      folder.join("bin/gateway"),
      `#!/bin/sh\nexec ${PROGRAM.map((word) => `"${word}"`).join(" ")} "$@"\n`,
    );
    chmodSync(folder.join("bin/gateway"), 0o755);
    upstream = startDemoUpstream();
    const channel = { platform: "messages", base_url: upstream.url, credential: "demo-credential" };
    gateway = await startGateway({
      folder,
      config: {
        channels: {
          first: { ...channel, priority: 1 },
          second: { ...channel, priority: 2 },
          openai: { ...channel, platform: "responses" },
          google: { ...channel, platform: "content" },
        },
        prices: { "dear-model": { input: "20000", output: "20000" } },
        groups: {
          claude: { platform: "messages", channels: ["first", "second"] },
          codex: { platform: "responses", channels: ["openai"], multiplier: "2" },
          gemini: { platform: "content", channels: ["google"] },
          dear: { platform: "messages", channels: ["first"], multiplier: "2" },
        },
        keys: [{ name: "tests", group: "claude", secret: SECRET }],
      },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
    folder.remove();
  });

  async function runScript(script: string, args: readonly string[], more: Record<string, string> = {}) {
    covered.add(script);
    const child = Bun.spawn(["sh", join(FOLDER, script), ...args], {
      cwd: folder.path,
      env: {
        PATH: `${folder.join("bin")}:${process.env["PATH"] ?? ""}`,
        HOME: folder.path,
        TMPDIR: tmpdir(),
        GATEWAY_CONFIG: gateway.configPath,
        ...more,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr, status] = await Promise.all([
      child.stdout.text(),
      child.stderr.text(),
      child.exited,
    ]);
    return { stdout, stderr, status };
  }

  async function send(secret: string): Promise<number> {
    // Other words than the script's: the same beginning would be the same conversation, which stays on its channel.
    const messages = [{ role: "user", content: "Another conversation" }];
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": secret, "content-type": "application/json" },
      body: JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 16, messages }),
    });
    expect(await answer.text()).not.toBe("");
    return answer.status;
  }

  test("keys-per-project.sh makes a key for each folder, once", async () => {
    for (const name of ["shop", "blog"]) mkdirSync(folder.join(name));
    const words = ["claude", folder.join("shop"), folder.join("blog")];
    expect(await runScript("keys-per-project.sh", words)).toMatchObject({ status: 0 });
    const written = readFileSync(folder.join("shop/.env"), "utf8");
    expect(written).toMatch(/^GATEWAY_KEY=sk-\S+\n$/);
    expect(statSync(folder.join("shop/.env")).mode & 0o777).toBe(0o600);
    const again = await runScript("keys-per-project.sh", words);
    expect(again.stdout).toContain("shop: has a key already");
    expect(readFileSync(folder.join("shop/.env"), "utf8")).toBe(written);
    expect(readFileSync(folder.join("blog/.env"), "utf8")).not.toBe(written);
    const config = readFileSync(gateway.configPath, "utf8");
    expect(config).toContain("shop");
    expect(config).not.toContain(written.slice("GATEWAY_KEY=".length).trim());
  });

  test("keys-per-project.sh says how it is used", async () => {
    const stderr = "usage: keys-per-project.sh GROUP FOLDER...\n";
    expect(await runScript("keys-per-project.sh", ["claude"])).toEqual({ status: 2, stdout: "", stderr });
  });

  test.skipIf(!hasCurl)(
    "failover-test.sh shows which channel answered, and turns the channel on again",
    async () => {
      const words = ["first", "claude-haiku-4-5", gateway.url];
      const { stdout, status } = await runScript("failover-test.sh", words, { GATEWAY_KEY: SECRET });
      expect(status).toBe(0);
      expect(stdout).toMatch(/^with "first" off, "second" answered \(request req_\S+\)\n$/);
      expect(await send(SECRET)).toBe(200);
      const records = await gateway.recorded(2);
      expect(records.map(({ channel }) => channel)).toEqual(["second", "first"]);
    },
  );

  test.skipIf(!hasCurl)("failover-test.sh fails if no channel is left", async () => {
    const words = ["--config", gateway.configPath];
    const off = Bun.spawnSync([...PROGRAM, "channels", "disable", "second", ...words]);
    expect(off.exitCode).toBe(0);
    const found = await runScript("failover-test.sh", ["first", "claude-haiku-4-5", gateway.url], {
      GATEWAY_KEY: SECRET,
    });
    expect(found).toMatchObject({ status: 1, stdout: "" });
    expect(found.stderr).toMatch(/^no other channel answered: status 503, request req_\S+$/m);
    Bun.spawnSync([...PROGRAM, "channels", "enable", "second", ...words]);
  });

  test.skipIf(!hasCurl).each([
    ["claude", "claude-haiku-4-5"],
    ["codex", "gpt-5.4-nano"],
    ["gemini", "gemini-3.8-flash"],
  ])(
    "check-against-provider.sh prints what the ledger has for a dozen requests of %s",
    async (group, model) => {
      const words = [group, model, gateway.url, "--yes"];
      const { stdout, stderr, status } = await runScript("check-against-provider.sh", words);
      expect([status, stderr.includes("at your own cost")]).toEqual([0, true]);
      const rows = stdout.split("\n").filter((line) => /^ *\d+ {2}/.test(line));
      expect(rows).toHaveLength(13);
      const cells = rows.map((row) => row.trim().split(/ {2,}/));
      // Each row repeats what the ledger line of its id has.
      const lines = new Map(gateway.ledger().map((line) => [String(line["id"]), line]));
      for (const [, request, , id = "", input, read, written, output, official, basis] of cells.slice(
        0,
        11,
      )) {
        // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the test's own upstream counts tokens
        const usage = (lines.get(id)?.["usage"] ?? {}) as Record<string, number>;
        const sum = (kinds: readonly string[]) => kinds.reduce((all, kind) => all + (usage[kind] ?? 0), 0);
        const counts = [sum(["input"]), sum(["cache_read"]), sum(["output"])].map(String);
        expect([lines.has(id), input, read, output]).toEqual([true, ...counts]);
        expect(written).toBe(String(sum(["cache_write", "cache_write_5m", "cache_write_1h"])));
        expect(basis).toEqual(request === "left early" ? expect.any(String) : "exact");
        if (basis === "exact") expect(official).toBe(String(lines.get(id)?.["official_usd"]));
      }
      expect(cells[11]).toContain("no ledger line");
      expect(cells.map(([, request]) => request)).toContain("left early");
      expect(stdout).toContain("Compare with https://");
      // Its key is gone, and no secret was printed.
      expect(readFileSync(gateway.configPath, "utf8")).not.toContain("check-");
      expect(stdout + stderr).not.toMatch(/sk-/);
    },
  );

  test.skipIf(!hasCurl)("check-against-provider.sh sends nothing without a confirmation", async () => {
    const before = upstream.requests.length;
    const found = await runScript("check-against-provider.sh", ["claude", "claude-haiku-4-5", gateway.url]);
    expect(found).toMatchObject({ status: 2, stdout: "" });
    expect(found.stderr).toContain("Nothing was sent");
    expect(upstream.requests.length).toBe(before);
  });

  test.skipIf(!hasCurl)(
    "check-against-provider.sh is stopped by its limit before it costs a dollar",
    async () => {
      const words = ["dear", "dear-model", gateway.url, "--yes"];
      const { stdout, stderr, status } = await runScript("check-against-provider.sh", words);
      expect(status).toBe(1);
      expect(stderr).toMatch(/may spend \$1\.80* \(usd_total\) and has spent/);
      expect(stdout.split("\n").filter((line) => / (200|429) /.test(line)).length).toBeLessThan(5);
    },
  );

  test("monthly-report.sh writes the costs of a month", async () => {
    expect(await send(SECRET)).toBe(200);
    const month = new Date().toISOString().slice(0, 7);
    const out = folder.join("report");
    const { stdout, status } = await runScript("monthly-report.sh", [month, out]);
    expect(status).toBe(0);
    const names = ["key", "model", "day"].map((what) => `${out}/usage-${month}-by-${what}.csv`);
    expect(stdout.trim().split("\n")).toEqual(names);
    const [titles = "", ...rows] = readFileSync(names[0] ?? "", "utf8").split("\n");
    expect(titles).toStartWith("key,requests,");
    expect(rows.some((row) => row.startsWith("tests,"))).toBe(true);
  });

  test.each([
    ["2024-02", "2024-02-29"],
    ["2026-02", "2026-02-28"],
    ["2026-04", "2026-04-30"],
    ["2026-12", "2026-12-31"],
  ])("monthly-report.sh knows the last day of %s", async (month, last) => {
    const fake = folder.join("fake");
    mkdirSync(fake, { recursive: true });
    writeFileSync(join(fake, "gateway"), `#!/bin/sh\necho "$@" >> "${fake}/words"\n`);
    chmodSync(join(fake, "gateway"), 0o755);
    const path = `${fake}:${process.env["PATH"] ?? ""}`;
    await runScript("monthly-report.sh", [month, folder.join("out")], { PATH: path });
    expect(readFileSync(join(fake, "words"), "utf8")).toContain(`--since ${month}-01 --until ${last} `);
  });

  test.each(["", "2026-13", "2026-00", "november", "2026-1"])(
    "monthly-report.sh refuses the month %j",
    async (month) => {
      const found = await runScript("monthly-report.sh", month === "" ? [] : [month]);
      expect(found).toMatchObject({ status: 2, stdout: "" });
    },
  );

  test.skipIf(!hasCurl)("every script was run", () => {
    expect([...covered].toSorted()).toEqual(scripts.toSorted());
  });
});
