// `gateway run`, with stand-ins for the tools that say what they were given.

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TOOLS } from "../../../src/cli/tools/tools.ts";
import { startDemoUpstream } from "../../../src/demo/upstream.ts";
import { keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";

const MAIN = join(import.meta.dir, "../../../src/main.ts");
const WHERE = ["--url", "http://gw:1", "--secret", "sk-s"];

/** A program of this name on the PATH. */
function standIn(folder: TempFolder, name: string, script: string): Record<string, string> {
  mkdirSync(folder.join("bin"), { recursive: true });
  writeFileSync(folder.join("bin", name), `#!/bin/sh\n${script}\n`);
  chmodSync(folder.join("bin", name), 0o755);
  return { PATH: `${folder.join("bin")}:${process.env["PATH"]}`, HOME: folder.path };
}

describe("the tool", () => {
  test("gets its settings, its arguments, stdin, and gives its exit status", async () => {
    using folder = makeTempFolder();
    const env = standIn(
      folder,
      "codex",
      'printf "<%s>" "$@"; echo "$GATEWAY_CODEX_KEY"; cat; echo oops >&2; exit 7',
    );
    const words = ["run", "codex", ...WHERE, "--", "exec", "a b", "--json"];
    const { status, stdout, stderr } = await run({ folder: folder.path, env, stdin: "hello" }, ...words);
    expect(status).toBe(7);
    expect(stderr).toBe("oops\n");
    expect(stdout).toStartWith("<-c><model_provider=gateway><-c>");
    expect(stdout).toEndWith("<exec><a b><--json>sk-s\nhello");
  });

  test("is not led past the gateway by what the environment says", async () => {
    using folder = makeTempFolder();
    const env = standIn(
      folder,
      "claude",
      'echo "$ANTHROPIC_API_KEY|$CLAUDE_CODE_USE_BEDROCK|$ANTHROPIC_AUTH_TOKEN|$OTHER"',
    );
    const theirs = { ANTHROPIC_API_KEY: "sk-ant", CLAUDE_CODE_USE_BEDROCK: "1", OTHER: "kept" };
    const { stdout } = await run(
      { folder: folder.path, env: { ...env, ...theirs } },
      "run",
      "claude",
      ...WHERE,
    );
    expect(stdout).toBe("||sk-s|kept\n");
  });

  test("does not see any variable of the table, and sends nothing for the gateway to a proxy", async () => {
    for (const [name, { misleading, program }] of TOOLS) {
      using folder = makeTempFolder();
      const env = standIn(folder, program?.name ?? "app", "env");
      const theirs = Object.fromEntries(misleading.map((each) => [each, "x-api-key: sk-theirs"]));
      const words = ["run", name, ...WHERE, ...(program === null ? ["--", "app"] : [])];
      const around = { folder: folder.path, env: { ...env, ...theirs, NO_PROXY: "corp.example" } };
      const { stdout } = await run(around, ...words);
      expect({ name, stdout }).toEqual({ name, stdout: expect.not.stringContaining("sk-theirs") });
      const lines = stdout.split("\n");
      for (const spelling of ["NO_PROXY", "no_proxy"])
        expect(lines).toContain(`${spelling}=corp.example,localhost,127.0.0.1,::1,gw`);
    }
  });

  test("may be any program that uses an SDK", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "app", 'echo "$OPENAI_BASE_URL $1"');
    const { stdout } = await run({ folder: folder.path, env }, "run", "openai", ...WHERE, "--", "app", "-x");
    expect(stdout).toBe("http://gw:1/v1 -x\n");
  });

  const missing: ReadonlyArray<readonly [tool: string, args: string[], status: number, part: string]> = [
    ["claude", [], 1, "npm install -g @anthropic-ai/claude-code"],
    ["codex", [], 1, "npm install -g @openai/codex"],
    ["gemini", [], 1, "npm install -g @google/gemini-cli"],
    ["opencode", [], 1, "npm install -g opencode-ai"],
    ["google", ["--", "no-such-program"], 1, "There is no program no-such-program"],
    ["anthropic", [], 2, "gateway run anthropic -- python app.py"],
  ];
  for (const [tool, args, status, part] of missing) {
    test(`${tool} ${args.join(" ")} that is not there: how to have it is told`, async () => {
      using folder = makeTempFolder();
      const result = await run(
        { folder: folder.path, env: { PATH: "/nonexistent" } },
        "run",
        tool,
        ...WHERE,
        ...args,
      );
      expect(result.status).toBe(status);
      expect(result.stderr).toContain(part);
    });
  }

  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) {
    test(`gets ${signal}, and what ends it is the exit status`, async () => {
      using folder = makeTempFolder();
      const catching = `trap 'echo caught; exit 3' ${signal.slice(3)}; echo ready; for i in $(seq 100); do sleep 0.1; done`;
      const env = standIn(folder, "claude", catching);
      const words = ["run", "claude", ...WHERE];
      const child = Bun.spawn([process.execPath, MAIN, ...words], { env, stdin: "ignore", stdout: "pipe" });
      let shown = "";
      for await (const chunk of child.stdout) {
        shown += new TextDecoder().decode(chunk);
        if (shown === "ready\n") child.kill(signal);
      }
      expect(shown).toBe("ready\ncaught\n");
      expect(await child.exited).toBe(3);
    });
  }

  test("that a signal kills counts as shells count it", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "claude", "kill -KILL $$");
    expect((await run({ folder: folder.path, env }, "run", "claude", ...WHERE)).status).toBe(137);
  });
});

describe("Gemini CLI's home", () => {
  const show =
    'echo "$GEMINI_CLI_HOME"; cat "$GEMINI_CLI_HOME/.gemini/settings.json"; cat "$GEMINI_CLI_HOME/.gemini/GEMINI.md"';

  test("is one with the setting and the user's own files, and gone afterwards", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "gemini", show);
    const own = folder.join(".gemini");
    mkdirSync(own);
    const settings =
      '{ "ui": { "theme": "X" }, "security": { "auth": { "selectedType": "oauth-personal" } } } // mine';
    writeFileSync(join(own, "settings.json"), settings);
    writeFileSync(join(own, "GEMINI.md"), "remember");
    const { status, stdout } = await run({ folder: folder.path, env }, "run", "gemini", ...WHERE);
    expect(status).toBe(0);
    const [home = "", ...rest] = stdout.split("\n");
    expect(rest.join("\n")).toEndWith("remember");
    expect(JSON.parse(rest.join("\n").replace("remember", ""))).toEqual({
      ui: { theme: "X" },
      security: { auth: { selectedType: "gemini-api-key" } },
    });
    expect(home).not.toBe(folder.path);
    expect(existsSync(home)).toBe(false);
    expect(readFileSync(join(own, "settings.json"), "utf8")).toBe(settings);
    expect(readFileSync(join(own, "GEMINI.md"), "utf8")).toBe("remember");
  });

  test("is the user's own where that says it already", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "gemini", 'echo "[$GEMINI_CLI_HOME]"');
    mkdirSync(folder.join(".gemini"));
    const settings = '{ "security": { "auth": { "selectedType": "gemini-api-key" } } }';
    writeFileSync(folder.join(".gemini/settings.json"), settings);
    const { stdout } = await run({ folder: folder.path, env }, "run", "gemini", ...WHERE);
    expect(stdout).toBe("[]\n");
  });

  test("does without one of the user's", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "gemini", 'cat "$GEMINI_CLI_HOME/.gemini/settings.json"');
    const { stdout } = await run({ folder: folder.path, env }, "run", "gemini", ...WHERE);
    expect(JSON.parse(stdout)).toEqual({ security: { auth: { selectedType: "gemini-api-key" } } });
    expect(existsSync(folder.join(".gemini"))).toBe(false);
  });
});

describe("Claude Code's settings", () => {
  const show = 'echo "$*"; [ "$1" = --settings ] && cat "$2"';

  test("that set variables of their own are overruled by a file for this run, and stay as they are", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "claude", show);
    mkdirSync(folder.join(".claude"));
    const settings = '{ "env": { "ANTHROPIC_BASE_URL": "http://elsewhere", "OTHER": "x" } }';
    writeFileSync(folder.join(".claude/settings.json"), settings);
    const { stdout } = await run({ folder: folder.path, env }, "run", "claude", ...WHERE, "--", "-p", "hi");
    const [line = "", json = ""] = stdout.split("\n");
    expect(line).toMatch(/^--settings \S+ -p hi$/);
    expect(line).not.toContain("sk-s");
    expect(JSON.parse(json).env).toMatchObject({
      ANTHROPIC_BASE_URL: "http://gw:1",
      ANTHROPIC_AUTH_TOKEN: "sk-s",
      ANTHROPIC_API_KEY: "",
    });
    expect(existsSync(line.split(" ")[1] ?? "")).toBe(false);
    expect(readFileSync(folder.join(".claude/settings.json"), "utf8")).toBe(settings);
    const told = await run({ folder: folder.path, env }, "env", "claude", ...WHERE);
    expect(told.stderr).toContain(`takes ANTHROPIC_BASE_URL from ${folder.join(".claude/settings.json")}`);
  });

  test("that exempt hosts of their own from proxies get the gateway's added", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "claude", show);
    mkdirSync(folder.join(".claude"));
    const theirs = { NO_PROXY: "corp.example", CLAUDE_CODE_USE_MANTLE: "1" };
    writeFileSync(folder.join(".claude/settings.json"), JSON.stringify({ env: theirs }));
    const { stdout } = await run({ folder: folder.path, env }, "run", "claude", ...WHERE);
    expect(JSON.parse(stdout.split("\n")[1] ?? "").env).toMatchObject({
      NO_PROXY: "corp.example,localhost,127.0.0.1,::1,gw",
      no_proxy: "localhost,127.0.0.1,::1,gw",
      CLAUDE_CODE_USE_MANTLE: "",
      ANTHROPIC_UNIX_SOCKET: "",
    });
  });

  test("that do not matter are left alone", async () => {
    using folder = makeTempFolder();
    const env = standIn(folder, "claude", show);
    mkdirSync(folder.join(".claude"));
    writeFileSync(folder.join(".claude/settings.json"), '{ "env": { "OTHER": "x" } }');
    const { stdout } = await run({ folder: folder.path, env }, "run", "claude", ...WHERE, "--", "-p", "hi");
    expect(stdout).toBe("-p hi\n");
  });
});

describe("a running gateway", () => {
  test("is found by its config, wherever it listens, and has taken up a new key before the tool starts", async () => {
    const upstream = startDemoUpstream({ platform: "responses" });
    using runtime = makeTempFolder();
    const gateway = await startGateway({
      config: makeConfig(upstream),
      env: { XDG_RUNTIME_DIR: runtime.path },
    });
    try {
      const call =
        'curl -s -o /dev/null -w "%{http_code}" "$OPENAI_BASE_URL/models" -H "authorization: Bearer $OPENAI_API_KEY"';
      const env = {
        ...standIn(gateway.folder, "app", `echo "$OPENAI_BASE_URL"; ${call}`),
        XDG_RUNTIME_DIR: runtime.path,
      };
      const where = { folder: gateway.folder.path, env };
      const known = await run(where, "run", "openai", "--secret", keyOf("responses"), "--", "app");
      expect(known).toEqual({ status: 0, stdout: `${gateway.url}/v1\n200`, stderr: "" });
      const fresh = await run(where, "run", "openai", "--new", "--", "app");
      expect(fresh).toMatchObject({ status: 0, stdout: `${gateway.url}/v1\n200` });
    } finally {
      await gateway.stop();
      upstream.stop();
    }
  });

  test("that is not there is named before the tool fails", async () => {
    using folder = makeTempFolder();
    using runtime = makeTempFolder();
    const env = { ...standIn(folder, "app", "echo started"), XDG_RUNTIME_DIR: runtime.path };
    const config = { ...makeConfig({ url: "http://127.0.0.1:9" }), listen: { port: 4999 } };
    writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
    const words = ["run", "openai", "--secret", keyOf("responses"), "--", "app"];
    const { stdout, stderr } = await run({ folder: folder.path, env }, ...words);
    expect(stdout).toBe("started\n");
    expect(stderr).toContain("`gateway serve`");
  });
});
