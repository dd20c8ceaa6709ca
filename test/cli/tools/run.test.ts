// Tests `gateway run` with stand-ins for the tools, which say what they were given.

import { describe, expect, onTestFinished, test } from "bun:test";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { agreeToMeteredBilling } from "../../../src/cli/tools/run.ts";
import { ENV_TOOLS } from "../../../src/dialects/platforms.ts";
import { findTool, TOOLS } from "../../../src/cli/tools/tools.ts";
import { loadConfig } from "../../../src/config/file/load.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { expectMode, makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run, runHere, runOnTerminal } from "../driving.ts";
import { PROGRAM } from "../../harness/program.ts";

/** What `run` prints before the tool starts. */
const ROUTE =
  "The OpenAI SDK: key openai, group responses (127.0.0.1:9), billed by use at official prices.\n";
const WHERE = ["--url", "http://127.0.0.2:1", "--secret", "sk-s"];

function write(folder: TempFolder, files: Readonly<Record<string, string | object>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(folder.join(name)), { recursive: true });
    const text = typeof content === "string" ? content : JSON.stringify(content);
    writeFileSync(folder.join(name), text, { mode: 0o600 });
  }
}

/** Puts a program of this name on the PATH. */
function standIn(folder: TempFolder, name: string, script: string): Record<string, string> {
  write(folder, { [`bin/${name}`]: `#!/bin/sh\n${script}\n` });
  chmodSync(folder.join("bin", name), 0o755);
  return { PATH: `${folder.join("bin")}:${process.env["PATH"]}`, HOME: folder.path };
}

/** Runs `gateway run TOOL ARGUMENTS`, with a script in place of the tool. */
const start = (
  folder: TempFolder,
  words: readonly [tool: string, ...args: string[]],
  script: string,
  more: Start = {},
) => {
  const { flags = [], env = {}, place = folder.path, stdin = "", program = words[0] } = more;
  const around = { folder: place, env: { ...standIn(folder, program, script), ...env }, stdin };
  return run(around, "run", ...flags, ...WHERE, ...words);
};

interface Start {
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly place?: string;
  readonly stdin?: string;
  /** The program's name, if it is not the tool's. */
  readonly program?: string;
}

describe("P43: a tool that `run` starts gets what it needs, and its exit status is passed on", () => {
  test("a tool gets its settings, arguments and stdin, and `run` exits with the tool's status", async () => {
    using folder = makeTempFolder();
    const script = 'printf "<%s>" "$@"; echo "$GATEWAY_CODEX_KEY"; cat; echo oops >&2; exit 7';
    const started = start(folder, ["codex", "exec", "a b", "--json"], script, { stdin: "hello" });
    const { status, stdout, stderr } = await started;
    expect([status, stderr]).toEqual([7, "oops\n"]);
    expect(stdout.replaceAll("<-c><model_providers.gateway.", "<")).toStartWith(
      "<-c><model_provider=gateway><name=gateway><base_url=http://127.0.0.2:1/v1><wire_api=responses><env_key=GATEWAY_CODEX_KEY>",
    );
    expect(stdout).toEndWith("<exec><a b><--json>sk-s\nhello");
  });

  test("a tool sends the user's own header fields, a session for the run, and the folder's name as a label", async () => {
    using folder = makeTempFolder();
    const place = folder.join("my % kü");
    mkdirSync(place);
    const script = 'echo "$ANTHROPIC_CUSTOM_HEADERS"';
    const own = "x-own: 1\nx-authorization-note: 2";
    const more = { place, env: { ANTHROPIC_CUSTOM_HEADERS: own } };
    const { stdout } = await start(folder, ["claude"], script, more);
    const session = "x-gateway-session: run-[\\da-f-]{36}\nx-gateway-tool: claude";
    expect(stdout).toMatch(new RegExp(`^${own}\n${session}\nx-gateway-label: my%20%25%20k%C3%BC\n$`));
    expect((await start(folder, ["claude"], script, more)).stdout).not.toBe(stdout);
  });

  test("Claude Code gets the gateway's header fields in addition to those in its own settings file", async () => {
    using folder = makeTempFolder();
    write(folder, { ".claude/settings.json": { env: { ANTHROPIC_CUSTOM_HEADERS: "x-own: 1" } } });
    const script = 'while [ "$1" != --settings ]; do shift; done; cat "$2"';
    const headers = JSON.parse((await start(folder, ["claude"], script)).stdout).env.ANTHROPIC_CUSTOM_HEADERS;
    expect(headers).toMatch(/^x-own: 1\n(?:x-gateway-\w+: .*\n)*x-gateway-label: /);
  });

  const missing: ReadonlyArray<readonly [tool: string, args: string[], status: number, part: string]> = [
    ["claude", [], 1, "npm install -g @anthropic-ai/claude-code"],
    ["codex", [], 1, "npm install -g @openai/codex"],
    ["gemini", [], 1, "npm install -g @google/gemini-cli"],
    ["opencode", [], 1, "npm install -g opencode-ai"],
    ["google", ["no-such-program"], 1, "There is no program no-such-program"],
    ["anthropic", [], 2, "gateway run anthropic python app.py"],
  ];
  for (const [tool, args, status, part] of missing) {
    test(`\`run\` says what is missing if it finds no program for ${tool} ${args.join(" ")}`, async () => {
      using folder = makeTempFolder();
      const around = { folder: folder.path, env: { PATH: "/nonexistent" } };
      const result = await runHere(around, "run", ...WHERE, tool, ...args);
      expect(result.status).toBe(status);
      expect(result.stderr).toContain(part);
    });
  }

  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    test(`the tool gets ${signal}, and its exit status is passed on`, async () => {
      using folder = makeTempFolder();
      const catching = `trap 'echo caught; exit 3' ${signal.slice(3)}; echo ready; for i in $(seq 100); do sleep 0.1; done`;
      const env = standIn(folder, "claude", catching);
      const words = ["run", ...WHERE, "claude"];
      const child = Bun.spawn([...PROGRAM, ...words], { env, stdin: "ignore", stdout: "pipe" });
      let shown = "";
      for await (const chunk of child.stdout) {
        shown += new TextDecoder().decode(chunk);
        if (shown === "ready\n") child.kill(signal);
      }
      expect(shown).toBe("ready\ncaught\n");
      expect(await child.exited).toBe(3);
    });
  }

  test("a tool killed by a signal gives the exit status that shells use", async () => {
    using folder = makeTempFolder();
    expect((await start(folder, ["claude"], "kill -KILL $$")).status).toBe(137);
  });
});

describe("P43: Gemini CLI's home keeps the user's own files", () => {
  const show =
    'echo "$GEMINI_CLI_HOME"; cat "$GEMINI_CLI_HOME/.gemini/GEMINI.md" "$GEMINI_CLI_HOME/.gemini/settings.json"';

  test("Gemini CLI's home is temporary, with the needed setting and the user's own files", async () => {
    using folder = makeTempFolder();
    const settings =
      '{ "ui": { "theme": "X" }, "security": { "auth": { "selectedType": "oauth-personal" } } } // mine';
    write(folder, { ".gemini/settings.json": settings, ".gemini/GEMINI.md": "remember\n" });
    const { status, stdout } = await start(folder, ["gemini"], show);
    const [home = "", memory, ...rest] = stdout.split("\n");
    expect([status, memory]).toEqual([0, "remember"]);
    expect(JSON.parse(rest.join("\n"))).toEqual({
      ui: { theme: "X" },
      security: { auth: { selectedType: "gemini-api-key" } },
    });
    expect(home).not.toBe(folder.path);
    expect(existsSync(home)).toBe(false);
    expect(readFileSync(folder.join(".gemini/settings.json"), "utf8")).toBe(settings);
  });

  test("Gemini CLI's home is the user's own if its settings are already right", async () => {
    using folder = makeTempFolder();
    const settings = '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }';
    write(folder, { ".gemini/settings.json": settings });
    expect((await start(folder, ["gemini"], 'echo "[$GEMINI_CLI_HOME]"')).stdout).toBe("[]\n");
  });

  test("`run` keeps files that Gemini CLI made or replaced, and says that changed settings are lost", async () => {
    using folder = makeTempFolder();
    const rewrite = (name: string, text: string) =>
      `cd "$GEMINI_CLI_HOME/.gemini"; rm -f ${name}; echo ${text} > ${name}; `;
    const script =
      rewrite("GEMINI.md", "remember") + rewrite("trusted.json", "new") + rewrite("settings.json", "{}");
    write(folder, { ".gemini/trusted.json": "old", ".gemini/settings.json": "{} // mine" });
    const { status, stderr } = await start(folder, ["gemini"], script);
    expect([status, stderr]).toEqual([0, expect.stringContaining("what you change in it is lost")]);
    const read = (name: string) => readFileSync(folder.join(".gemini", name), "utf8");
    expect(["GEMINI.md", "trusted.json", "settings.json"].map(read)).toEqual([
      "remember\n",
      "new\n",
      "{} // mine",
    ]);
  });

  test("Gemini CLI works if the user has no settings, and its first sessions outlast the run", async () => {
    using folder = makeTempFolder();
    const script = 'cd "$GEMINI_CLI_HOME/.gemini"; cat settings.json; echo kept > tmp/session';
    const { stdout } = await start(folder, ["gemini"], script);
    expect(JSON.parse(stdout)).toEqual({ security: { auth: { selectedType: "gemini-api-key" } } });
    // There is a folder for Gemini CLI's sessions, and there are no settings.
    expect(readdirSync(folder.join(".gemini"))).toEqual(["tmp"]);
    expect(readFileSync(folder.join(".gemini/tmp/session"), "utf8")).toBe("kept\n");
  });
});

test("`run codex resume` says which sessions it finds", async () => {
  using folder = makeTempFolder();
  const resumed = await start(folder, ["codex", "exec", "resume", "--last"], "true");
  expect(resumed.stderr).toContain("only sessions that began with `gateway run codex`");
  expect((await start(folder, ["codex", "exec", "hi"], "true")).stderr).toBe("");
});

describe("P43: Claude Code's settings are overridden for the run, and stay unchanged", () => {
  const show = 'echo "$*"; [ "$1" = --settings ] && cat "$2"';

  test("Claude Code's settings that set other variables are overridden for this run, and stay unchanged", async () => {
    using folder = makeTempFolder();
    const settings = '{ "env": { "ANTHROPIC_BASE_URL": "http://elsewhere", "OTHER": "x" } }';
    write(folder, { ".claude/settings.json": settings });
    const { stdout } = await start(folder, ["claude", "-p", "hi"], show);
    const [line = "", json = ""] = stdout.split("\n");
    expect(line).toMatch(/^--settings .+ -p hi$/);
    expect(line).not.toContain("sk-s");
    expect(JSON.parse(json).env).toMatchObject({
      ANTHROPIC_BASE_URL: "http://127.0.0.2:1",
      ANTHROPIC_AUTH_TOKEN: "sk-s",
      ANTHROPIC_API_KEY: "",
    });
    expect(existsSync(/--settings (.+) -p/.exec(line)?.[1] ?? "")).toBe(false);
    expect(readFileSync(folder.join(".claude/settings.json"), "utf8")).toBe(settings);
    const home = { folder: folder.path, env: { HOME: folder.path } };
    const reported = await run(home, "env", "claude", ...WHERE);
    expect(reported.stderr).toContain(
      `reads ANTHROPIC_BASE_URL from ${folder.join(".claude/settings.json")}`,
    );
  });

  test("Claude Code's settings that exempt hosts from proxies keep these hosts and get the gateway's host", async () => {
    using folder = makeTempFolder();
    const env = { NO_PROXY: "corp.example", CLAUDE_CODE_USE_MANTLE: "1" };
    write(folder, { ".claude/settings.json": { env } });
    const { stdout } = await start(folder, ["claude"], show);
    expect(JSON.parse(stdout.split("\n")[1] ?? "").env).toMatchObject({
      NO_PROXY: "corp.example,localhost,127.0.0.1,::1,127.0.0.2",
      no_proxy: "corp.example,localhost,127.0.0.1,::1,127.0.0.2",
      CLAUDE_CODE_USE_MANTLE: "",
      ANTHROPIC_UNIX_SOCKET: "",
    });
  });
});

describe("P43: `run` uses a running gateway, or offers to start one", () => {
  test("`run` finds the running gateway of its config at any port, and the tool's new key works at once", async () => {
    const upstream = startDemoUpstream({ platform: "responses" });
    using runtime = makeTempFolder();
    const gateway = await startGateway({
      config: makeConfig(upstream),
      env: { XDG_RUNTIME_DIR: runtime.path },
    });
    onTestFinished(() => gateway.stop());
    onTestFinished(() => upstream.stop());
    const call =
      'curl -s -o /dev/null -w "%{http_code}" "$OPENAI_BASE_URL/models" -H "authorization: Bearer $OPENAI_API_KEY"';
    const env = {
      ...standIn(gateway.folder, "app", `echo "$OPENAI_BASE_URL"; ${call}`),
      XDG_RUNTIME_DIR: runtime.path,
    };
    const where = { folder: gateway.folder.path, env };
    const known = await run(where, "run", "--secret", keyOf("responses"), "openai", "app");
    expect(known).toEqual({ status: 0, stdout: `${gateway.url}/v1\n200`, stderr: known.stderr });
    expect(known.stderr).toMatch(
      /^The OpenAI SDK: key responses, group responses \(127\.0\.0\.1:\d+\), billed by use at official prices\.\n$/,
    );
    const fresh = await run(where, "run", "--new", "openai", "app");
    expect(fresh).toMatchObject({ status: 0, stdout: `${gateway.url}/v1\n200` });
  });

  test("a running gateway gives opencode every model of the key's group", async () => {
    const upstream = startDemoUpstream({ platform: "messages" });
    using runtime = makeTempFolder();
    const around = { XDG_RUNTIME_DIR: runtime.path };
    const gateway = await startGateway({ config: makeConfig(upstream), env: around });
    onTestFinished(() => gateway.stop());
    onTestFinished(() => upstream.stop());
    const env = { ...standIn(gateway.folder, "opencode", 'echo "$OPENCODE_CONFIG_CONTENT"'), ...around };
    // Asking for the models must not go through a proxy, which would read the key.
    const proxied = { ...env, HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" };
    const where = { folder: gateway.folder.path, env: proxied };
    for (const platform of ["messages", "relay"] as const) {
      const listed = await run(where, "models", "--group", platform, "--json");
      const ids: string[] = JSON.parse(listed.stdout).map(({ id }: { id: string }) => id);
      const { stdout } = await run(where, "run", "--key", platform, "opencode");
      const { model, provider } = JSON.parse(stdout);
      const models = Object.values<{ models: object }>(provider).flatMap((each) => Object.keys(each.models));
      expect(ids.length).toBeGreaterThan(2);
      expect(models.sort()).toEqual(ids.sort());
      expect(ids).toContain(model.replace(/^\w+\//, ""));
    }
  });

  test("without a terminal, `run` fails if no gateway runs, and leaves the config alone", async () => {
    using setup = prepareRun();
    const before = readFileSync(setup.path("gateway.yaml"), "utf8");
    const { status, stdout, stderr } = await setup.run("run", "openai", "app");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toContain("No gateway is running");
    expect(stderr).toContain("`gateway serve`");
    expect(readFileSync(setup.path("gateway.yaml"), "utf8")).toBe(before);
  });

  test("`run` asks whether to start a gateway in the background, and this gateway outlives the tool", async () => {
    using setup = prepareRun();
    const session = setup.onTerminal("run", "openai", "app");
    await session.shows("Start it in the background?");
    session.press("\r");
    expect(await session.status).toBe(0);
    const [, url = "", pid = ""] =
      /runs on (http:\S+) \(process (\d+)/.exec(Bun.stripANSI(session.raw())) ?? [];
    try {
      expect(session.raw()).toContain(`base=${url}/v1`);
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      const log = setup.path("state/gateway/gateway.log");
      expect(Bun.stripANSI(session.raw()).replaceAll(/\s+/g, "")).toContain(
        `Itslog:${log}`.replaceAll(/\s+/g, ""),
      );
      expectMode(log, 0o600);
      expect(readFileSync(log, "utf8")).toContain("gateway is ready");
      const again = await setup.run("run", "openai", "app");
      expect(again).toEqual({ status: 0, stdout: `base=${url}/v1 args=\n`, stderr: ROUTE });
    } finally {
      process.kill(Number(pid));
    }
  });

  test("`run` fails and shows the end of the gateway's log if no gateway runs and none can start", async () => {
    using setup = prepareRun();
    using taken = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data: () => {} } });
    setup.listenOn(taken.port);
    const session = setup.onTerminal("run", "openai", "app");
    await session.shows("Start it in the background?");
    session.press("\r");
    expect(await session.status).toBe(1);
    expect(session.raw()).toContain("did not start");
    expect(session.raw()).toContain(String(taken.port));
  });
});

describe("`run` creates a key for the tool, and finds it again", () => {
  const words = ["run", "--url", "http://127.0.0.2:1"];
  const secretOf = ({ stdout }: { stdout: string }): string => /key=(\S+)/.exec(stdout)?.[1] ?? "";

  test("a tool's own key is created once, stored for the user alone, found again, and shown by `keys list`", async () => {
    using setup = prepareRun('echo "key=$OPENAI_API_KEY"');
    const first = await setup.run(...words, "openai", "app");
    expect(first).toMatchObject({ status: 0, stderr: expect.stringContaining('Created the key "openai"') });
    expect(secretOf(first)).toMatch(/^sk-\w{43}$/);
    const config = readFileSync(setup.path("gateway.yaml"), "utf8");
    expect(config).toContain(sha256Hex(secretOf(first)));
    expect(config).not.toContain(secretOf(first));
    expectMode(setup.path(".gateway.yaml.tool-keys"), 0o600);
    expect(await setup.run(...words, "openai", "app")).toEqual({
      status: 0,
      stdout: first.stdout,
      stderr: ROUTE,
    });
    expect(readFileSync(setup.path("gateway.yaml"), "utf8")).toBe(config);
    expect((await setup.run("keys", "list")).stdout).toContain("\nopenai ");
    const env = await setup.run("env", "openai", "--url", "http://127.0.0.2:1", "--json");
    expect(JSON.parse(env.stdout)).toMatchObject({ key: "openai", env: { OPENAI_API_KEY: secretOf(first) } });
  });

  test("several runs of a tool at the same time create only one key", async () => {
    using setup = prepareRun('echo "key=$OPENAI_API_KEY"');
    const all = await Promise.all([1, 2, 3].map(() => setup.run(...words, "openai", "app")));
    expect(new Set(all.map(secretOf)).size).toBe(1);
    expect(loadConfig(setup.path("gateway.yaml"), {}).catalog.keys.has("openai-2")).toBe(false);
  });

  test("a tool gets its key's new secret after `keys rotate`, is refused while the key is disabled, and gets a new key after `keys remove`", async () => {
    using setup = prepareRun('echo "key=$OPENAI_API_KEY"');
    const first = secretOf(await setup.run(...words, "openai", "app"));
    const rotated = (await setup.run("keys", "rotate", "openai")).stdout.trim();
    expect(secretOf(await setup.run(...words, "openai", "app"))).toBe(rotated);
    await setup.run("keys", "disable", "openai");
    const refused = await setup.run(...words, "openai", "app");
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringContaining("gateway keys enable openai"),
    });
    await setup.run("keys", "remove", "openai", "--yes");
    expect(readFileSync(setup.path(".gateway.yaml.tool-keys"), "utf8")).not.toContain(rotated);
    const fresh = secretOf(await setup.run(...words, "openai", "app"));
    expect([first, rotated, ""]).not.toContain(fresh);
  });

  test("a tool's own key can be in another group, and --new replaces it", async () => {
    using setup = prepareRun('echo "key=$ANTHROPIC_API_KEY"');
    const relay = await setup.run(...words, "--group", "relay", "anthropic", "app");
    const messages = await setup.run(...words, "--group", "messages", "anthropic", "app");
    expect(secretOf(messages)).not.toBe(secretOf(relay));
    expect(secretOf(await setup.run(...words, "--group", "relay", "anthropic", "app"))).toBe(secretOf(relay));
    expect(secretOf(await setup.run(...words, "anthropic", "app"))).toBe(secretOf(messages));
    const fresh = await setup.run(...words, "--new", "--group", "messages", "anthropic", "app");
    expect(secretOf(await setup.run(...words, "anthropic", "app"))).toBe(secretOf(fresh));
    // An impossible run is refused before the first question.
    copyFileSync(setup.path("bin/app"), setup.path("bin/claude"));
    writeFileSync(setup.path(".claude.json"), '{"oauthAccount":{}}');
    const before = readFileSync(setup.path("gateway.yaml"), "utf8");
    for (const [complaint, ...flags] of [
      ['There is already a key "anthropic".', "--new", "--key", "anthropic", "claude"],
      ["--record: the name of a recording is letters", "--record", "a b", "claude"],
      ["--statusline: Codex has no status line", "--statusline", "codex"],
    ]) {
      const { stderr } = await setup.run(...words, ...flags);
      expect(stderr).toStartWith(`gateway: ${complaint}`);
    }
    expect(readFileSync(setup.path("gateway.yaml"), "utf8")).toBe(before);
  });
});

describe("P157: `run` does not replace a subscription login without asking", () => {
  const LOGINS: ReadonlyArray<readonly [tool: string, file: string, content: object]> = [
    ["claude", ".claude.json", { oauthAccount: { emailAddress: "x" } }],
    ["claude", ".claude/.credentials.json", { claudeAiOauth: { accessToken: "x" } }],
    ["codex", ".codex/auth.json", { tokens: { access_token: "x" } }],
    ["gemini", ".gemini/oauth_creds.json", { access_token: "x" }],
    ["opencode", ".local/share/opencode/auth.json", { openai: { type: "oauth" } }],
  ];
  test.each(LOGINS)(
    "without a terminal, `run` refuses to replace the login of %s in %s until --yes was given once",
    async (tool, file, content) => {
      using folder = makeTempFolder();
      write(folder, { [file]: content, ".local/state/gateway/agreed-tools.json": ["another tool"] });
      const refused = await start(folder, [tool], "");
      expect(refused).toMatchObject({ status: 2, stdout: "" });
      expect(refused.stderr).toContain("subscription");
      expect(refused.stderr).toContain("--yes");
      const agree = (yes: boolean) =>
        agreeToMeteredBilling(findTool(tool), { yes, plan: null }, { HOME: folder.path });
      await agree(true);
      await agree(false);
    },
  );

  test("on a terminal, `run` asks before it replaces a subscription login: `no` starts nothing, and after `yes` it asks no more", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "claude", "echo tool-ran");
    writeFileSync(folder.join(".claude.json"), '{"oauthAccount":{}}');
    const begin = () => runOnTerminal({ folder: folder.path, env }, "run", ...WHERE, "claude");
    const refused = begin();
    await refused.shows("Go on?");
    refused.press("n");
    expect(await refused.status).toBe(1);
    expect(refused.raw()).not.toContain("tool-ran");
    const agreed = begin();
    await agreed.shows("Go on?");
    agreed.press("y");
    expect(await agreed.status).toBe(0);
    const again = begin();
    expect(await again.status).toBe(0);
    expect(again.raw()).not.toContain("Go on?");
  });
});

describe("`run --list` shows the tools", () => {
  test("`run --list` shows every tool that it starts, and where it is installed or how to install it", async () => {
    using folder = makeTempFolder();
    const env = { ...standIn(folder, "claude", ""), PATH: folder.join("bin") };
    const { status, stdout } = await run({ folder: folder.path, env }, "run", "--list");
    expect(status).toBe(0);
    for (const { name } of TOOLS.values())
      expect([name, stdout.includes(`\n${name} `)]).toEqual([name, !ENV_TOOLS.has(name)]);
    expect(stdout).toContain(folder.join("bin/claude"));
    expect(stdout).toContain("npm install -g @openai/codex");
    const json = JSON.parse((await run({ folder: folder.path, env }, "run", "--list", "--json")).stdout);
    expect(json).toContainEqual(expect.objectContaining({ name: "claude", path: folder.join("bin/claude") }));
    expect(json).toContainEqual(expect.objectContaining({ name: "codex", path: null }));
  });
});

test("options before the tool's name go to the gateway, later ones to the tool, with or without --", async () => {
  using folder = makeTempFolder();
  const show = async (...args: string[]) =>
    (await start(folder, ["claude", ...args], 'printf "<%s>" "$@"')).stdout;
  expect(await show("--yes", "--key", "x", "--help")).toBe("<--yes><--key><x><--help>");
  expect(await show("--", "-p", "hi")).toBe("<-p><hi>");
  expect(await show("-p", "--", "hi")).toBe("<-p><--><hi>");
});

/** Prepares a config without keys, and a program `app`. */
function prepareRun(script = 'echo "base=$OPENAI_BASE_URL args=$*"') {
  const folder = makeTempFolder();
  const runtime = makeTempFolder();
  const env = {
    ...standIn(folder, "app", script),
    XDG_RUNTIME_DIR: runtime.path,
    XDG_STATE_HOME: folder.join("state"),
  };
  const listenOn = (port: number): void =>
    write(folder, {
      "gateway.yaml": { ...makeConfig({ url: "http://127.0.0.1:9" }), keys: [], listen: { port } },
    });
  listenOn(0);
  return {
    path: (name: string) => folder.join(name),
    listenOn,
    run: (...words: string[]) => run({ folder: folder.path, env }, ...words),
    onTerminal: (...words: string[]) => runOnTerminal({ folder: folder.path, env }, ...words),
    [Symbol.dispose]: () => {
      folder.remove();
      runtime.remove();
    },
  };
}
