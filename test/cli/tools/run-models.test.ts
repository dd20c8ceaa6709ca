// Tests which models and time limits `gateway run` gives a tool, with stand-ins that say what they were given.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type ChildGateway, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { startVendor, type Vendor } from "../../harness/upstreams/vendor.ts";
import { run } from "../driving.ts";

const MAIN = { TERM: "dumb" };

function write(folder: TempFolder, name: string, text: string): void {
  mkdirSync(dirname(folder.join(name)), { recursive: true });
  writeFileSync(folder.join(name), text);
}

/** Runs `gateway run TOOL WORDS`, with a script in place of the tool, in a home of its own. */
async function start(
  gateway: ChildGateway,
  words: readonly [flags: readonly string[], tool: string, ...args: string[]],
  script: string,
  more: {
    readonly env?: Readonly<Record<string, string>>;
    readonly home?: Readonly<Record<string, string>>;
  } = {},
) {
  using folder = makeTempFolder();
  const [flags, tool, ...args] = words;
  write(folder, `bin/${tool}`, `#!/bin/sh\n${script}\n`);
  chmodSync(folder.join("bin", tool), 0o755);
  for (const [name, text] of Object.entries(more.home ?? {})) write(folder, name, text);
  const env = {
    ...MAIN,
    HOME: folder.path,
    PATH: `${folder.join("bin")}:${process.env["PATH"]}`,
    ...more.env,
  };
  const around = { folder: folder.path, env: { ...env, XDG_RUNTIME_DIR: gateway.folder.path } };
  const known = ["--config", gateway.configPath, "--yes"];
  return await run(around, "run", ...known, ...flags, tool, ...args);
}

const show = (...names: string[]): string => `echo "${names.map((name) => `$${name}`).join("|")}"`;
const LIMITS = ["API_TIMEOUT_MS", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "API_FORCE_IDLE_TIMEOUT"];

describe("`run` gives a tool the vendor's models in a group at the vendor's own address", () => {
  let folder: TempFolder;
  let vendor: Vendor;
  let gateway: ChildGateway;

  beforeAll(async () => {
    folder = makeTempFolder();
    vendor = await startVendor(folder.join("vendor.pem"));
    const at = { platform: "messages", base_url: "https://api.anthropic.com" };
    const channel = {
      ...at,
      credential: "sk-ant-invented",
      proxy: vendor.url,
      ca: folder.join("vendor.pem"),
    };
    const config = {
      channels: {
        main: channel,
        large: { ...channel, models: ["claude-opus-*"], timeouts: { first_byte: "20m" } },
        login: { ...at, credential: "client" },
      },
      groups: {
        claude: { platform: "messages", channels: ["main"] },
        large: { platform: "messages", channels: ["large"] },
        plan: { platform: "messages", channels: ["login"] },
      },
      keys: ["claude", "large", "plan"].map((name) => ({ name, group: name, secret: `sk-test-${name}` })),
    };
    const home = makeTempFolder();
    gateway = await startGateway({ config, folder: home, env: { XDG_RUNTIME_DIR: home.path } });
  });
  afterAll(async () => {
    await gateway.stop();
    gateway.folder.remove();
    vendor.stop();
    folder.remove();
  });

  test("pi gets its provider together with a model that the gateway lists", async () => {
    const { stdout, status } = await start(gateway, [["--key", "claude"], "pi", "-p", "hi"], 'echo "$@"');
    expect(status).toBe(0);
    expect(stdout).toMatch(/ --provider anthropic --model claude-\S+ -p hi\n$/);
  });

  const small = show("ANTHROPIC_DEFAULT_HAIKU_MODEL");
  const claude = ["--key", "claude"] as const;

  test("Claude Code gets the newest listed Haiku for its small requests, and keeps its own time limits", async () => {
    const { stdout } = await start(
      gateway,
      [claude, "claude"],
      show("ANTHROPIC_DEFAULT_HAIKU_MODEL", ...LIMITS),
    );
    expect(stdout).toMatch(/^claude-haiku-[\d-]+\|\|\|\n$/);
  });

  test("Claude Code with the login of a plan gets the newest Haiku of the price book", async () => {
    const { stdout } = await start(gateway, [["--key", "plan"], "claude"], small);
    expect(stdout).toMatch(/^claude-haiku-[\d-]+\n$/);
  });

  test("Claude Code gets no small model if the group has no Haiku, and waits as long as its channel may take", async () => {
    const names = show("ANTHROPIC_DEFAULT_HAIKU_MODEL", ...LIMITS);
    const { stdout } = await start(gateway, [["--key", "large"], "claude"], names);
    expect(stdout).toBe("|1260000|1260000|0\n");
  });

  test("the user's own variable for Claude Code's small model is not replaced", async () => {
    const env = { ANTHROPIC_DEFAULT_HAIKU_MODEL: "mine" };
    expect((await start(gateway, [claude, "claude"], small, { env })).stdout).toBe("mine\n");
    const old = { ANTHROPIC_SMALL_FAST_MODEL: "mine" };
    expect((await start(gateway, [claude, "claude"], small, { env: old })).stdout).toBe("\n");
    const home = { ".claude/settings.json": JSON.stringify({ env }) };
    expect((await start(gateway, [claude, "claude"], small, { home })).stdout).toBe("\n");
  });
});

/** Starts a server on this machine: it lists these models in this order. */
function startServer(models: readonly string[]) {
  const list = { object: "list", data: models.map((id) => ({ id, object: "model" })) };
  return Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => Response.json(list) });
}

describe("`run` gives a tool models of other providers in a group that converts", () => {
  const models = ["devstral:24b", "qwen3-coder:30b", "gpt-oss:20b"];
  const CHAINS = ["only", "listed", "chained"];
  let server: ReturnType<typeof startServer>;
  let gateway: ChildGateway;

  beforeAll(async () => {
    server = startServer(models);
    const quick = { first_byte: "100s", idle: "100s" };
    const slow = { first_byte: "20m", idle: "25m" };
    const channel = {
      platform: "chat",
      base_url: `http://127.0.0.1:${server.port}/v1`,
      credential: "x",
      free: true,
      timeouts: slow,
    };
    const aliases = { "claude-haiku-*": "gpt-oss:20b", "claude-*": "qwen3-coder:30b" };
    const group = { platform: "messages", channels: ["plain"], convert: true };
    const config = {
      channels: {
        plain: channel,
        named: { ...channel, aliases },
        only: { ...channel, aliases: { "claude-*": "qwen3-coder:30b" }, models: ["claude-*"] },
        listed: { ...channel, aliases: { "claude-*": "devstral:24b" }, models: ["claude-*", "gpt-oss:20b"] },
        chained: { ...channel, aliases: { "claude-*": "big", big: "gpt-oss:20b" } },
        word: { ...channel, aliases: { fast: "gpt-oss:20b" } },
        off: { ...channel, disabled: true },
        ...Object.fromEntries(["a", "b", "c", "d"].map((name) => [name, { ...channel, timeouts: quick }])),
      },
      groups: {
        first: group,
        alias: { ...group, channels: ["named"] },
        ...Object.fromEntries(CHAINS.map((name) => [name, { ...group, channels: [name] }])),
        default: { ...group, default_model: "gpt-oss:20b" },
        both: { ...group, channels: ["named"], default_model: "devstral:24b" },
        word: { ...group, channels: ["word"], default_model: "fast" },
        codex: { ...group, platform: "responses" },
        three: { ...group, channels: ["a", "b", "c", "d"] },
        off: { ...group, channels: ["off"] },
        idle: { platform: "responses", channels: ["off"] },
      },
      keys: [...CHAINS, "first", "alias", "default", "both", "word", "codex", "three", "off", "idle"].map(
        (name) => ({
          name,
          group: name,
          secret: `sk-test-${name}`,
        }),
      ),
    };
    const home = makeTempFolder();
    gateway = await startGateway({ config, folder: home, env: { XDG_RUNTIME_DIR: home.path } });
  });
  afterAll(async () => {
    await gateway.stop();
    gateway.folder.remove();
    await server.stop(true);
  });

  test.each([
    ["first", "devstral:24b", "devstral:24b"],
    ["alias", "qwen3-coder:30b", "gpt-oss:20b"],
    ["default", "gpt-oss:20b", "gpt-oss:20b"],
    ["both", "qwen3-coder:30b", "gpt-oss:20b"],
  ])("Claude Code with the key %s runs on %s, and its small requests on %s", async (key, main, small) => {
    const names = show("ANTHROPIC_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL");
    const { stdout, stderr } = await start(gateway, [["--key", key], "claude"], names);
    expect(stdout).toBe(`${main}|${small}\n`);
    expect(stderr).toContain(`Claude Code runs on ${main},`);
  });

  test.each([
    ["only", "qwen3-coder:30b"],
    ["listed", "devstral:24b"],
    ["chained", "big"],
  ])(
    "with the key %s, Claude Code asks for claude-sonnet-5-5, and an alias gives it the unlisted model %s",
    async (key, model) => {
      const { stdout, stderr } = await start(gateway, [["--key", key], "claude"], show("ANTHROPIC_MODEL"));
      expect([stdout, stderr]).toEqual(["claude-sonnet-5-5\n", expect.stringContaining(`runs on ${model},`)]);
    },
  );

  const OPUS = JSON.stringify({ env: { ANTHROPIC_DEFAULT_OPUS_MODEL: "gpt-oss:20b" } });
  test.each<[what: string, key: string, args: string, env: Record<string, string>]>([
    ["an argument", "first", "--model gpt-oss:20b", {}],
    ["an argument with =", "first", "--model=gpt-oss:20b", {}],
    ["the last of two arguments", "first", "--model a --model gpt-oss:20b", {}],
    ["a variable", "first", "-c", { ANTHROPIC_MODEL: "gpt-oss:20b" }],
    ["a default behind an alias", "word", "--model unknown", {}],
    ["a settings file for `opus`", "first", "--model opus", {}],
  ])("if %s names a model, `run` prints that Claude Code runs on it", async (_, key, args, env) => {
    const words = [["--key", key], "claude", ...args.split(" ")] as const;
    const { stderr } = await start(gateway, words, "true", { env, home: { ".claude/settings.json": OPUS } });
    expect(stderr).toContain("Claude Code runs on gpt-oss:20b,");
  });

  test.each([
    ["SONNET", "qwen3-coder:30b"],
    ["opusplan", "qwen3-coder:30b"],
    ["best", "qwen3-coder:30b"],
    ["haiku", "gpt-oss:20b"],
    ["claude-sonnet-5-5", "qwen3-coder:30b"],
    ["devstral:24b", "devstral:24b"],
  ])("`run claude --model %s` prints that Claude Code runs on %s", async (asked, served) => {
    const { stderr } = await start(gateway, [["--key", "alias"], "claude", "--model", asked], "true");
    expect(stderr).toContain(`Claude Code runs on ${served},`);
  });

  test.each([
    ["off", "claude"],
    ["off", "pi"],
    ["off", "opencode"],
    ["idle", "codex"],
  ])(
    "if all channels of the group %s are disabled, %s starts without undefined or infinite settings",
    async (key, tool) => {
      const words = [["--key", key], tool] as const;
      const { stdout, stderr } = await start(gateway, words, 'env | grep -iE "timeout|content"; echo "$@"');
      expect(stdout + stderr).not.toMatch(/undefined|null|Infinity|NaN/);
      expect(stderr).toEndWith(`group ${key}. Its channels are disabled, so each request is refused.\n`);
    },
  );

  test("Claude Code's time limit is enough for the three channels that failover may try", async () => {
    const own = await start(gateway, [["--key", "three"], "claude"], show("API_TIMEOUT_MS"));
    expect(own.stdout).toBe("360000\n");
  });

  test("Claude Code, Codex and opencode wait a minute longer than the gateway does", async () => {
    const claude = await start(gateway, [["--key", "first"], "claude"], show(...LIMITS));
    expect(claude.stdout).toBe("1560000|1560000|0\n");
    const codex = await start(gateway, [["--key", "codex"], "codex"], 'echo "$@"');
    expect(codex.stdout).toContain("-c model_providers.gateway.stream_idle_timeout_ms=1560000 ");
    const opencode = await start(gateway, [["--key", "first"], "opencode"], show("OPENCODE_CONFIG_CONTENT"));
    expect(opencode.stdout).toContain('"timeout":1560000');
    const own = await start(gateway, [["--key", "first"], "claude"], show(...LIMITS), {
      env: { API_TIMEOUT_MS: "5" },
    });
    expect(own.stdout).toBe("5|1560000|0\n");
  });
});
