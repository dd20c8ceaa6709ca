// Tools on models that are not those of their maker, and on channels that speak Chat Completions.

import { describe, expect, test } from "bun:test";
import { findTool } from "../../../src/cli/tools/connection.ts";
import { describeForeign, describeForeignModel, findLimits } from "../../../src/cli/tools/foreign.ts";
import { fetchModels } from "../../../src/cli/tools/model-names.ts";
import { prepare } from "../../../src/cli/tools/prepare.ts";
import { explainModels } from "../../../src/cli/tools/route.ts";
import type { Connection, ModelLimits } from "../../../src/cli/tools/programs/tool.ts";
import { checkConfigText } from "../../../src/config/file/load.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { writeFileSync } from "node:fs";

const CONFIG = `
channels:
  claude: { platform: messages, base_url: https://api.anthropic.com, credential: x }
  openai: { platform: responses, base_url: https://api.openai.com, credential: x, aliases: { mine: gpt-5.1 } }
  groq: { platform: chat, base_url: https://api.groq.com/openai/v1, credential: x }
  local: { platform: chat, base_url: "http://127.0.0.1:11434/v1", credential: x, free: true }
groups:
  native: { platform: messages, channels: [claude] }
  gpt: { platform: messages, channels: [openai], convert: true }
  both: { platform: messages, channels: [claude, openai], convert: true }
  groq: { platform: messages, channels: [groq], convert: true }
  local: { platform: messages, channels: [local], convert: true }
  codex: { platform: responses, channels: [local], convert: true }
  chat: { platform: responses, channels: [local] }
  gemini: { platform: content, channels: [local], convert: true }
  gemini-named: { platform: content, channels: [local], convert: true, default_model: qwen3-coder }
`;
const { catalog } = checkConfigText(CONFIG, "/gateway.yaml", {});

function groupOf(name: string) {
  const group = catalog.groups.get(name);
  if (group === undefined) throw new Error(`There is no group ${name}.`);
  return group;
}

const FOREIGN = { hasEffort: true, canSearch: true };

function connectionOf(more: Partial<Connection>): Connection {
  const models = ["qwen3-coder", "qwen3-coder-mini"];
  const limits = new Map(models.map((model) => [model, { context: 131_072, output: null }]));
  return {
    base: "http://gw:1",
    relayPrefix: "relay",
    platform: "messages",
    secret: "sk-s",
    label: null,
    models,
    limits,
    foreign: FOREIGN,
    converts: true,
    ...more,
  };
}

const HOME = { HOME: "/nonexistent" };

describe("whether a tool runs on models that are not its own", () => {
  test.each([
    ["claude", "native", ["gpt-5.1"], false],
    ["claude", "gpt", ["gpt-5.1"], true],
    ["claude", "both", ["gpt-5.1", "claude-haiku-4-5"], false],
    ["claude", "groq", ["anthropic/claude-opus-5-5"], true],
    ["codex", "codex", ["gpt-oss:20b"], true],
    ["codex", "codex", ["gpt-5.1"], true],
    ["opencode", "local", ["qwen3"], false],
  ])("%s in the group %s with the models %p: %p", (tool, group, models, isForeign) => {
    expect(describeForeign(findTool(tool), groupOf(group), models) !== null).toBe(isForeign);
  });

  test("its channels decide whether there is effort, and whether they search", () => {
    const describeFor = (group: string) => describeForeign(findTool("claude"), groupOf(group), []);
    expect(describeFor("gpt")).toMatchObject({ hasEffort: true, canSearch: true });
    expect(describeFor("groq")).toMatchObject({ hasEffort: true, canSearch: false });
    const quiet = {
      ...groupOf("local"),
      channels: [{ ...groupOf("local").channels[0]!, chat: { reasoning: "none" as const } }],
    };
    expect(describeForeign(findTool("claude"), quiet, [])).toMatchObject({
      hasEffort: false,
      canSearch: false,
    });
  });
});

describe("the limits of models", () => {
  test.each<[string, object, number | null, number | null]>([
    [
      "OpenRouter",
      { context_length: 200_000, top_provider: { max_completion_tokens: 64_000 } },
      200_000,
      64_000,
    ],
    ["Groq", { context_window: 131_072, max_completion_tokens: 32_768 }, 131_072, 32_768],
    ["Mistral", { max_context_length: 262_144 }, 262_144, null],
    ["vLLM", { max_model_len: 32_768 }, 32_768, null],
    ["llama.cpp", { meta: { n_ctx: 8192, n_ctx_train: 131_072 } }, 8192, null],
    ["Anthropic", { max_input_tokens: 1_000_000 }, 1_000_000, null],
    ["nobody", { context_length: "8k", context_window: 0, max_model_len: -1 }, null, null],
  ])("are read from the list of %s", async (_name, fields, context, output) => {
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => Response.json({ data: [{ id: "m", ...fields }, { no: "id" }, { id: "\u001b[2J" }] }),
    });
    const base = `http://127.0.0.1:${server.port}`;
    expect(await fetchModels(connectionOf({ base }))).toEqual([{ id: "m", context, output }]);
  });

  test("are those of the price book where the list has none, but not for a server of one's own", () => {
    using folder = makeTempFolder();
    const find = (group: string, id: string, context: number | null = null): ModelLimits | undefined =>
      findLimits([{ id, context, output: null }], groupOf(group), folder.join("gateway.yaml")).get(id);
    expect(find("gpt", "gpt-5.1")).toEqual({ context: 400_000, output: 128_000 });
    expect(find("gpt", "mine")).toEqual({ context: 400_000, output: 128_000 });
    expect(find("gpt", "gpt-5.1", 1000)).toEqual({ context: 1000, output: 128_000 });
    expect(find("groq", "openai/gpt-oss-120b")?.context).toBe(131_072);
    expect(find("local", "openai/gpt-oss-120b")?.context).toBeNull();
  });
});

describe("Claude Code", () => {
  const claude = findTool("claude");

  test("gets names for all of its requests, the window of its model, and the switches for it", () => {
    const setting = prepare(claude, connectionOf({}), HOME);
    expect(setting.env).toMatchObject({
      ANTHROPIC_MODEL: "qwen3-coder",
      ANTHROPIC_DEFAULT_OPUS_MODEL: "qwen3-coder",
      ANTHROPIC_DEFAULT_SONNET_MODEL: "qwen3-coder",
      ANTHROPIC_DEFAULT_FABLE_MODEL: "qwen3-coder",
      ANTHROPIC_DEFAULT_HAIKU_MODEL: "qwen3-coder-mini",
      CLAUDE_CODE_SUBAGENT_MODEL: "qwen3-coder",
      ANTHROPIC_CUSTOM_MODEL_OPTION: "qwen3-coder",
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: "131072",
      CLAUDE_CODE_AUTO_COMPACT_WINDOW: "131072",
      CLAUDE_CODE_MAX_OUTPUT_TOKENS: "32000",
      CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
      ENABLE_TOOL_SEARCH: "false",
      CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
      CLAUDE_CODE_ALWAYS_ENABLE_EFFORT: "1",
    });
  });

  test.each<[string, ModelLimits, Record<string, string | undefined>]>([
    [
      "a small one leaves room for an answer, and is below the least that the older setting takes",
      { context: 32_768, output: null },
      {
        CLAUDE_CODE_MAX_CONTEXT_TOKENS: "32768",
        CLAUDE_CODE_AUTO_COMPACT_WINDOW: undefined,
        CLAUDE_CODE_MAX_OUTPUT_TOKENS: "8192",
      },
    ],
    [
      "a divided one ends where its prompts do (router-for-me/CLIProxyAPI#4126, #3744)",
      { context: 400_000, output: 128_000 },
      { CLAUDE_CODE_MAX_CONTEXT_TOKENS: "304000", CLAUDE_CODE_MAX_OUTPUT_TOKENS: "32000" },
    ],
    [
      "an unknown one is left to the user",
      { context: null, output: null },
      { CLAUDE_CODE_MAX_CONTEXT_TOKENS: undefined, CLAUDE_CODE_MAX_OUTPUT_TOKENS: undefined },
    ],
  ])("has a context window: %s", (_what, limits, expected) => {
    const { env } = prepare(claude, connectionOf({ limits: new Map([["qwen3-coder", limits]]) }), HOME);
    for (const [name, value] of Object.entries(expected)) expect([name, env[name]]).toEqual([name, value]);
  });

  test("keeps the variables that the user has set, and the model if the group lists it", () => {
    const env = {
      ...HOME,
      CLAUDE_CODE_MAX_CONTEXT_TOKENS: "9",
      ENABLE_TOOL_SEARCH: "true",
      ANTHROPIC_MODEL: "qwen3-coder-mini",
    };
    const ownModel = claude.findOwnModel?.(env) ?? null;
    const setting = prepare(claude, connectionOf({ ownModel }), env);
    expect(setting.env).not.toHaveProperty("CLAUDE_CODE_MAX_CONTEXT_TOKENS");
    expect(setting.env).not.toHaveProperty("ENABLE_TOOL_SEARCH");
    expect(setting.env).not.toHaveProperty("ANTHROPIC_MODEL");
    expect(setting.env["ANTHROPIC_DEFAULT_OPUS_MODEL"]).toBe("qwen3-coder-mini");
  });

  test("gets none of it on its own models", () => {
    const { foreign: _, ...own } = connectionOf({});
    expect(
      Object.keys(prepare(claude, own, HOME).env).filter((name) => /MODEL$|WINDOW|TOKENS/.test(name)),
    ).toEqual([]);
  });
});

describe("Codex", () => {
  const readArgs = (more: Partial<Connection>) =>
    prepare(findTool("codex"), connectionOf({ platform: "responses", ...more }), HOME).args.filter(
      (each) => each !== "-c",
    );

  test("gets its model, the window and when to compact it, and no tool that its channels lack", () => {
    const foreign = { hasEffort: false, canSearch: false };
    expect(readArgs({ foreign }).slice(-5)).toEqual([
      "model=qwen3-coder",
      "model_context_window=131072",
      "model_auto_compact_token_limit=117964",
      "web_search=disabled",
      "features.image_generation=false",
    ]);
  });

  test("keeps its search where the channels have one, and its own window where none is known", () => {
    expect(readArgs({ limits: new Map() }).slice(-2)).toEqual([
      "model=qwen3-coder",
      "features.image_generation=false",
    ]);
  });

  test("is refused on a group whose channels speak Chat Completions only", async () => {
    using folder = makeTempFolder();
    writeFileSync(
      folder.join("gateway.yaml"),
      `${CONFIG}\nkeys: [{ name: k, group: chat, secret: sk-k }]\n`,
      { mode: 0o600 },
    );
    const refused = await run({ folder: folder.path }, "env", "k", "codex");
    expect([refused.status, refused.stderr]).toEqual([
      1,
      expect.stringContaining("gateway groups set chat convert=true"),
    ]);
    const chosen = await run({ folder: folder.path }, "env", "codex", "--new", "--group", "chat");
    expect([chosen.status, chosen.stderr]).toEqual([
      1,
      expect.stringContaining("gateway groups set chat convert=true"),
    ]);
    const other = await run({ folder: folder.path }, "env", "codex", "--new");
    expect([other.status, other.stderr]).toEqual([0, expect.stringContaining("in the group codex")]);
  });
});

describe("Chat Completions", () => {
  const chat: Partial<Connection> = { platform: "responses", speaksChat: true, converts: false };
  const fileOf = (tool: string): object | undefined => {
    const connection = connectionOf(chat);
    return findTool(tool)
      .overlay?.(connection)
      .find(HOME, prepare(findTool(tool), connection, HOME))?.content;
  };

  test("opencode speaks them to a group with chat channels, and knows the windows", () => {
    const { env } = prepare(findTool("opencode"), connectionOf(chat), HOME);
    const { provider, ...rest } = JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "");
    expect(rest).toMatchObject({
      model: "gateway/qwen3-coder",
      small_model: "gateway/qwen3-coder-mini",
      enabled_providers: ["gateway"],
    });
    expect(provider.gateway).toMatchObject({
      npm: "@ai-sdk/openai-compatible",
      options: { baseURL: "http://gw:1/v1", apiKey: "sk-s" },
      models: { "qwen3-coder": { limit: { context: 131_072, output: 32_768 } } },
    });
  });

  test("pi, Cline and Copilot speak them, too", () => {
    const limited = { contextWindow: 131_072, maxTokens: 16_384 };
    expect(fileOf("pi")).toMatchObject({
      providers: {
        gateway: { api: "openai-completions", baseUrl: "http://gw:1/v1", models: [limited, limited] },
      },
    });
    expect(fileOf("cline")).toMatchObject({ lastUsedProvider: "openai" });
    expect(prepare(findTool("copilot"), connectionOf(chat), HOME).env["COPILOT_PROVIDER_WIRE_API"]).toBe(
      "completions",
    );
  });
});

describe("what `gateway run` says", () => {
  const describeOn = (tool: string, more: Partial<Connection>) =>
    describeForeignModel(findTool(tool), connectionOf(more), [], {});

  test("the line before the tool starts names the model and its window", () => {
    expect(describeOn("claude", {})).toBe(
      "Requests are converted. Claude Code runs on qwen3-coder, with a context of 131,072 tokens.",
    );
    expect(describeOn("claude", { limits: new Map() })).toEndWith("whose context window is not known.");
    const { foreign: _, ...own } = connectionOf({});
    expect(describeForeignModel(findTool("claude"), own, [], {})).toBeNull();
  });

  test.each([
    ["opencode", [], true],
    ["claude", [], true],
    ["claude", ["--model", "qwen3-coder"], false],
  ] as const)(
    "%s %j on channels without a list of models: how to name them is said: %p",
    async (tool, words, isSaid) => {
      const said = explainModels(findTool(tool), connectionOf({ models: [] }), groupOf("local"), {
        words,
        env: {},
      });
      if (isSaid) expect(await said).toEndWith("gateway channels set local models=NAME");
      else expect(await said).toBeNull();
    },
  );

  test("Gemini CLI is told how its requests in the background are answered, unless they are", async () => {
    const ask = (group: string, tool = "gemini") =>
      explainModels(
        findTool(tool),
        connectionOf({ base: "http://127.0.0.1:9", platform: "content" }),
        { ...groupOf(group), channels: [{ ...groupOf(group).channels[0]!, models: ["qwen3-coder"] }] },
        { words: [], env: {} },
      );
    expect(await ask("gemini")).toContain("gateway groups set gemini default_model=qwen3-coder");
    expect(await ask("gemini-named")).toBeNull();
    expect(await ask("local", "claude")).toBeNull();
  });
});
