// Tests `gateway env`: which key and settings it prints, and whether shells read its lines as intended.

import { describe, expect, test } from "bun:test";
import { sample, string } from "fast-check";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { prepare as prepareTool, PROXY_NAMES } from "../../../src/cli/tools/environment.ts";
import { SHELLS, type Shell, writeSetting } from "../../../src/cli/tools/shells.ts";
import type { Connection } from "../../../src/cli/tools/tool.ts";
import { findTool, TOOLS } from "../../../src/cli/tools/tools.ts";
import { type Platform, PLATFORMS } from "../../../src/config/schema.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { keyOf, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { KEYS, run, runOnTerminal } from "../driving.ts";

const PROGRAMS: Readonly<Record<Shell, readonly string[]>> = {
  bash: ["bash", "--norc", "-c"],
  zsh: ["zsh", "-f", "-c"],
  fish: ["fish", "--no-config", "-c"],
  powershell: ["pwsh", "-NoProfile", "-Command"],
  // cmd.exe takes no script of several lines: the next test compares its lines as text.
  cmd: ["cmd.exe"],
};

test("in cmd, a value ends with the last quote of its line, and other quotes belong to the value", () => {
  const setting = { env: { A: 'x "y" & z' }, unset: ["B", "C"], args: ["--url", "http://a b"] };
  expect(writeSetting("cmd", "tool", setting)).toEqual([
    'set "B=" & set "C="',
    'set "A=x "y" & z"',
    'doskey tool=tool "--url" "http://a b" $*',
  ]);
});

describe("P46: each shell reads the lines of `env` as intended", () => {
  for (const shell of SHELLS.filter((each) => each !== "cmd")) {
    const [program = "", ...flags] = PROGRAMS[shell];
    const evaluate = async (lines: readonly string[], path = ""): Promise<string> => {
      const child = Bun.spawn([program, ...flags, lines.join("\n")], {
        env: { PATH: `${path}:${process.env["PATH"]}`, HOME: "/nonexistent" },
        stdout: "pipe",
        stderr: "ignore",
      });
      return child.stdout.text();
    };

    test.skipIf(Bun.which(program) === null)(`${shell} passes on every value unchanged`, async () => {
      const nasty = `' " \\ \\' $HOME \`id\` $(id) !x %PATH% ~ ’ # {a,b} a\nb`.split(" ").concat(" x ");
      const texts = sample(string({ unit: "grapheme", minLength: 1 }), { numRuns: 60, seed: 7 });
      const values = [...nasty, ...texts].filter((text) => !text.includes("\0"));
      const env = Object.fromEntries(values.map((value, index) => [`V${index}`, value]));
      const show = `'${process.execPath}' -e 'console.log(JSON.stringify(process.env))'`;
      const call = shell === "powershell" ? `& ${show}` : show;
      const shown = await evaluate([...writeSetting(shell, null, { env, unset: [], args: [] }), call]);
      expect(JSON.parse(shown)).toMatchObject(env);
    });

    test.skipIf(Bun.which(program) === null)(
      `${shell} unsets variables, and ignores those that are not set`,
      async () => {
        const show = `'${process.execPath}' -e 'console.log(Object.keys(process.env).filter((n) => /^W/.test(n)).join())'`;
        const call = shell === "powershell" ? `& ${show}` : show;
        const set = writeSetting(shell, null, { env: { W1: "1", W2: "2", W3: "3" }, unset: [], args: [] });
        const unset = writeSetting(shell, null, { env: {}, unset: ["W1", "W0", "W3"], args: [] });
        expect(await evaluate([...set, ...unset, call])).toBe("W2\n");
      },
    );

    test.skipIf(Bun.which(program) === null)(
      `in ${shell}, the tool gets the arguments of \`env\` before the user's own`,
      async () => {
        using folder = makeTempFolder();
        writeFileSync(folder.join("codex"), '#!/bin/sh\nprintf "<%s>" "$@"\n');
        chmodSync(folder.join("codex"), 0o755);
        const lines = writeSetting(shell, "codex", { env: {}, unset: [], args: ["-c", "it's=$1"] });
        expect(await evaluate([...lines, "codex exec 'a b'"], folder.path)).toBe("<-c><it's=$1><exec><a b>");
      },
    );
  }
});

function connectionOf(platform: Platform, more: Partial<Connection> = {}): Connection {
  const target = { base: "http://127.0.0.1:1", relayPrefix: "relay", platform, secret: "sk-s" };
  return { ...target, models: [], label: null, ...more };
}

describe("`env` prints the settings that each tool needs", () => {
  const connect = (name: string, platform: Platform, models: string[] = []) =>
    findTool(name).connect(connectionOf(platform, { models }), {});

  test("for channels at OpenAI's own address, `env codex` sets the provider's name to OpenAI, and disables a web search that a limit would refuse", async () => {
    using folder = makeTempFolder();
    const write = (more: string) =>
      writeFileSync(
        folder.join("gateway.yaml"),
        `listen: { port: 4999 }
channels:
  own: { platform: responses, base_url: https://api.openai.com/v1, credential: x }
  relay: { platform: responses, base_url: https://relay.example/v1, credential: x }
groups:
  direct: { platform: responses, channels: [own] }
  mixed: { platform: responses, channels: [own, relay] }
keys:
  - { name: free, group: direct, secret: sk-free }
  - { name: capped, group: direct, secret: sk-capped, limits: { usd_per_day: 1 } }
  - { name: open, group: direct, secret: sk-open, limits: { usd_per_day: 1, unpriced: allow } }
  - { name: both, group: mixed, secret: sk-both, limits: { usd_per_day: 1 } }
${more}`,
        { mode: 0o600 },
      );
    const read = async (key: string) => {
      const { stdout, stderr } = await run({ folder: folder.path }, "env", "codex", key, "--shell", "bash");
      const name = /model_providers\.gateway\.name=(\w+)/.exec(stdout)?.[1];
      return [key, name, stdout.includes("web_search=disabled"), stderr.includes("No web search")];
    };
    write("");
    expect(await read("free")).toEqual(["free", "OpenAI", false, false]);
    expect(await read("capped")).toEqual(["capped", "OpenAI", true, true]);
    expect(await read("open")).toEqual(["open", "OpenAI", false, false]);
    expect(await read("both")).toEqual(["both", "gateway", false, false]);
    write("prices: { codex-search: { call_per_1k: 10 } }");
    expect(await read("capped")).toEqual(["capped", "OpenAI", false, false]);
  });

  test("opencode sends the names of Anthropic's betas if every channel is Anthropic's own", () => {
    const read = (isDirect: boolean) => {
      const { env } = findTool("opencode").connect(connectionOf("messages", { isDirect, label: "x" }), {});
      return JSON.parse(env["OPENCODE_CONFIG_CONTENT"] ?? "").provider.anthropic.options.headers;
    };
    expect(read(true)).toMatchObject({
      "anthropic-beta": expect.stringContaining("thinking"),
      "x-gateway-label": "x",
    });
    expect(read(false)).toEqual({ "x-gateway-label": "x" });
  });

  describe("Claude Code gets settings that fit its channels", () => {
    const CONFIG = `listen: { port: 4999 }
channels:
  own: { platform: messages, base_url: https://api.anthropic.com, credential: x }
  relay: { platform: messages, base_url: https://relay.example, credential: x }
groups:
  direct: { platform: messages, channels: [own], cache: 1h }
  mixed: { platform: messages, channels: [own, relay] }
keys:
  - { name: own, group: direct, secret: sk-own }
  - { name: both, group: mixed, secret: sk-both }
`;
    const TRACES = "otlp: { url: http://127.0.0.1:9 }\n";

    const read = async (
      words: readonly string[],
      env: Record<string, string> = {},
      settings?: object,
      more = "",
    ) => {
      using folder = makeTempFolder();
      writeFileSync(folder.join("gateway.yaml"), CONFIG + more, { mode: 0o600 });
      mkdirSync(folder.join(".claude"));
      if (settings !== undefined)
        writeFileSync(folder.join(".claude/settings.json"), JSON.stringify({ env: settings }));
      const around = { folder: folder.path, env: { HOME: folder.path, ...env } };
      const { stdout } = await run(around, "env", ...words, "--json");
      const { env: set } = JSON.parse(stdout);
      const caches = [set.ENABLE_PROMPT_CACHING_1H, set.FORCE_PROMPT_CACHING_5M];
      return [set.ENABLE_TOOL_SEARCH, ...caches, set.CLAUDE_CODE_PROPAGATE_TRACEPARENT];
    };

    test("Claude Code gets ENABLE_TOOL_SEARCH if every channel is Anthropic's own, unless the user has set that variable", async () => {
      const [search] = await read(["claude", "own"]);
      expect(search).toBe("true");
      expect((await read(["claude", "both"]))[0]).toBeUndefined();
      expect((await read(["claude", "own"], { ENABLE_TOOL_SEARCH: "auto:5" }))[0]).toBeUndefined();
      expect((await read(["claude", "own"], {}, { ENABLE_TOOL_SEARCH: "false" }))[0]).toBeUndefined();
    });

    test("Claude Code gets CLAUDE_CODE_PROPAGATE_TRACEPARENT if the gateway sends spans, unless the user has set it", async () => {
      const traces = async (more: string, env = {}) =>
        (await read(["claude", "own"], env, undefined, more))[3];
      expect(await traces("")).toBeUndefined();
      expect(await traces(TRACES)).toBe("1");
      expect(await traces(TRACES, { CLAUDE_CODE_PROPAGATE_TRACEPARENT: "0" })).toBeUndefined();
    });

    test("Claude Code asks for caches of the lifetime that its group sets, or that --cache gives", async () => {
      expect((await read(["claude", "own"])).slice(1, 3)).toEqual(["1", ""]);
      expect((await read(["claude", "own", "--cache", "5m"])).slice(1, 3)).toEqual(["", "1"]);
      expect((await read(["claude", "both"])).slice(1, 3)).toEqual([undefined, undefined]);
      expect((await read(["claude", "both", "--cache", "1h"])).slice(1, 3)).toEqual(["1", ""]);
    });
  });

  test("opencode gets only the gateway's providers, and the models that the config names", () => {
    const read = (platform: Platform, models: string[]) =>
      JSON.parse(connect("opencode", platform, models).env["OPENCODE_CONFIG_CONTENT"] ?? "");
    expect(read("responses", ["fast"])).toEqual({
      model: "openai/fast",
      small_model: "openai/fast",
      enabled_providers: ["openai"],
      disabled_providers: [],
      provider: {
        openai: { options: { baseURL: "http://127.0.0.1:1/v1", apiKey: "sk-s" }, models: { fast: {} } },
      },
    });
    const relay = read("relay", ["fast", "my-gemini"]).provider;
    expect(relay.anthropic).toMatchObject({
      options: { baseURL: "http://127.0.0.1:1/relay/v1" },
      models: { fast: {} },
    });
    expect(relay.google).toEqual({
      options: { baseURL: "http://127.0.0.1:1/relay/v1beta", apiKey: "sk-s" },
      models: { "my-gemini": {} },
    });
  });

  test("opencode does not load the plugin that sends the requests of a ChatGPT login past the gateway", () => {
    using folder = makeTempFolder();
    const own = connectionOf("responses", { isDirect: true, run: { session: "s", tool: null } });
    const isOff = (connection: Connection, env: Record<string, string> = {}): boolean => {
      const around = { HOME: folder.path, ...env };
      return (
        prepareTool(findTool("opencode"), connection, around).env["OPENCODE_DISABLE_DEFAULT_PLUGINS"] === "1"
      );
    };
    expect(isOff(own)).toBe(false);
    expect(isOff({ ...own, isDirect: false })).toBe(true);
    const { run: _, ...shell } = own;
    expect(isOff(shell)).toBe(true);
    expect(isOff(own, { OPENCODE_AUTH_CONTENT: "{}" })).toBe(true);
    mkdirSync(folder.join(".local/share/opencode"), { recursive: true });
    writeFileSync(folder.join(".local/share/opencode/auth.json"), '{"openai":{"type":"oauth"}}');
    expect(isOff(own)).toBe(true);
  });
});

const LABEL = "my%20%25%20k%C3%BC";
const LABELLED: ReadonlyArray<readonly [tool: string, platform: Platform, sign: string]> = [
  ["claude", "messages", `x-own: 1\\nx-gateway-session: run-1\\nx-gateway-label: ${LABEL}`],
  ["gemini", "content", `x-own: 1,x-gateway-session: run-1,x-gateway-label: ${LABEL}`],
  ["openai", "responses", `x-own: 1\\nx-gateway-session: run-1\\nx-gateway-label: ${LABEL}`],
  ["codex", "responses", "env_http_headers.x-gateway-label=GATEWAY_CODEX_LABEL"],
  ["codex", "responses", `"GATEWAY_CODEX_LABEL":"${LABEL}"`],
  ["codex", "responses", "env_http_headers.x-gateway-session=GATEWAY_CODEX_SESSION"],
  ["codex", "responses", '"GATEWAY_CODEX_SESSION":"run-1"'],
  [
    "opencode",
    "messages",
    `\\"headers\\":{\\"x-gateway-session\\":\\"run-1\\",\\"x-gateway-label\\":\\"${LABEL}\\"}`,
  ],
];
test.each(LABELLED)("%s (%s) sends the label or the id of a run in a header: %s", (name, platform, sign) => {
  const tool = findTool(name);
  const connection = connectionOf(platform, { label: LABEL, run: { session: "run-1", tool: null } });
  const own = ["ANTHROPIC", "OPENAI", "GEMINI_CLI"].map((maker) => [`${maker}_CUSTOM_HEADERS`, "x-own: 1"]);
  const env = { COPILOT_PROVIDER_HEADERS: "x-own: 1", ...Object.fromEntries(own) };
  const setting = prepareTool(tool, connection, env);
  const file = tool.file?.(connection, setting, { HOME: "/nonexistent" })?.content;
  expect(JSON.stringify([setting, file])).toContain(sign);
});

test("a tool starts with the model of the user's own settings if the gateway lists that model", () => {
  using folder = makeTempFolder();
  const models = ["gpt-5.5", "gpt-5.4"];
  const env = { HOME: folder.path };
  const settings: readonly [tool: string, file: string, content: object][] = [
    ["opencode", ".config/opencode/opencode.json", { model: "openai/gpt-5.4" }],
    ["qwen", ".qwen/settings.json", { model: { name: "gpt-5.4" } }],
    ["pi", ".pi/agent/settings.json", { defaultModel: "gpt-5.4" }],
  ];
  for (const [name, file, content] of settings) {
    const start = (own: object): string => {
      mkdirSync(dirname(folder.join(file)), { recursive: true });
      writeFileSync(folder.join(file), JSON.stringify(own));
      const ownModel = findTool(name).findOwnModel?.(env) ?? null;
      const connection = connectionOf("responses", { models, ownModel });
      return JSON.stringify(prepareTool(findTool(name), connection, env));
    };
    const named = (model: string) => new RegExp(`"(?:openai/)?${model}"|\\\\"openai/${model}\\\\"`);
    expect([name, start(content)]).toEqual([name, expect.stringMatching(named("gpt-5.4"))]);
    expect([name, start({})]).toEqual([name, expect.stringMatching(named("gpt-5.5"))]);
  }
});

/** Each variable that misleads a tool, with a value that leads away from the gateway. */
const HOSTILE = Object.fromEntries(
  [...TOOLS.values()]
    .flatMap(({ misleading }) => misleading)
    .map((name) => [name, name.endsWith("_HEADERS") ? "Authorization: Bearer sk-theirs" : "sk-theirs"]),
);

describe("`env` unsets variables that make a tool bypass the gateway", () => {
  for (const [name, { misleading, ignoresNoProxy }] of TOOLS) {
    test(`the lines for ${name} unset variables that would lead it past the gateway, and are safe to evaluate`, async () => {
      using folder = makeTempFolder();
      const words = ["env", name, "--url", "http://127.0.0.1:1", "--secret", "sk-s"];
      const around = { folder: folder.path, env: HOSTILE };
      const { stdout, stderr } = await run(around, ...words, "--shell", "bash");
      const child = Bun.spawn(["sh", "-ec", `${stdout}\nenv`], {
        env: { PATH: process.env["PATH"], ...HOSTILE, KEPT: "1" },
        stdout: "pipe",
      });
      const left = (await child.stdout.text()).split("\n").map((line) => line.split("=")[0] ?? "");
      expect(misleading.filter((each) => left.includes(each))).toEqual([]);
      expect(left).toContain("KEPT");
      for (const each of misleading) expect(stderr).toContain(each);
      expect(stderr).not.toContain("sk-theirs");
      const { unset } = JSON.parse((await run(around, ...words, "--json")).stdout);
      expect(unset).toEqual([...misleading, ...(ignoresNoProxy === true ? PROXY_NAMES : [])]);
    });
  }
});

const CONFIG = `# mine
listen: { port: 4999 }
channels:
  a: { platform: messages, base_url: "http://127.0.0.1:9", credential: x, aliases: { fast: claude-haiku-4-5 } }
  o: { platform: responses, base_url: "http://127.0.0.1:9", credential: x }
groups:
  claude: { platform: messages, channels: [a] }
  cheap: { platform: messages, channels: [a] }
  codex: { platform: responses, channels: [o] }
  closed: { platform: responses, channels: [o], exclusive: true }
plans:
  max: { groups: [closed] }
keys:
  - { name: laptop, group: claude, secret: sk-laptop }
  - { name: hashed, group: claude, secret_sha256: ${sha256Hex("sk-hashed")} }
  - { name: variable, group: claude, secret: "\${OF_THE_KEY}" }
  - { name: ci, group: codex, secret: sk-ci }
  - { name: off, group: codex, secret: sk-off, disabled: true }
  - { name: old, group: codex, secret: sk-old, expires: 2020-01-01 }
  - { name: shut, group: closed, secret: sk-shut }
`;

function prepare(): TempFolder {
  const folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), CONFIG, { mode: 0o600 });
  return folder;
}

describe("P59: `env` finds the key to use", () => {
  const cases: ReadonlyArray<readonly [what: string, words: string[], env: Record<string, string>]> = [
    ["GATEWAY_KEY", ["claude"], { GATEWAY_KEY: "sk-laptop" }],
    ["the config, if the key's name stands after the tool", ["claude", "laptop"], {}],
    ["a secret after the tool", ["claude", "sk-laptop"], {}],
    ["--secret, whatever GATEWAY_KEY says", ["claude", "--secret", "sk-laptop"], { GATEWAY_KEY: "sk-ci" }],
  ];
  for (const [what, words, env] of cases) {
    test(`the key comes from ${what}`, async () => {
      using folder = prepare();
      const all = ["env", ...words, "--shell", "bash"];
      const { status, stdout, stderr } = await run({ folder: folder.path, env }, ...all);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      const [unset, ...exports] = stdout.split("\n");
      expect(unset).toMatch(/^unset ANTHROPIC_API_KEY [A-Z_ ]+$/);
      expect(exports.join("\n")).toBe(
        "export ANTHROPIC_BASE_URL='http://127.0.0.1:4999'\nexport ANTHROPIC_AUTH_TOKEN='sk-laptop'\n" +
          "export CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY='1'\n" +
          "export API_TIMEOUT_MS='960000'\nexport CLAUDE_STREAM_IDLE_TIMEOUT_MS='960000'\n" +
          "export API_FORCE_IDLE_TIMEOUT='0'\n" +
          "export NO_PROXY='localhost,127.0.0.1,::1'\nexport no_proxy='localhost,127.0.0.1,::1'\n",
      );
    });
  }

  test("the key comes from a variable that the config names, if the variable is set", async () => {
    using folder = prepare();
    const words = ["env", "anthropic", "variable", "--json"];
    const found = await run({ folder: folder.path, env: { OF_THE_KEY: "sk-of-the-key" } }, ...words);
    expect(JSON.parse(found.stdout).env["ANTHROPIC_API_KEY"]).toBe("sk-of-the-key");
    expect(await run({ folder: folder.path }, ...words)).toMatchObject({ status: 2, stdout: "" });
  });

  test("the key comes from stdin with --secret -", async () => {
    using folder = prepare();
    const args = ["env", "openai", "--secret", "-", "--json"];
    const { stdout } = await run({ folder: folder.path, stdin: "sk-ci\n" }, ...args);
    expect(JSON.parse(stdout)).toEqual({
      tool: "openai",
      key: "ci",
      group: "codex",
      platform: "responses",
      base_url: "http://127.0.0.1:4999",
      env: {
        OPENAI_BASE_URL: "http://127.0.0.1:4999/v1",
        OPENAI_API_BASE: "http://127.0.0.1:4999/v1",
        OPENAI_API_KEY: "sk-ci",
        NO_PROXY: "localhost,127.0.0.1,::1",
        no_proxy: "localhost,127.0.0.1,::1",
      },
      unset: [],
      args: [],
      file: null,
    });
  });

  const refusals: ReadonlyArray<
    readonly [what: string, words: string[], status: number, ...parts: string[]]
  > = [
    ["of another platform", ["codex", "sk-laptop"], 1, '"laptop" does not fit', "claude is for messages"],
    ["given to a tool that no key fits", ["gemini", "sk-ci"], 1, "content or relay"],
    ["unknown", ["claude", "sk-nobodys"], 1, "belongs to no key"],
    ["not the named one", ["claude", "--key", "ci", "--secret", "sk-laptop"], 1, '"ci" does not fit'],
    ["not the one of --key", ["codex", "--key", "ci", "--secret", "sk-off"], 1, '"off", not to "ci"'],
    ["disabled", ["codex", "sk-off"], 1, "gateway keys enable off"],
    ["expired", ["codex", "sk-old"], 1, "gateway keys rotate old --expires 30d"],
    ["of a plan that is not active", ["codex", "sk-shut"], 1, "gateway plans activate max"],
    ["misspelt", ["claude", "laptpo"], 1, 'did you mean "laptop"?'],
    ["missing", ["claude"], 2, "--group is missing", "claude, cheap"],
    ["in the config only as a hash", ["claude", "hashed"], 2, 'The secret of the key "hashed" is missing'],
    ["given to an unknown tool", ["cluade", "sk-laptop"], 2, 'did you mean "claude"?'],
  ];
  for (const [what, words, status, ...parts] of refusals) {
    test(`for a key that is ${what}, \`env\` prints an error of one sentence`, async () => {
      using folder = prepare();
      const result = await run({ folder: folder.path }, "env", ...words);
      expect({ status: result.status, stdout: result.stdout }).toEqual({ status, stdout: "" });
      for (const part of parts) expect(result.stderr).toContain(part);
      expect(result.stderr).not.toMatch(/sk-(laptop|ci|off|old|shut|nobodys)/);
    });
  }
});

describe("P59: `env --new` creates a key", () => {
  test("`env --new` creates a key in the only group that fits the tool, and changes nothing else in the file", async () => {
    using folder = prepare();
    const { status, stdout, stderr } = await run({ folder: folder.path }, "env", "openai", "--new", "--json");
    expect(status).toBe(0);
    const { key, group, env } = JSON.parse(stdout);
    expect({ key, group }).toEqual({ key: "openai", group: "codex" });
    expect(stderr).toContain('Created the key "openai" in the group codex');
    const after = readFileSync(folder.join("gateway.yaml"), "utf8");
    expect(after).toStartWith(CONFIG);
    expect(after.slice(CONFIG.length)).toContain(sha256Hex(env.OPENAI_API_KEY));
    const second = await run({ folder: folder.path }, "env", "openai", "--new", "--json");
    expect(JSON.parse(second.stdout).key).toBe("openai-2");
  });

  const refusals: ReadonlyArray<readonly [what: string, words: string[], status: number, part: string]> = [
    ["several groups fit the tool", ["claude"], 2, "--group is missing. Groups that fit: claude, cheap"],
    ["the group does not fit the tool", ["claude", "--group", "codex"], 1, "Groups that fit: claude, cheap"],
    ["the group is closed", ["codex", "--group", "closed"], 1, "gateway plans activate max"],
    ["the name is taken", ["codex", "--key", "ci"], 1, 'There is already a key "ci"'],
    ["a secret is given, too", ["codex", "--secret", "sk-ci"], 2, "--new and --secret exclude each other"],
  ];
  for (const [what, words, status, part] of refusals) {
    test(`env --new is refused if ${what}, and changes nothing`, async () => {
      using folder = prepare();
      const result = await run({ folder: folder.path }, "env", ...words, "--new");
      expect(result).toMatchObject({ status, stdout: "" });
      expect(result.stderr).toContain(part);
      expect(readFileSync(folder.join("gateway.yaml"), "utf8")).toBe(CONFIG);
    });
  }

  test.each(["claude-desktop", "codex-app"])(
    "`env %s --new` is refused for a group that passes on the login of a plan",
    async (app) => {
      using folder = makeTempFolder();
      const [platform, base_url] =
        app === "codex-app"
          ? ["responses", "https://chatgpt.com/backend-api/codex"]
          : ["messages", "https://api.anthropic.com"];
      const config = {
        channels: { login: { platform, base_url, credential: "client" } },
        groups: { plan: { platform, channels: ["login"] } },
      };
      writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
      const { status, stdout, stderr } = await run({ folder: folder.path }, "env", app, "--new");
      expect([status, stdout]).toEqual([1, ""]);
      expect(stderr).toContain("The group plan passes on the login");
      expect(readFileSync(folder.join("gateway.yaml"), "utf8")).toBe(JSON.stringify(config));
    },
  );

  test("`env` asks for the group of a new key on a terminal, also while stdout is captured", async () => {
    using folder = prepare();
    const captured = folder.join("out");
    const session = runOnTerminal({ folder: folder.path, captured }, "env", "claude", "--shell", "bash");
    await session.shows("Group of the key");
    session.press(KEYS.down + KEYS.enter);
    expect(await session.status).toBe(0);
    expect(readFileSync(captured, "utf8")).toMatch(
      /^unset .*\nexport ANTHROPIC_BASE_URL='.*\nexport ANTHROPIC_AUTH_TOKEN='sk-\w{43}'\n/,
    );
    expect(readFileSync(folder.join("gateway.yaml"), "utf8")).toContain("group: cheap");
  });
});

describe("`env` prints the right address of the gateway", () => {
  test("`env --url` names the gateway's address, and needs no config", async () => {
    using folder = makeTempFolder();
    const flags = ["--url", "https://gw.example/sub/", "--secret", "sk-theirs", "--json"];
    const { status, stdout } = await run({ folder: folder.path }, "env", "openai", ...flags);
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      key: null,
      env: { OPENAI_BASE_URL: "https://gw.example/sub/v1", OPENAI_API_KEY: "sk-theirs" },
    });
  });

  test("without a config, `env --url` with a key prints the settings for the key's platform", async () => {
    using folder = makeTempFolder();
    const upstream = startDemoUpstream();
    const gateway = startGatewayHere({ config: makeConfig(upstream) });
    const printed = PLATFORMS.map(async (platform) => {
      const flags = ["--url", gateway.url, "--secret", keyOf(platform), "--json"];
      const { stdout } = await run({ folder: folder.path }, "env", "copilot", ...flags);
      const { COPILOT_PROVIDER_TYPE: type, COPILOT_PROVIDER_BASE_URL: url } = JSON.parse(stdout).env;
      return `${type} ${String(url).replace(gateway.url, "")}`;
    });
    expect(await Promise.all(printed)).toEqual([
      "anthropic ",
      "openai /v1",
      "anthropic ",
      "anthropic /relay",
    ]);
    await gateway.stop();
    upstream.stop();
  });

  test("`env` fails if the config's port is 0 and no gateway runs", async () => {
    using folder = prepare();
    writeFileSync(folder.join("gateway.yaml"), CONFIG.replace("4999", "0"));
    const { status, stderr } = await run({ folder: folder.path }, "env", "claude", "sk-laptop");
    expect(status).toBe(1);
    expect(stderr).toContain("No gateway runs");
  });
});
