// `gateway channels add` takes a provider or a URL, checks it, and keeps the comments of the config.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, linkSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { expectMode, useFolder } from "../../harness/temp.ts";
import { KEYS, type Outcome, run, runOnTerminal, runProcess } from "../driving.ts";

const CONFIG = `# mine
channels:
  # the main one
  main:
    platform: messages # native
    base_url: https://a.example
    credential: x
groups:
  claude: { platform: messages, channels: [main] } # at cost
keys:
  - { name: laptop, group: claude, secret: sk-laptop } # by hand
`;

const folder = useFolder(CONFIG);
const { catalog, text } = folder;
let upstream: ReturnType<typeof startDemoUpstream>;
beforeEach(() => {
  upstream = startDemoUpstream({ platform: "messages" });
});
afterEach(() => upstream.stop());

const add = (stdin: string, ...args: string[]): Promise<Outcome> =>
  run({ folder: folder.path, stdin }, "channels", "add", ...args);

/** Checks that every line of the user is still there, in the same order. */
function expectKept(): void {
  const lines = text().split("\n");
  const places = CONFIG.trimEnd()
    .split("\n")
    .map((line) => lines.findIndex((each) => each.startsWith(line.replace(/ } #.*| ] } .*$/, ""))));
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((a, b) => a - b));
}

describe("`gateway channels add` adds a channel and checks it", () => {
  test.each(["ollama", "lmstudio"])("`channels add` adds the server %s as a free channel", async (preset) => {
    expect((await add("", preset, "--no-check")).status).toBe(0);
    expect(catalog().channels.get(preset)?.free).toBe(true);
    expectKept();
  });

  test.each([
    ["that another channel reads", {}, "${DEEPSEEK_API_KEY}", "DEEPSEEK", "DEEPSEEK"],
    ["that the shell exports", { DEEPSEEK_API_KEY: "sk-old-1" }, "x", "DEEPSEEK", "DEEPSEEK"],
    [
      "named after the channel, if another channel reads it",
      {},
      "${GATEWAY_DEEPSEEK_API_KEY}",
      "GATEWAY_DEEPSEEK",
      "DEEPSEEK_2",
    ],
    ["named after the channel, if another config reads it", {}, "x", "GATEWAY_DEEPSEEK", "DEEPSEEK_2"],
  ])("`channels add` does not overwrite a variable %s", async (_, env, other, old, own) => {
    const [variables, place] = [`${old}_API_KEY=sk-old-1\n`, folder.join("gateway.env")];
    writeFileSync(folder.join("gateway.yaml"), CONFIG.replace("credential: x", `credential: ${other}`), {
      mode: 0o600,
    });
    writeFileSync(place, variables, { mode: 0o600 });
    const words = ["channels", "add", "deepseek", "--credential", "-", "--no-check"];
    await run({ folder: folder.path, stdin: "sk-new-1\n", env }, ...words);
    expect(readFileSync(place, "utf8")).toBe(`${variables}GATEWAY_${own}_API_KEY=sk-new-1\n`);
  });

  test("`gateway channels add` adds a URL with a new group, and puts the credential into gateway.env, which git ignores", async () => {
    Bun.spawnSync(["git", "init", "-q", folder.path]);
    const flags = ["--platform", "messages", "--name", "demo", "--credential", "-", "--json"];
    const { status, stdout, stderr } = await add("secret-12345\n", upstream.url, ...flags);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      name: "demo",
      platform: "messages",
      base_url: upstream.url,
      groups: ["demo"],
    });
    expect(stderr).toMatch(/accepts the credential and lists \d+ models/);
    expect(text()).not.toContain("secret-12345");
    expectMode(folder.join("gateway.env"), 0o600);
    expect(readFileSync(folder.join(".gitignore"), "utf8")).toContain("\ngateway.env\n");
    expect(catalog().channels.get("demo")).toMatchObject({
      credential: "secret-12345",
      platform: "messages",
    });
    expect(
      catalog()
        .groups.get("demo")
        ?.channels.map(({ name }) => name),
    ).toEqual(["demo"]);
    expectKept();
  });

  test.each(process.platform === "win32" ? ["hard"] : ["symbolic", "hard"])(
    "`channels add` changes nothing if gateway.env is a %s link",
    async (kind) => {
      const own = folder.join("dotfiles.env");
      writeFileSync(own, "OTHER=1\n", { mode: 0o600 });
      (kind === "hard" ? linkSync : symlinkSync)(own, folder.join("gateway.env"));
      const flags = ["--platform", "messages", "--name", "demo", "--no-check", "--credential", "-"];
      const { status, stdout, stderr } = await add("secret-12345\n", upstream.url, ...flags);
      expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
      expect(stderr).toContain("Nothing was changed");
      expect(stderr).toContain("Or add GATEWAY_DEMO_API_KEY=… to that file yourself");
      expect(stderr).not.toContain("secret-12345");
      expect(readFileSync(folder.join("gateway.env"), "utf8")).toBe("OTHER=1\n");
      expect(text()).toBe(CONFIG);
    },
  );

  test("several `channels add` at once lose no credential", async () => {
    const names = ["one", "two", "three", "four"];
    const flags = ["--platform", "messages", "--no-check", "--credential", "-"];
    const outcomes = await Promise.all(
      names.map((name) =>
        runProcess(
          { folder: folder.path, stdin: `secret-of-${name}` },
          "channels",
          "add",
          upstream.url,
          ...flags,
          "--name",
          name,
        ),
      ),
    );
    expect(outcomes.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
    const { channels } = catalog();
    expect(names.map((name) => channels.get(name)?.credential)).toEqual(
      names.map((name) => `secret-of-${name}`),
    );
  });

  test("`gateway channels add` adds a channel to an existing group", async () => {
    const flags = ["--platform", "messages", "--name", "second", "--group", "claude", "--credential", "-"];
    expect((await add("secret-12345", upstream.url, ...flags)).status).toBe(0);
    expect(
      catalog()
        .groups.get("claude")
        ?.channels.map(({ name }) => name),
    ).toEqual(["main", "second"]);
    expect(text()).toContain("  claude: { platform: messages, channels: [main, second] } # at cost\n");
  });

  test("if a preset's variable is set, `channels add` refers to it and does not copy its value", async () => {
    const env = { DEEPSEEK_API_KEY: "hush-hush-1" };
    const { status } = await run({ folder: folder.path, env }, "channels", "add", "deepseek", "--no-check");
    expect(status).toBe(0);
    expect(text()).toContain("${DEEPSEEK_API_KEY}");
    expect(existsSync(folder.join("gateway.env"))).toBe(false);
    const { channels, groups } = catalog(env);
    expect(channels.get("deepseek")?.baseUrl.href).toBe("https://api.deepseek.com/anthropic");
    expect(groups.has("deepseek")).toBe(true);
    expectKept();
  });

  test("`gateway channels add` fills a config without channels and groups; a server on this machine needs no credential", async () => {
    writeFileSync(folder.join("gateway.yaml"), "# empty\nchannels:\ngroups: {}\n");
    const flags = ["--platform", "messages", "--name", "demo", "--no-check"];
    expect((await add("", upstream.url, ...flags)).status).toBe(0);
    expect([...catalog().groups.keys()]).toEqual(["demo"]);
    expect(text()).not.toContain("credential");
    expect(text()).toStartWith("# empty\n");
  });

  test.skipIf(process.platform === "win32")("channels add on a terminal asks for a credential", async () => {
    const args = ["channels", "add", upstream.url, "--platform", "messages", "--name", "demo"];
    const screen = runOnTerminal({ folder: folder.path }, ...args);
    await screen.shows("paste the credential");
    screen.press(`pasted-12345${KEYS.enter}`);
    expect(await screen.status).toBe(0);
    expect(screen.raw()).not.toContain("pasted");
    expect(catalog().channels.get("demo")?.credential).toBe("pasted-12345");
  });

  test("`gateway channels add` adds nothing when the upstream refuses the credential", async () => {
    using refusing = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => new Response("{}", { status: 401 }),
    });
    const url = `http://127.0.0.1:${refusing.port}`;
    const flags = ["--platform", "messages", "--name", "demo", "--credential", "-"];
    const { status, stderr } = await add("secret-12345", url, ...flags);
    expect(status).toBe(1);
    expect(stderr).toContain("refuses the credential (401)");
    expect(text()).toBe(CONFIG);
    expect(existsSync(folder.join("gateway.env"))).toBe(false);
    expect((await add("secret-12345", url, ...flags, "--no-check")).status).toBe(0);
  });

  test.each([
    ["an unknown preset", ["deepsek"], 2, 'did you mean "deepseek"?'],
    ["a URL without a platform", ["https://x.example"], 2, "--platform is missing"],
    ["a missing credential", ["deepseek"], 2, "set DEEPSEEK_API_KEY"],
    ["a credential among the arguments", ["deepseek", "--credential", "sk-x"], 2, "accepts only `-`"],
    [
      "a taken name",
      ["deepseek", "--name", "main", "--credential", "-", "--no-check"],
      1,
      "another name with --name",
    ],
    [
      "an unknown group",
      ["deepseek", "--group", "claud", "--credential", "-", "--no-check"],
      1,
      'did you mean "claude"?',
    ],
    [
      "a group of another platform",
      ["xai", "--group", "claude", "--credential", "-", "--no-check"],
      1,
      "speaks responses",
    ],
  ])("`gateway channels add` refuses %s", async (_, args, expected, sentence) => {
    const { status, stdout, stderr } = await add("secret-12345", ...args);
    expect({ status, stdout, config: text() }).toEqual({ status: expected, stdout: "", config: CONFIG });
    expect(stderr).toContain(sentence);
    expect(existsSync(folder.join("gateway.env"))).toBe(false);
  });
});
