// Tests `gateway run` and `gateway init` with a tool's own login, with stand-ins for the tools.

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { findTool } from "../../../src/cli/tools/tools.ts";
import { prepare } from "../../../src/cli/tools/environment.ts";
import type { Connection } from "../../../src/cli/tools/tool.ts";
import { loadConfig } from "../../../src/config/file/load.ts";
import { startGateway } from "../../harness/gateway.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const SIGNED_IN = { claudeAiOauth: { accessToken: "x" } };

function connection(platform: Connection["platform"]): Connection {
  const known = { base: "http://gw:1", relayPrefix: "relay", secret: "sk-s", models: [], isDirect: true };
  return { ...known, platform, usesLogin: true, label: "work" };
}

describe("a tool's own login stays in use", () => {
  test("Claude Code gets the key in a header of its own, and nothing that replaces its login", () => {
    const theirs = { ANTHROPIC_CUSTOM_HEADERS: "x-team: a", CLAUDE_CODE_OAUTH_TOKEN: "theirs" };
    const { env, unset } = prepare(findTool("claude"), connection("messages"), theirs);
    expect(env).toMatchObject({
      ANTHROPIC_BASE_URL: "http://gw:1",
      ANTHROPIC_CUSTOM_HEADERS: "x-team: a\nx-gateway-key: sk-s\nx-gateway-label: work",
    });
    expect(Object.keys(env)).not.toContain("ANTHROPIC_AUTH_TOKEN");
    expect(unset).toContain("ANTHROPIC_AUTH_TOKEN");
    expect(unset).toContain("ANTHROPIC_API_KEY");
    expect(unset).not.toContain("CLAUDE_CODE_OAUTH_TOKEN");
  });

  test("Codex gets a provider that uses Codex's login, and a variable with the key", () => {
    const { env, args } = prepare(findTool("codex"), connection("responses"), {});
    expect(env).toMatchObject({ GATEWAY_CODEX_KEY: "sk-s" });
    expect(args).toContain("model_providers.gateway.name=OpenAI");
    expect(args).toContain("model_providers.gateway.requires_openai_auth=true");
    expect(args).toContain("model_providers.gateway.env_http_headers.x-gateway-key=GATEWAY_CODEX_KEY");
    expect(args.join(" ")).not.toContain("env_key=");
    expect(args.join(" ")).not.toContain("sk-s");
  });
});

/** Makes a home with a stand-in for claude that is signed in with a plan. */
function openHome() {
  const folder = makeTempFolder();
  mkdirSync(folder.join("bin"));
  mkdirSync(folder.join(".claude"));
  for (const name of ["claude", "opencode"]) {
    const script = '#!/bin/sh\necho "$ANTHROPIC_AUTH_TOKEN|$ANTHROPIC_CUSTOM_HEADERS" | tr "\\n" " "\n';
    writeFileSync(folder.join("bin", name), script);
    chmodSync(folder.join("bin", name), 0o755);
  }
  writeFileSync(folder.join(".claude", ".credentials.json"), JSON.stringify(SIGNED_IN));
  const config = folder.join("gateway.yaml");
  const env = {
    PATH: `${folder.join("bin")}:${process.env["PATH"]}`,
    HOME: folder.path,
    XDG_RUNTIME_DIR: folder.path,
    GATEWAY_CONFIG: config,
  };
  const around = { folder: folder.path, env };
  return { folder, config, env, around, [Symbol.dispose]: () => folder.remove() };
}

const hasKey = /^\|x-gateway-key: sk-\w{43}(?:=run-\S+)? /;

async function init({ around, config }: ReturnType<typeof openHome>, tool: string) {
  const done = await run(around, "init", "--login", tool);
  expect(done.status).toBe(0);
  return loadConfig(config, {}).catalog;
}

/** Starts a gateway with the config of the home. */
async function serve({ folder, config, env }: ReturnType<typeof openHome>) {
  const text = `listen: { port: 0 }\n${readFileSync(config, "utf8")}`;
  const gateway = await startGateway({ config: text, folder, env });
  return {
    async [Symbol.asyncDispose]() {
      await gateway.stop();
    },
  };
}

/** Adds a channel with a credential next to the login. */
function addMetered(config: string): void {
  const text = readFileSync(config, "utf8")
    .replace(
      /^channels:.*/m,
      "$&\n  main: { platform: messages, base_url: http://127.0.0.1:9, credential: x }",
    )
    .replace(/^groups:.*/m, "$&\n  metered: { platform: messages, channels: [main] }");
  writeFileSync(config, text);
}

describe("`gateway init --login` sets up a group for a tool's own login", () => {
  test.each(["claude", "codex"])("`init --login` writes a free group for the login of %s", async (tool) => {
    using home = openHome();
    const catalog = await init(home, tool);
    const group = catalog.groups.get(`${tool}-plan`);
    expect(group).toMatchObject({ usesLogin: true, multiplier: "0" });
    expect(group?.channels.map(({ credential }) => credential)).toEqual([""]);
    expect([...catalog.keys.keys()]).toEqual([`${tool}-plan`]);
  });

  test("gateway init --login is an error for a tool whose login is not passed on", async () => {
    using home = openHome();
    const { status, stderr } = await run(home.around, "init", "--login", "gemini");
    expect([status, existsSync(home.config)]).toEqual([2, false]);
    expect(stderr).toContain("claude, codex");
  });
});

describe("`gateway run` uses a tool's own login", () => {
  test("`gateway run` uses the login if the config has no other group for the tool, and says so in one line", async () => {
    using home = openHome();
    await init(home, "claude");
    await using _gateway = await serve(home);
    const { status, stdout, stderr } = await run(home.around, "run", "claude");
    expect(status).toBe(0);
    expect(stdout).toMatch(hasKey);
    expect(stderr).toContain("with its own login, which is passed on: a plan pays.");
  });

  test("P157: `gateway run` moves nobody from a plan to metered billing without asking", async () => {
    using home = openHome();
    await init(home, "claude");
    addMetered(home.config);
    await using _gateway = await serve(home);
    const asked = await run(home.around, "run", "--new", "--group", "metered", "claude");
    expect([asked.status, asked.stdout]).toEqual([2, ""]);
    expect(asked.stderr).toContain("pays for every request");
    expect(asked.stderr).toContain("--group claude-plan");
    expect(loadConfig(home.config, {}).catalog.keys.size).toBe(1);
    expect((await run(home.around, "run", "claude")).stdout).toMatch(hasKey);
  });

  test("`gateway run` gives the login's group to no other tool", async () => {
    using home = openHome();
    await init(home, "claude");
    await using _gateway = await serve(home);
    const { status, stderr } = await run(home.around, "run", "opencode");
    expect(status).toBe(1);
    expect(stderr).toContain("passes on the login of another tool");
    const named = await run(home.around, "run", "--group", "claude-plan", "opencode");
    expect([named.status, named.stdout]).toEqual([1, ""]);
    expect(named.stderr).toContain("passes on the login of another tool");
    expect([...loadConfig(home.config, {}).catalog.keys.keys()]).toEqual(["claude-plan"]);
  });
});
