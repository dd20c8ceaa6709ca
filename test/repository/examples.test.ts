// Every config of examples/ loads, and every script runs against a real gateway with simulated upstreams. The scripts find
// `gateway` on their PATH, as users' scripts do.

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
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
const files = readdirSync(FOLDER).filter((file) => file !== "README.md");
const read = (file: string): string => readFileSync(join(FOLDER, file), "utf8");

test.each(files.filter((file) => file.endsWith(".yaml")))("%s loads, and contains no secret", (file) => {
  const text = read(file);
  const names = [...text.matchAll(/\$\{([A-Z_]+)\}/g)].map(([, name = ""]) => name);
  const env = Object.fromEntries(names.map((name) => [name, `value-of-${name.toLowerCase()}`]));
  const { catalog, warnings } = checkConfigText(text, `/nonexistent/${file}`, env);
  expect([warnings, catalog.groups.size > 0]).toEqual([[], true]);
  expect(text).not.toMatch(/credential: (?!\$\{|ollama$)|secret: /m);
});

test("the list of examples names each file", () => {
  const listed = [...read("README.md").matchAll(/^\| \[(.+?)\]/gm)].map(([, file = ""]) => file);
  expect(listed.toSorted()).toEqual(files.toSorted());
});

describe.skipIf(process.platform === "win32" || Bun.which("curl") === null)("example scripts work", () => {
  let folder: TempFolder;
  let upstream: DemoUpstream;
  let gateway: ChildGateway;
  const SECRET = "sk-of-the-tests-of-the-examples";

  beforeAll(async () => {
    folder = makeTempFolder();
    mkdirSync(folder.join("bin"));
    const own = PROGRAM.map((word) => `"${word}"`).join(" ");
    writeFileSync(folder.join("bin/gateway"), `#!/bin/sh\nexec ${own} "$@"\n`);
    chmodSync(folder.join("bin/gateway"), 0o755);
    upstream = startDemoUpstream();
    const channel = { platform: "messages", base_url: upstream.url, credential: "demo-credential" };
    gateway = await startGateway({
      folder,
      config: {
        channels: { first: { ...channel, priority: 1 }, second: { ...channel, priority: 2 } },
        groups: { claude: { platform: "messages", channels: ["first", "second"] } },
        keys: [{ name: "tests", group: "claude", secret: SECRET }],
      },
    });
  });
  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
    folder.remove();
  });

  async function runScript(script: string, ...args: readonly string[]) {
    const child = Bun.spawn(["sh", join(FOLDER, script), ...args], {
      cwd: folder.path,
      env: {
        PATH: `${folder.join("bin")}:${process.env["PATH"] ?? ""}`,
        HOME: folder.path,
        TMPDIR: tmpdir(),
        GATEWAY_CONFIG: gateway.configPath,
        GATEWAY_KEY: SECRET,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    return { stdout, stderr, status: await child.exited };
  }

  test("keys-per-project.sh makes a key for each folder, once", async () => {
    mkdirSync(folder.join("shop"));
    expect((await runScript("keys-per-project.sh", "claude", folder.join("shop"))).status).toBe(0);
    const written = readFileSync(folder.join("shop/.env"), "utf8");
    expect(written).toMatch(/^GATEWAY_KEY=sk-\S+\n$/);
    const again = await runScript("keys-per-project.sh", "claude", folder.join("shop"));
    expect(again.stdout).toContain("shop: has a key already");
    expect(readFileSync(folder.join("shop/.env"), "utf8")).toBe(written);
  });

  test("failover-test.sh shows which channel answered", async () => {
    const { stdout, status } = await runScript("failover-test.sh", "first", "claude-haiku-4-5", gateway.url);
    expect(stdout).toMatch(/^with "first" off, "second" answered \(request req_\S+\)\n$/);
    expect(status).toBe(0);
  });

  test("check-against-provider.sh prints what the ledger has for a dozen requests, after a confirmation", async () => {
    const words = ["claude", "claude-haiku-4-5", gateway.url];
    const before = upstream.requests.length;
    expect(await runScript("check-against-provider.sh", ...words)).toMatchObject({ status: 2, stdout: "" });
    expect(upstream.requests.length).toBe(before);
    const { stdout, stderr, status } = await runScript("check-against-provider.sh", ...words, "--yes");
    const rows = stdout.split("\n").filter((line) => /^ *\d+ {2}/.test(line));
    const lines = new Map(gateway.ledger().map((line) => [line["id"], line]));
    const exact = rows.map((row) => row.trim().split(/ {2,}/)).filter((cells) => cells[9] === "exact");
    expect([status, rows.length, exact.length > 8]).toEqual([0, 13, true]);
    for (const cells of exact) expect(lines.get(cells[3])?.["official_usd"]).toBe(cells[8]);
    expect(stdout + stderr).not.toMatch(/sk-/);
  });

  test("monthly-report.sh writes the costs of a month", async () => {
    const month = new Date().toISOString().slice(0, 7);
    const { stdout, status } = await runScript("monthly-report.sh", month, folder.join("report"));
    const names = ["key", "model", "day"].map((what) => folder.join(`report/usage-${month}-by-${what}.csv`));
    expect([status, stdout.trim().split("\n")]).toEqual([0, names]);
    expect(readFileSync(names[0] ?? "", "utf8")).toMatch(/^key,requests,.*\n(?:.*\n)*tests,/);
    expect((await runScript("monthly-report.sh", "2026-13")).status).toBe(2);
  });
});

test("the dashboard asks for series that /metrics has", () => {
  const named = [...new Set(read("grafana-dashboard.json").match(/gateway_\w+/g))];
  expect(named.filter((name) => !read("../src/gateway/api/metrics.ts").includes(`"${name}"`))).toEqual([]);
});
