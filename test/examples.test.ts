// Every config of examples/ is loaded by the real loader, and every script runs against a real gateway with simulated
// upstreams. The scripts find `gateway` on their PATH, as users' scripts do.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkConfigText } from "../src/config/file.ts";
import { type DemoUpstream, startDemoUpstream } from "../src/demo/upstream.ts";
import { type ChildGateway, startGateway } from "./harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "./harness/temp.ts";

const FOLDER = join(import.meta.dir, "../examples");
const MAIN = join(import.meta.dir, "../src/main.ts");
const files = readdirSync(FOLDER);
const configs = files.filter((file) => file.endsWith(".yaml"));
const scripts = files.filter((file) => file.endsWith(".sh"));

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
    expect(listed.map(([, file = ""]) => file).toSorted()).toEqual([...configs, ...scripts].toSorted());
  });
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
    writeFileSync(folder.join("bin/gateway"), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`);
    chmodSync(folder.join("bin/gateway"), 0o755);
    upstream = startDemoUpstream({ platform: "messages" });
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

  async function runScript(script: string, args: readonly string[], more: Record<string, string> = {}) {
    covered.add(script);
    const child = Bun.spawn(["sh", join(FOLDER, script), ...args], {
      cwd: folder.path,
      env: {
        PATH: `${folder.join("bin")}:${process.env["PATH"] ?? ""}`,
        HOME: folder.path,
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
    expect(await runScript("keys-per-project.sh", ["claude"])).toMatchObject({ status: 2, stdout: "" });
  });

  test("failover-test.sh shows which channel answered, and turns the channel on again", async () => {
    const words = ["first", "claude-haiku-4-5", gateway.url];
    const { stdout, status } = await runScript("failover-test.sh", words, { GATEWAY_KEY: SECRET });
    expect(status).toBe(0);
    expect(stdout).toMatch(/^with "first" off, "second" answered \(request req_\S+\)\n$/);
    expect(await send(SECRET)).toBe(200);
    const records = await gateway.recorded(2);
    expect(records.map(({ channel }) => channel)).toEqual(["second", "first"]);
  });

  test("failover-test.sh fails if no channel is left", async () => {
    const words = ["--config", gateway.configPath];
    const off = Bun.spawnSync([process.execPath, MAIN, "channels", "disable", "second", ...words]);
    expect(off.exitCode).toBe(0);
    const found = await runScript("failover-test.sh", ["first", "claude-haiku-4-5", gateway.url], {
      GATEWAY_KEY: SECRET,
    });
    expect(found).toMatchObject({ status: 1, stdout: "" });
    expect(found.stderr).toMatch(/^no other channel answered: status 503, request req_\S+$/m);
    Bun.spawnSync([process.execPath, MAIN, "channels", "enable", "second", ...words]);
  });

  test("monthly-report.sh writes the costs of a month", async () => {
    expect(await send(SECRET)).toBe(200);
    const month = new Date().toISOString().slice(0, 7);
    const out = folder.join("report");
    const { stdout, status } = await runScript("monthly-report.sh", [month, out]);
    expect(status).toBe(0);
    const names = ["key", "model", "day"].map((what) => `${out}/usage-${month}-by-${what}.csv`);
    expect(stdout.trim().split("\n")).toEqual(names);
    const [titles = "", row = ""] = readFileSync(names[0] ?? "", "utf8").split("\n");
    expect(titles).toStartWith("key,requests,");
    expect(row).toStartWith("tests,");
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

  test("every script was run", () => {
    expect([...covered].toSorted()).toEqual(scripts.toSorted());
  });
});
