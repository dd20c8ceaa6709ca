// Runs each released tool twice, directly and through the gateway, against the same simulated vendors.
// Its requests must be the same, except for the differences in docs/tools.md. `npm run test:tools` downloads
// the tools and starts this test. Without the tools, small programs send the recorded requests.

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DIFFERENCES } from "./differences.ts";
import { type ChildGateway, startGateway } from "../../harness/gateway.ts";
import { PROGRAM } from "../../harness/program.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Arrived, CHATGPT_ACCOUNT, startVendor, type Vendor } from "../../harness/upstreams/vendor.ts";
import { compareRequests, DIFFERENCE_TABLE, formatDifferences } from "./compare.ts";
import { hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";
import { RESULT, startScriptedModel } from "./scripted-model.ts";

const LOGIN = "sk-ant-oat01-INVENTED0aB1cD2eF3gH4iJ5kL6mN7oP8qR9sT0uVwXyZ";
const KEYS = {
  ANTHROPIC_API_KEY: "sk-ant-api03-invented-for-a-test-0000000000000000",
  OPENAI_API_KEY: "sk-invented-for-a-test-0000000000000000",
  CODEX_API_KEY: "sk-invented-for-a-test-0000000000000000",
  GEMINI_API_KEY: "AIzaInventedForATest00000000000000000000",
  GOOGLE_GENERATIVE_AI_API_KEY: "AIzaInventedForATest00000000000000000000",
};
type Key = keyof typeof KEYS;

const GROUPS = ["messages", "responses", "content", "login", "chatgpt"] as const;

/** The platforms of the groups that are not called after their platform. */
const PLATFORM_OF: Readonly<Record<string, string>> = { login: "messages", chatgpt: "responses" };

/** The variables that a user without the gateway has. */
const KEYS_OF: Readonly<Record<(typeof GROUPS)[number], readonly Key[]>> = {
  messages: ["ANTHROPIC_API_KEY"],
  responses: ["OPENAI_API_KEY", "CODEX_API_KEY"],
  content: ["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"],
  login: [],
  chatgpt: [],
};

interface Case {
  readonly tool: string;
  readonly args: readonly string[];
  readonly group: (typeof GROUPS)[number];
  /** Whether the vendor accepts WebSockets. */
  readonly sockets?: boolean;
  readonly onTerminal?: true;
}

const HELLO = ["-p", "hello"];
/** The prompt: it asks for a command, a page and a subagent. */
const WORK = "[work]";
const CLAUDE_WORK = ["-p", "--allowedTools=Bash,WebFetch,Agent", WORK];
const CODEX = ["exec", "--skip-git-repo-check"];
/** opencode's default model depends on the list of models that it gets, so the test names a model. */
const OPENCODE = (model: string): string[] => ["run", "-m", model];
/** Since pi 1.0, `gateway run` has to name a model, and takes the newest of the list. */
const PI = (model: string): string[] => ["--model", model, ...HELLO];
const CASES: readonly Case[] = [
  { tool: "claude", args: HELLO, group: "messages" },
  { tool: "claude", args: HELLO, group: "login" },
  { tool: "claude", args: ["hello"], group: "messages", onTerminal: true },
  { tool: "claude", args: ["hello"], group: "login", onTerminal: true },
  { tool: "codex", args: [...CODEX, "hello"], group: "responses", sockets: true },
  { tool: "codex", args: [...CODEX, "hello"], group: "responses" },
  { tool: "codex", args: ["hello"], group: "responses", onTerminal: true },
  { tool: "codex", args: [...CODEX, "hello"], group: "chatgpt" },
  { tool: "gemini", args: HELLO, group: "content" },
  { tool: "opencode", args: [...OPENCODE("anthropic/claude-sonnet-4-5"), "hello"], group: "messages" },
  { tool: "opencode", args: [...OPENCODE("openai/gpt-5.4"), "hello"], group: "responses" },
  { tool: "opencode", args: [...OPENCODE("google/gemini-2.5-pro"), "hello"], group: "content" },
  { tool: "pi", args: PI("claude-opus-5"), group: "messages" },
  { tool: "pi", args: PI("gpt-5.5"), group: "responses" },
  { tool: "pi", args: PI("gemini-3.1-pro-preview"), group: "content" },
  { tool: "claude", args: CLAUDE_WORK, group: "messages" },
  { tool: "claude", args: CLAUDE_WORK, group: "login" },
  { tool: "codex", args: [...CODEX, "--dangerously-bypass-approvals-and-sandbox", WORK], group: "responses" },
  { tool: "gemini", args: ["-y", "-p", WORK], group: "content" },
  { tool: "opencode", args: [...OPENCODE("anthropic/claude-sonnet-4-5"), WORK], group: "messages" },
];

/** A login as Codex keeps it. Nobody has signed the token. */
function describeChatgpt(): object {
  const account_id = CHATGPT_ACCOUNT;
  const auth = { chatgpt_plan_type: "plus", chatgpt_account_id: account_id, chatgpt_user_id: "u" };
  const claims = { exp: Math.floor(Date.now() / 1000) + 86_400, "https://api.openai.com/auth": auth };
  const [head, body] = [{ alg: "RS256" }, claims].map((part) =>
    btoa(JSON.stringify(part)).replaceAll("=", ""),
  );
  const token = `${head}.${body}.c2ln`;
  const tokens = { id_token: token, access_token: token, refresh_token: "rt-invented", account_id };
  return { OPENAI_API_KEY: null, tokens, last_refresh: new Date().toISOString() };
}

/** Writes a user's settings, and the login of a tool that finds no key in its environment. */
function prepareHome(home: string, { group, onTerminal }: Case): void {
  const write = (name: string, content: object): void => {
    mkdirSync(dirname(join(home, name)), { recursive: true });
    writeFileSync(join(home, name), JSON.stringify(content));
  };
  write(".gemini/settings.json", { security: { auth: { selectedType: "gemini-api-key" } } });
  // With these settings, Claude Code asks its user nothing, and does not ask its vendor about a page's host.
  const [hasCompletedOnboarding, hasTrustDialogAccepted] = [true, true];
  write(".claude.json", {
    hasCompletedOnboarding,
    customApiKeyResponses: { approved: [KEYS.ANTHROPIC_API_KEY.slice(-20)] },
    projects: { [join(home, "../work")]: { hasTrustDialogAccepted } },
  });
  write(".claude/settings.json", { skipWebFetchPreflight: true });
  mkdirSync(join(home, ".codex"));
  const trust = `[projects.${JSON.stringify(join(home, "../work"))}]\ntrust_level = "trusted"\n`;
  writeFileSync(join(home, ".codex/config.toml"), trust);
  // On a terminal, Codex takes no key from the environment.
  if (onTerminal === true) write(".codex/auth.json", { OPENAI_API_KEY: KEYS.OPENAI_API_KEY });
  if (group === "chatgpt") write(".codex/auth.json", describeChatgpt());
  if (group !== "login") return;
  const scopes = ["user:inference", "user:profile", "user:sessions:claude_code"];
  const plan = { subscriptionType: "max", rateLimitTier: "default_claude_max_20x" };
  const times = { expiresAt: Date.now() + 8 * 3_600_000, refreshToken: "sk-ant-ort01-INVENTED" };
  write(".claude/.credentials.json", { claudeAiOauth: { accessToken: LOGIN, scopes, ...plan, ...times } });
}

function describeChannels({ url: proxy, authority: ca }: Vendor): object {
  const channel = (platform: string, host: string, credential: string) => ({
    platform,
    base_url: `https://${host}`,
    credential,
    proxy,
    ca,
  });
  return {
    messages: channel("messages", "api.anthropic.com", KEYS.ANTHROPIC_API_KEY),
    responses: channel("responses", "api.openai.com", KEYS.OPENAI_API_KEY),
    content: channel("content", "generativelanguage.googleapis.com", KEYS.GEMINI_API_KEY),
    login: channel("messages", "api.anthropic.com", "client"),
    chatgpt: channel("responses", "chatgpt.com/backend-api/codex", "client"),
  };
}

const STAND_INS = ["claude", "codex", "gemini", "opencode"];

/** Whether the case can run. If no tools are installed, small programs stand in for them. */
function isCompared({ tool, args, group, sockets, onTerminal }: Case): boolean {
  if (WANTED !== "") return hasTool(tool);
  // The small programs speak only HTTP, and the one for opencode speaks only Anthropic's protocol.
  return (
    STAND_INS.includes(tool) &&
    !args.includes(WORK) &&
    sockets !== true &&
    onTerminal !== true &&
    group !== "chatgpt" &&
    (tool !== "opencode" || group === "messages")
  );
}

function writeStandIns(folder: string): void {
  mkdirSync(folder);
  const program = join(import.meta.dir, "stand-in.ts");
  for (const tool of STAND_INS) {
    const path = join(folder, tool);
    writeFileSync(path, `#!/bin/sh\nexec '${process.execPath}' '${program}' ${tool} "$@"\n`);
    chmodSync(path, 0o755);
  }
}

/** The most tool results in one request. Codex fetches no page: its third call waits for the subagent. */
const countResults = (direct: readonly Arrived[]): number =>
  Math.max(...direct.map(({ body }) => [...body.matchAll(RESULT)].length));

describe(WANTED === "" ? "small programs in place of the tools" : "real tools", () => {
  let folder: TempFolder;
  let vendor: Vendor;
  let gateway: ChildGateway;
  const rows: string[] = [];

  beforeAll(async () => {
    folder = makeTempFolder();
    if (WANTED === "") writeStandIns(folder.join("bin"));
    vendor = await startVendor(folder.join("authority.pem"), startScriptedModel());
    const groups = GROUPS.map((name) => [name, { platform: PLATFORM_OF[name] ?? name, channels: [name] }]);
    gateway = await startGateway({
      config: {
        channels: describeChannels(vendor),
        groups: Object.fromEntries(groups),
        keys: GROUPS.map((name) => ({ name, group: name, secret: `sk-test-${name}` })),
      },
      env: { XDG_RUNTIME_DIR: folder.path },
      command: PROGRAM,
    });
  }, TEST_MS);

  afterAll(async () => {
    await gateway.stop();
    vendor.stop();
    folder.remove();
    if (WANTED !== "") console.log(rows.join("\n"));
    const document = join(import.meta.dir, "../../../docs/tools.md");
    if (process.env["WRITE_DOCS"] !== "1") return;
    const text = readFileSync(document, "utf8");
    writeFileSync(
      document,
      text.replace(DIFFERENCE_TABLE, () => formatDifferences(DIFFERENCES)),
    );
  });

  /** Starts the tool in a home of its own. Returns what has arrived at the vendors. */
  async function start(name: string, which: Case, command: readonly string[], env: Record<string, string>) {
    const place = folder.join(name);
    prepareHome(join(place, "home"), which);
    const before = vendor.arrived.length;
    const { stdout, stderr } = await startProgram(command, {
      folder: place,
      ...(which.onTerminal && { leftAfter: /counted.{1,200}every/s }),
      env: {
        HTTPS_PROXY: vendor.url,
        https_proxy: vendor.url,
        NO_PROXY: "127.0.0.1,localhost",
        NODE_EXTRA_CA_CERTS: vendor.authority,
        CODEX_CA_CERTIFICATE: vendor.authority,
        GEMINI_CLI_TRUST_WORKSPACE: "true",
        // Otherwise, the model would have to search for the tool that fetches pages.
        ...(which.args.includes(WORK) && { ENABLE_TOOL_SEARCH: "false" }),
        XDG_RUNTIME_DIR: folder.path,
        ...(WANTED === "" && { PATH: `${folder.join("bin")}:${process.env["PATH"]}` }),
        ...env,
      },
    });
    const arrived = vendor.arrived.slice(before);
    // The tool must have worked: otherwise there is nothing to compare.
    // On a terminal, a tool may move the cursor instead of writing a space.
    expect([stderr.slice(-400), /simulated.{1,200}model|that is all I needed/s.test(stdout)]).toEqual([
      expect.anything(),
      true,
    ]);
    return arrived;
  }

  const titled = CASES.map((each, index) => {
    const { tool, group, sockets = false } = each;
    const work = each.args.includes(WORK) ? ["at work"] : each.onTerminal ? ["on a terminal"] : [];
    return [
      `${tool} (${[group, ...(sockets ? ["over a WebSocket"] : []), ...work].join(" ")})`,
      each,
      index,
    ] as const;
  });
  test.each(titled.filter(([, each]) => isCompared(each)))(
    "%s sends the same through the gateway as without it, except for the differences in docs/tools.md",
    async (title, which, index) => {
      const { tool, args, group, sockets = false } = which;
      // The small model that the newest release of the tool asks for by itself.
      Object.assign(vendor.settings, { sockets, haiku: tool === "claude" ? "haiku-5-5" : "haiku-4-5" });
      const own = Object.fromEntries(KEYS_OF[group].map((key) => [key, KEYS[key]]));
      const direct: Arrived[] = await start(`without${index}`, which, [tool, ...args], own);
      if (args.includes(WORK)) expect(countResults(direct)).toBe(3);
      const where = ["--config", gateway.configPath, "--url", gateway.url, "--secret", `sk-test-${group}`];
      const words = ["run", "--yes", ...where, tool];
      const through = await start(`through${index}`, which, [...PROGRAM, ...words, ...args], {});
      // Only one request may carry the gateway's key to a vendor. It has all of Claude Code's custom headers.
      const told = through.filter((request) => JSON.stringify(request).includes(`sk-test-${group}`));
      expect(told.filter(({ target }) => !target.startsWith("/api/claude_cli/bootstrap?"))).toEqual([]);
      const places = compareRequests(direct, through);
      const known = DIFFERENCES.filter(
        ({ tools }) => tools.length === 0 || tools.some((each) => each === tool),
      );
      const strange = places.filter((place) => !known.some(({ part }) => part.test(place)));
      rows.push(`${title}: ${places.join(", ")}`);
      expect(strange).toEqual([]);
    },
    TEST_MS,
  );
});
