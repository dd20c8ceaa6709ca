// `gateway env claude-desktop` and `env codex-app`: what the user of an app enters.

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const CONFIG = `listen: { port: 4999 }
channels:
  anthropic: { platform: messages, base_url: https://api.anthropic.com, credential: x }
  openai: { platform: responses, base_url: https://api.openai.com, credential: x }
  plan: { platform: messages, base_url: https://api.anthropic.com, credential: client }
groups:
  claude: { platform: messages, channels: [anthropic] }
  codex: { platform: responses, channels: [openai] }
  plan: { platform: messages, channels: [plan] }
keys:
  - { name: c, group: claude, secret: sk-of-claude }
  - { name: o, group: codex, secret: sk-of-codex }
  - { name: p, group: plan, secret: sk-of-plan }
`;

async function start(...words: readonly string[]) {
  using folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
  return await run({ folder: folder.path, env: { HOME: folder.path, CODEX_HOME: "/of/codex" } }, ...words);
}

describe("gateway env", () => {
  test("names what is entered in Claude Desktop", async () => {
    const { stdout } = await start("env", "claude-desktop", "c");
    expect(stdout).toContain("Gateway base URL: http://127.0.0.1:4999\nGateway API key: sk-of-claude\n");
    const { settings, key, env } = JSON.parse((await start("env", "claude-desktop", "c", "--json")).stdout);
    expect([key, env]).toEqual(["c", {}]);
    expect(settings).toEqual({
      inferenceProvider: "gateway",
      inferenceGatewayBaseUrl: "http://127.0.0.1:4999",
      inferenceGatewayApiKey: "sk-of-claude",
      inferenceGatewayAuthScheme: "bearer",
    });
  });

  test("prints the lines of the Codex app's file, with the key in place of a variable", async () => {
    const { stdout } = await start("env", "o", "codex-app");
    expect(stdout).toContain("/of/codex/config.toml");
    expect(Bun.TOML.parse(stdout)).toEqual({
      model_provider: "gateway",
      model_providers: {
        gateway: {
          name: "OpenAI",
          base_url: "http://127.0.0.1:4999/v1",
          wire_api: "responses",
          supports_websockets: true,
          experimental_bearer_token: "sk-of-codex",
        },
      },
    });
  });

  test("refuses an app a key whose channel passes on a tool's own login", async () => {
    const { status, stdout, stderr } = await start("env", "claude-desktop", "p");
    expect([status, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("passes on the login of Claude Code, and Claude Desktop sends none");
  });
});

test("`gateway run` starts no app, and names the command that helps", async () => {
  const { status, stderr } = await start("run", "codex-app");
  expect(status).toBe(2);
  expect(stderr).toContain("`gateway env codex-app` prints what to enter in the Codex app");
});
