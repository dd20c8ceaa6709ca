import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { groupPlatform } from "../../../src/config/schema.ts";
import { ACCOUNTS } from "../../../src/cli/channels/provider.ts";
import { loadConfig } from "../../../src/config/file/load.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { expectMode, useFolder } from "../../harness/temp.ts";
import { KEYS, run, runOnTerminal, runProcess } from "../driving.ts";
import { PROGRAM } from "../../harness/program.ts";

const folder = useFolder();
const path = () => folder.join("gateway.yaml");

describe("`gateway init` writes a config that works", () => {
  test("`gateway init` sets up each provider whose credential is in the environment, and writes no credential", async () => {
    const env = { ANTHROPIC_API_KEY: "sk-ant-hush", GEMINI_API_KEY: "AIza-hush" };
    const { status, stdout, stderr } = await run({ folder: folder.path, env }, "init");
    expect(status).toBe(0);
    const secrets = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/ +/));
    expect(secrets.map(([name]) => name)).toEqual(["claude", "gemini"]);
    const { catalog } = loadConfig(path(), env);
    for (const [name = "", secret = ""] of secrets) {
      expect(catalog.keysBySha256.get(sha256Hex(secret))).toMatchObject({ name, group: { name } });
      expect(stderr).not.toContain(secret);
    }
    expect(catalog.channels.get("anthropic-main")).toMatchObject({
      platform: "messages",
      credential: "sk-ant-hush",
    });
    expect(catalog.channels.get("google-main")).toMatchObject({
      platform: "content",
      credential: "AIza-hush",
    });
    expect(readFileSync(path(), "utf8")).not.toContain("hush");
    expectMode(path(), 0o600);
    expect(stderr).toEndWith(" run claude\n");
  });

  test("`init --json` prints the keys as one document", async () => {
    const { stdout } = await run({ folder: folder.path, env: { OPENAI_API_KEY: "x" } }, "init", "--json");
    expect(JSON.parse(stdout)).toEqual({
      config: path(),
      keys: [{ name: "codex", group: "codex", platform: "responses", secret: expect.stringMatching(/^sk-/) }],
    });
  });

  test("init without any credential is an error, and writes nothing", async () => {
    const { status, stdout, stderr } = await run({ folder: folder.path }, "init");
    expect({ status, stdout, written: existsSync(path()) }).toEqual({
      status: 1,
      stdout: "",
      written: false,
    });
    expect(stderr).toContain("Set one of ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY");
    expect(stderr.match(/OPENROUTER_API_KEY/g)).toHaveLength(1);
    expect(stderr).toContain("gateway serve --demo");
  });

  test("if its folder is a link into a git work tree, `init` makes git ignore the secrets and the ledger", async () => {
    Bun.spawnSync(["git", "init", "-q", folder.join("dotfiles")]);
    mkdirSync(folder.join("dotfiles/inner"));
    writeFileSync(folder.join("dotfiles/inner/.gitignore"), "mine");
    symlinkSync(folder.join("dotfiles/inner"), folder.join("link"));
    const around = { folder: folder.path, env: { OPENAI_API_KEY: "x" } };
    const { status, stderr } = await run(around, "init", "--config", folder.join("link/gateway.yaml"));
    expect([status, stderr.includes(".gitignore keeps the secrets")]).toEqual([0, true]);
    expect(readFileSync(folder.join("dotfiles/inner/.gitignore"), "utf8")).toBe(
      "mine\n# Secrets and the ledger of the gateway\ngateway.env\n.gateway.yaml.*\nledger*.jsonl*\n",
    );
  });

  test.each(
    ACCOUNTS.filter(({ variable, kind, id }) => variable !== "" && kind !== "local" && id !== "relay"),
  )("init sets up $title if $variable is set", async ({ variable, group, platform, baseUrl, channel }) => {
    const env = { [variable]: "hush-hush" };
    expect((await run({ folder: folder.path, env }, "init")).status).toBe(0);
    const { catalog } = loadConfig(path(), env);
    expect(catalog.keys.get(group)?.group).toMatchObject({ name: group, platform: groupPlatform(platform) });
    expect(catalog.channels.get(channel)).toMatchObject({ credential: "hush-hush", platform });
    expect(catalog.channels.get(channel)?.baseUrl.href.replace(/\/$/, "")).toBe(baseUrl);
  });

  test("`gateway init` finds a model server on this machine, and takes no other program for one", async () => {
    using server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: () => Response.json({ object: "list", data: [{ id: "llama3.2", object: "model" }] }),
    });
    using other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
    const [address, wrong] = [`http://127.0.0.1:${server.port}/v1`, `http://127.0.0.1:${other.port}/v1`];
    const env = { GATEWAY_TEST_LOCAL_SERVERS: `ollama=${address} vllm=${wrong}` };
    const { status, stderr } = await run({ folder: folder.path, env }, "init");
    expect({ status, stderr }).toMatchObject({ status: 0 });
    const { catalog } = loadConfig(path(), {});
    expect([...catalog.channels.values()].map(({ name, free }) => ({ name, free }))).toEqual([
      { name: "ollama", free: true },
    ]);
    expect(readFileSync(path(), "utf8")).not.toContain("credential:");
    expect([...catalog.groups.keys()]).toEqual(["ollama", "claude-ollama"]);
    expect([...catalog.keys.keys()]).toEqual(["ollama"]);
    expect(catalog.channels.get("ollama")?.baseUrl.port).toBe(`${server.port}`);
  });

  test("after `init`, `gateway env` finds the key for each tool by itself", async () => {
    const env = { OPENAI_API_KEY: "x", DEEPSEEK_API_KEY: "y", ANTHROPIC_API_KEY: "z" };
    const { stdout } = await run({ folder: folder.path, env }, "init");
    const secretOf = (name: string) => new RegExp(`^${name} +(\\S+)$`, "m").exec(stdout)?.[1];
    for (const [tool, key] of [
      ["claude", "claude"],
      ["codex", "codex"],
    ] as const) {
      const printed = await run({ folder: folder.path, env }, "env", tool, "--json");
      expect(JSON.parse(printed.stdout)).toMatchObject({ key });
      expect(printed.stdout).toContain(secretOf(key) ?? "missing");
    }
  });

  test.skipIf(process.platform === "win32")("`init` leaves no partial file on a full disk", async () => {
    const none = 'trap "" XFSZ; ulimit -f 0; exec "$@"';
    const words = [...PROGRAM, "init"];
    const child = Bun.spawn(["sh", "-c", none, "sh", ...words], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", GATEWAY_CONFIG: path(), OPENAI_API_KEY: "x" },
      stdout: "ignore",
      stderr: "pipe",
    });
    expect(await child.stderr.text()).toContain("gateway.yaml cannot be written: ");
    expect([await child.exited, existsSync(path())]).toEqual([1, false]);
  });

  test("`gateway init` ends with one line to paste, which works as printed", async () => {
    const place = folder.join("my own.yaml");
    const env = { OPENAI_API_KEY: "x" };
    const { stderr } = await runProcess({ folder: folder.path, env }, "init", "--config", place);
    const line = stderr.trimEnd().split("\n").at(-1) ?? "";
    expect(line).toEndWith(` run --config '${place}' codex`);
    const script = line.replace(" run ", " run --url http://gw:1 ");
    mkdirSync(folder.join("bin"));
    writeFileSync(folder.join("bin/codex"), '#!/bin/sh\necho "started with $GATEWAY_CODEX_KEY"\n', {
      mode: 0o755,
    });
    const PATH = `${folder.join("bin")}:${process.env["PATH"]}`;
    const around = { PATH, HOME: folder.path };
    const shell = Bun.spawnSync(["sh", "-c", script], { cwd: folder.path, env: around });
    expect(shell.stdout.toString()).toMatch(/^started with sk-\w{43}\n$/);
  });

  test("P39: `gateway init` writes to the user's configuration folder, which nobody else can read", async () => {
    const env = { GATEWAY_CONFIG: "", HOME: folder.path, OPENAI_API_KEY: "x" };
    const { status, stderr } = await run({ folder: folder.path, env }, "init");
    expect(status).toBe(0);
    const place = folder.join(".config", "gateway", "gateway.yaml");
    expect(stderr).toContain(`Wrote ${place}. The ledger will be next to it.`);
    expect(stderr).toMatch(/`gateway run.*` knows the keys\. For anything else, keep them: /);
    expect(stderr).toMatch(/\nNext:\n  \S.* run codex\n$/);
    expectMode(folder.join(".config", "gateway"), 0o700);
    expect(loadConfig(place, env).catalog.ledger.path).toBe(
      folder.join(".config", "gateway", "ledger.jsonl"),
    );
    expect(existsSync(path())).toBe(false);
  });

  test("`init` writes to the place of --config or GATEWAY_CONFIG, and creates missing folders", async () => {
    const place = folder.join("new", "folder", "g.yaml");
    const env = { OPENAI_API_KEY: "x" };
    expect((await run({ folder: folder.path, env }, "init", "--config", place)).status).toBe(0);
    expect(existsSync(place)).toBe(true);
    const other = folder.join("other.yaml");
    await run({ folder: folder.path, env: { ...env, GATEWAY_CONFIG: other } }, "init");
    expect([existsSync(other), existsSync(path())]).toEqual([true, false]);
  });
});

describe("`gateway init` asks on a terminal for what is missing", () => {
  /** Sets up a relay at the given address, up to the question for its credential. */
  const beginRelay = async (url: string) => {
    const screen = runOnTerminal({ folder: folder.path }, "init");
    await screen.shows("Which platforms do you use?");
    screen.press(KEYS.up + KEYS.space);
    await screen.shows("◼ A relay");
    screen.press(KEYS.enter);
    await screen.shows("base URL");
    screen.press(`${url}${KEYS.enter}`);
    await screen.shows("paste the credential");
    return screen;
  };

  test("gateway init on a terminal asks for a missing credential with hidden input, checks it, and puts it into gateway.env", async () => {
    // Another config in this folder uses this variable.
    const before = "GATEWAY_RELAY_MAIN_API_KEY=another-12345\n";
    writeFileSync(folder.join("gateway.env"), before, { mode: 0o600 });
    const upstream = startDemoUpstream({ platform: "relay" });
    const screen = await beginRelay(upstream.url);
    screen.press(`pasted-12345${KEYS.enter}`);
    expect(await screen.status).toBe(0);
    upstream.stop();
    expect(screen.raw()).not.toContain("pasted");
    expect(Bun.stripANSI(screen.raw())).toMatch(/accepts the credential and lists \d+ models/);
    expect(readFileSync(path(), "utf8")).not.toContain("pasted");
    const stored = readFileSync(folder.join("gateway.env"), "utf8");
    expect(stored).toBe(`${before}GATEWAY_RELAY_MAIN_2_API_KEY=pasted-12345\n`);
    expectMode(folder.join("gateway.env"), 0o600);
    expect(loadConfig(path(), {}).catalog.channels.get("relay-main")?.credential).toBe("pasted-12345");
  });

  test("init can keep a credential as a reference to a variable", async () => {
    const screen = await beginRelay("http://127.0.0.1:9");
    screen.press(KEYS.enter);
    expect(await screen.status).toBe(0);
    expect(Bun.stripANSI(screen.raw())).toContain("Set RELAY_API_KEY before you start the gateway.");
    expect(existsSync(folder.join("gateway.env"))).toBe(false);
    expect(readFileSync(path(), "utf8")).toContain('credential: "${RELAY_API_KEY}"');
  });

  test("gateway init on a terminal asks again after a refused credential, and keeps it if no other is pasted", async () => {
    const seen: (string | null)[] = [];
    using upstream = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        seen.push(request.headers.get("authorization") ?? request.headers.get("x-api-key"));
        return new Response("{}", { status: 401 });
      },
    });
    const screen = await beginRelay(`http://127.0.0.1:${upstream.port}`);
    screen.press(`abc${KEYS.enter}`);
    await screen.shows("refuses the credential (401)");
    await screen.shows("Paste another one");
    screen.press(KEYS.enter);
    expect(await screen.status).toBe(0);
    expect(seen.join()).toContain("abc");
    expect(readFileSync(folder.join("gateway.env"), "utf8")).toContain("GATEWAY_RELAY_MAIN_API_KEY=abc\n");
  });

  test("`init --yes` asks nothing on a terminal", async () => {
    const screen = runOnTerminal({ folder: folder.path, env: { OPENAI_API_KEY: "x" } }, "init", "--yes");
    expect(await screen.status).toBe(0);
    expect([...loadConfig(path(), {}, { missing: "keep" }).catalog.keys.keys()]).toEqual(["codex"]);
  });

  test("Ctrl-C during init leaves no config behind", async () => {
    const screen = runOnTerminal({ folder: folder.path }, "init");
    await screen.shows("Which platforms do you use?");
    screen.press(KEYS.interrupt);
    expect(await screen.status).toBe(130);
    expect(existsSync(path())).toBe(false);
  });
});
