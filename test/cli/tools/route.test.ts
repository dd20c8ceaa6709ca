// What `gateway run` says before the tool starts.

import { describe, expect, test } from "bun:test";
import { findTool } from "../../../src/cli/tools/connection.ts";
import { describeRoute, explainModels } from "../../../src/cli/tools/route.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";

const { catalog } = checkConfigText(
  `
channels:
  main: { platform: messages, base_url: https://api.anthropic.com, credential: x }
  ollama: { platform: messages, base_url: "http://127.0.0.1:11434", credential: x, free: true }
  login: { platform: messages, base_url: https://api.anthropic.com, credential: client }
groups:
  plan: { platform: messages, channels: [login] }
  claude: { platform: messages, channels: [main] }
  cheap: { platform: messages, channels: [main], multiplier: 0.5 }
  mixed: { platform: messages, channels: [ollama, main] }
  local: { platform: messages, channels: [ollama] }
`,
  "/gateway.yaml",
  {},
);

function groupOf(name: string) {
  const group = catalog.groups.get(name);
  if (group === undefined) throw new Error(`There is no group ${name}.`);
  return group;
}

describe("the line before the tool starts", () => {
  const tool = findTool("claude");
  const route = (name: string, isChosen: boolean): string =>
    describeRoute(tool, { name: "laptop", group: groupOf(name) }, catalog, isChosen);

  test("names key, group, upstream and price", () => {
    expect(route("claude", true)).toBe(
      "Claude Code: key laptop, group claude (api.anthropic.com), billed by use at official prices.",
    );
    expect(route("plan", true)).toEndWith("with its own login, which is passed on: a plan pays.");
    expect(route("cheap", true)).toEndWith("billed by use at official prices × 0.5.");
    expect(route("mixed", true)).toEndWith("billed by use at official prices on main.");
    expect(route("local", true)).toEndWith("group local (127.0.0.1:11434), free of charge.");
  });

  test("names a group that costs nothing if the user has chosen neither group nor key", () => {
    expect(route("claude", false)).toEndWith(
      " The group local costs nothing: gateway run --group local claude",
    );
    expect(route("local", false)).toEndWith("free of charge.");
  });
});

describe("a tool whose models the upstream lacks", () => {
  const explain = async (listed: readonly string[], group: string, words: readonly string[] = []) => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ data: listed.map((id) => ({ id })) }),
    });
    const base = `http://127.0.0.1:${server.port}`;
    const target = { base, relayPrefix: "relay", platform: "messages", secret: "x", label: null } as const;
    const around = { words, env: {} };
    return await explainModels(findTool("claude"), { ...target, models: [] }, groupOf(group), around);
  };

  test("a model that the group lacks gets a sentence with the flag and the alias that help", async () => {
    const text = await explain(["llama3.2", "qwen3"], "local");
    expect(text).toStartWith("The group local has no claude-… model, and Claude Code asks for one");
    expect(text).toContain("gateway run claude --model llama3.2");
    expect(text).toContain("gateway channels set ollama 'aliases.claude-*=llama3.2'");
  });

  test("a tool gets no such sentence if it will find a model, if the user names one, or at the maker's own address", async () => {
    expect(await explain(["llama3.2", "claude-haiku-4-5"], "local")).toBeNull();
    expect(await explain(["llama3.2"], "local", ["--model", "llama3.2"])).toBeNull();
    expect(await explain(["llama3.2"], "local", ["--model=llama3.2"])).toBeNull();
    expect(await explain(["llama3.2"], "claude")).toBeNull();
    expect(await explain([], "local")).toBeNull();
  });
});
