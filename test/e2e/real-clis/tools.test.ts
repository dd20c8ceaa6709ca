// Released command-line tools send requests through the gateway to a simulated upstream. They are started by
// `gateway run`, or use what `gateway env` prints. `npm run test:tools` downloads them and runs this file.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ENV_TOOLS } from "../../../src/dialects/platforms.ts";
import { TOOLS } from "../../../src/cli/tools/tools.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, keyOf, makeConfig, type Platform, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { type Finished, hasTool, startProgram, TEST_MS, WANTED } from "./installed.ts";
import { PROGRAM } from "../../harness/program.ts";

/** The simulated model answers at once, or first calls a tool that it knows. */
const ANSWER = /a simulated model, and I have counted every word|Thank you, that is all I needed/;
const QUOTED = PROGRAM.map((word) => `'${word}'`).join(" ");

let folder: TempFolder;
let upstream: ReturnType<typeof startDemoUpstream>;
let gateway: ChildGateway;

function runWords(tool: string, platform: Platform, args: readonly string[]): string[] {
  return ["run", "--config", gateway.configPath, "--secret", keyOf(platform), tool, ...args];
}

describe.skipIf(WANTED === "")("real tools work through the gateway", () => {
  beforeAll(async () => {
    folder = makeTempFolder();
    upstream = startDemoUpstream({ records: false, sockets: true });
    gateway = await startGateway({
      config: makeConfig(upstream),
      env: { XDG_RUNTIME_DIR: folder.path },
      command: PROGRAM,
    });
  }, TEST_MS);

  afterAll(async () => {
    await gateway.stop();
    upstream.stop();
    folder.remove();
  });

  const prompts: ReadonlyArray<readonly [tool: string, platform: Platform, args: string[]]> = [
    ["claude", "messages", ["-p", "hello"]],
    ["claude", "relay", ["-p", "hello"]],
    ["codex", "responses", ["exec", "--skip-git-repo-check", "hello"]],
    ["gemini", "content", ["-p", "hello"]],
    ["gemini", "relay", ["-p", "hello"]],
    ["opencode", "messages", ["run", "hello"]],
    ["opencode", "responses", ["run", "hello"]],
    ["opencode", "content", ["run", "hello"]],
    ["opencode", "relay", ["run", "hello"]],
    ["opencode", "relay", ["run", "-m", "google/gemini-2.5-pro", "hello"]],
    ["qwen", "responses", ["-p", "hello"]],
    ["qwen", "messages", ["-p", "hello"]],
    ["qwen", "relay", ["-p", "hello"]],
    ["copilot", "messages", ["-p", "hello"]],
    ["copilot", "responses", ["-p", "hello"]],
    ["copilot", "relay", ["-p", "hello"]],
    ["pi", "messages", ["-p", "hello"]],
    ["pi", "responses", ["-p", "hello"]],
    ["pi", "content", ["-p", "hello"]],
    ["pi", "relay", ["-p", "hello"]],
    ["continue", "messages", ["-p", "hello"]],
    ["continue", "responses", ["-p", "hello"]],
    ["continue", "relay", ["-p", "hello"]],
    ["cline", "messages", ["--json", "say hello"]],
    ["cline", "responses", ["--json", "say hello"]],
    ["cline", "relay", ["--json", "say hello"]],
  ];

  /** Whether `gateway env` alone is not enough for the tool, because it needs the file that `env` describes. */
  const needsFile = (tool: string): boolean => ["pi", "continue", "cline"].includes(tool);

  /** Whether `gateway run` starts the tool. */
  const isStarted = (tool: string): boolean => !ENV_TOOLS.has(tool);

  for (const [tool, platform, args] of prompts.filter(([name]) => isStarted(name))) {
    test.skipIf(!hasTool(tool))(
      `gateway run ${tool} (${platform}) ${args.join(" ")} gets an answer and a bill`,
      async () => {
        const before = gateway.ledger().length;
        const words = runWords(tool, platform, args);
        const { status, stdout } = await start([...PROGRAM, ...words]);
        expect(stdout).toMatch(ANSWER);
        expect(status).toBe(0);
        expect(readdirSync(folder.path).filter((name) => name.startsWith("gateway-run-"))).toEqual([]);
        const lines = gateway.ledger().slice(before);
        expect(lines.length).toBeGreaterThan(0);
        expect(new Set(lines.map((line) => line["key"]))).toEqual(new Set([platform]));
      },
      TEST_MS,
    );
  }

  const codexOver: ReadonlyArray<readonly [provider: string, args: () => readonly string[]]> = [
    ["its built-in provider", () => ["codex", "exec", "-c", `openai_base_url=${gateway.url}/v1`]],
    [
      "a provider in its config",
      () => {
        const words = runWords("codex", "responses", ["exec"]);
        return [...PROGRAM, ...words, "-c", "model_providers.gateway.supports_websockets=true"];
      },
    ],
  ];

  test.skipIf(!hasTool("codex")).each(codexOver)(
    "Codex with %s sends its requests over a WebSocket",
    async (_, words) => {
      const before = gateway.ledger().length;
      const command = [...words(), "--skip-git-repo-check", "hello"];
      const { stdout, status } = await start(command, { CODEX_API_KEY: keyOf("responses") });
      expect(stdout).toContain("a simulated model, and I have counted every word");
      expect(status).toBe(0);
      const lines = gateway.ledger().slice(before);
      const expected = { transport: "websocket", outcome: "complete", basis: "exact" };
      expect(lines.length).toBeGreaterThan(0);
      expect(lines.filter(({ transport }) => transport === "websocket")).toEqual(
        lines.map(() => expect.objectContaining(expected)),
      );
    },
    TEST_MS,
  );

  test.skipIf(!["claude", "codex", "gemini", "opencode"].every(hasTool))(
    "gateway run takes precedence over settings files that name another address",
    async () => {
      const elsewhere = "http://127.0.0.1:9";
      const home = folder.join("elsewhere");
      const claude = { env: { ANTHROPIC_BASE_URL: elsewhere, ANTHROPIC_AUTH_TOKEN: "sk-other" } };
      await Bun.write(join(home, ".claude/settings.json"), JSON.stringify(claude));
      const provider = `name = "x"\nbase_url = "${elsewhere}/v1"\nwire_api = "responses"`;
      const codex = `model_provider = "other"\n[model_providers.other]\n${provider}\n`;
      await Bun.write(join(home, ".codex/config.toml"), codex);
      const gemini = { security: { auth: { selectedType: "oauth-personal" } } };
      await Bun.write(join(home, ".gemini/settings.json"), JSON.stringify(gemini));
      const anthropic = { options: { baseURL: elsewhere } };
      const opencode = { model: "openai/gpt-5", provider: { anthropic }, disabled_providers: ["anthropic"] };
      await Bun.write(join(home, ".config/opencode/opencode.json"), JSON.stringify(opencode));
      for (const [tool, platform, args] of prompts.filter(([, each]) => each !== "relay").slice(0, 4)) {
        const words = runWords(tool, platform, args);
        const { stdout } = await start([...PROGRAM, ...words], { HOME: home });
        expect({ tool, stdout }).toEqual({
          tool,
          stdout: expect.stringMatching(ANSWER),
        });
      }
    },
    TEST_MS,
  );

  test("no command before this test changed how Gemini CLI signs in", () => {
    expect(existsSync(folder.join("home/.gemini/settings.json"))).toBe(false);
  });

  test.skipIf(!hasTool("gemini"))(
    "Gemini CLI works with `gateway env` once its settings file has the advised setting",
    async () => {
      const words = ["env", "gemini", keyOf("content"), "--json", "--config", gateway.configPath];
      const { stdout } = await start([...PROGRAM, ...words]);
      const { env, file } = JSON.parse(stdout);
      await Bun.write(file.path, JSON.stringify(file.content));
      const answer = await start(["gemini", "-p", "hello"], env);
      expect(answer.stdout).toMatch(ANSWER);
    },
    TEST_MS,
  );

  describe("an environment with other addresses, credentials and proxies misleads no tool", () => {
    let proxy: ReturnType<typeof startRecorder>;
    let front: ReturnType<typeof startFront>;
    let hostile: Record<string, string>;

    beforeAll(async () => {
      proxy = startRecorder();
      front = startFront(gateway.url);
      hostile = await makeHostile(folder.join("hostile"), proxy.url);
    });
    beforeEach(() => {
      proxy.received.length = 0;
      front.received.length = 0;
    });
    afterAll(async () => {
      proxy.stop();
      await front.stop();
    });

    const expectAllAtGateway = ({ stdout }: { stdout: string }, platform: Platform): void => {
      expect(stdout).toMatch(ANSWER);
      expect(front.received.length).toBeGreaterThan(0);
      const theirs = front.received.flatMap(({ path, credentials }) =>
        credentials.filter((each) => each !== keyOf(platform)).map((each) => `${path} ${each}`),
      );
      expect(theirs).toEqual([]);
      const stray = proxy.received.filter(
        (text) => text.includes(front.host) || text.includes(keyOf(platform)) || text.includes("sk-theirs"),
      );
      expect(stray).toEqual([]);
    };

    for (const [tool, platform, args] of prompts) {
      test.skipIf(!isStarted(tool) || !hasTool(tool))(
        `every request of gateway run ${tool} (${platform}) arrives at the gateway`,
        async () => {
          const where = ["run", "--yes", "--url", front.url, "--config", gateway.configPath];
          const words = [...where, "--secret", keyOf(platform), tool, ...args];
          expectAllAtGateway(await start([...PROGRAM, ...words], hostile), platform);
        },
        TEST_MS,
      );

      test.skipIf(needsFile(tool) || !hasTool(tool))(
        `every request of eval "$(gateway env ${tool})" (${platform}) arrives at the gateway`,
        async () => {
          const where = `--shell bash --url ${front.url} --config '${gateway.configPath}'`;
          const quoted = args.map((arg) => `'${arg}'`).join(" ");
          const lines = `"$(${QUOTED} env ${tool} ${keyOf(platform)} ${where})"`;
          const script = `eval ${lines}; ${TOOLS.get(tool)?.program?.name} ${quoted}`;
          expectAllAtGateway(await start(["bash", "--norc", "-c", script], hostile), platform);
        },
        TEST_MS,
      );
    }
  });

  test.skipIf(!hasTool("codex")).each([
    ["at the relay's prefix, with a relay key", "/relay/v1", "relay"],
    ["at the relay's prefix, with a responses key", "/relay/v1", "responses"],
    ["at a path that is not served", "/v1/nothing/here", "responses"],
    ["with a key of another platform", "/v1", "messages"],
  ] as const)(
    "a Codex that the gateway refuses sends one request and shows why: %s",
    async (_, path, platform) => {
      const before = gateway.records().length;
      const provider = [
        "model_provider=gateway",
        "model_providers.gateway.name=gateway",
        `model_providers.gateway.base_url=${gateway.url}${path}`,
        "model_providers.gateway.wire_api=responses",
        "model_providers.gateway.env_key=KEY",
      ].flatMap((override) => ["-c", override]);
      const words = ["codex", ...provider, "exec", "--skip-git-repo-check", "hello"];
      const { stderr, status } = await start(words, { KEY: keyOf(platform) });
      const requests = (await gateway.recorded(before + 1)).slice(before);
      expect({ status, requests: requests.length }).toEqual({ status: 1, requests: 1 });
      expect(stderr).toContain(`ERROR: ${requests[0]?.problem}`);
    },
    TEST_MS,
  );

  test.skipIf(!hasTool("codex"))(
    "a key of the wrong platform is refused before the tool starts",
    async () => {
      const words = runWords("codex", "messages", ["exec", "x"]);
      const { status, stderr } = await start([...PROGRAM, ...words]);
      expect(status).toBe(1);
      expect(stderr).toContain("Codex needs responses");
    },
  );

  test.skipIf(!hasTool("codex"))(
    "gateway run has the exit status of a tool that fails by itself",
    async () => {
      const words = runWords("codex", "responses", ["--no-such-flag"]);
      expect((await start([...PROGRAM, ...words])).status).toBe(2);
    },
    TEST_MS,
  );
});

/** Starts a proxy that answers nothing, and keeps the first bytes of every connection. */
function startRecorder() {
  const received: string[] = [];
  const data = (socket: { end(): void }, bytes: Buffer): void => {
    received.push(bytes.toString("latin1"));
    socket.end();
  };
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data } });
  return { url: `http://127.0.0.1:${listener.port}`, received, stop: () => listener.stop(true) };
}

const CREDENTIAL_FIELDS = ["authorization", "x-api-key", "x-goog-api-key"];

/** Starts a proxy in front of the gateway. The proxy notes the path and the credentials of each request. */
function startFront(target: string) {
  const received: { path: string; credentials: string[] }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = new Headers(request.headers);
      const values = CREDENTIAL_FIELDS.flatMap((name) => headers.get(name) ?? []);
      const credentials = values.map((value) => value.replace(/^Bearer /, ""));
      received.push({ path: `${request.method} ${pathname}`, credentials });
      headers.delete("host");
      const body = request.method === "POST" ? await request.bytes() : null;
      return fetch(`${target}${pathname}${search}`, { method: request.method, headers, body });
    },
  });
  const host = `127.0.0.1:${server.port}`;
  return { url: `http://${host}`, host, received, stop: () => server.stop(true) };
}

/** Sets each variable that could mislead a tool, and fills the home with foreign logins and settings. */
async function makeHostile(home: string, proxy: string): Promise<Record<string, string>> {
  const login = { type: "oauth", access: "sk-theirs", refresh: "x", expires: 9e15, accountId: "x" };
  const logins = JSON.stringify({ openai: login, anthropic: login });
  await Bun.write(join(home, ".local/share/opencode/auth.json"), logins);
  const gemini = { security: { auth: { selectedType: "gemini-api-key" } } };
  await Bun.write(join(home, ".gemini/settings.json"), JSON.stringify(gemini));
  const options = { baseURL: `${proxy}/v1`, apiKey: "sk-theirs" };
  const provider = { anthropic: { options }, openai: { options }, google: { options } };
  await Bun.write(join(home, "managed/opencode.json"), JSON.stringify({ provider }));
  const values: Readonly<Record<string, string>> = {
    ANTHROPIC_UNIX_SOCKET: join(home, "no.sock"),
    OPENCODE_AUTH_CONTENT: logins,
    OPENCODE_TEST_MANAGED_CONFIG_DIR: join(home, "managed"),
  };
  const misleading = [...TOOLS.values()]
    .flatMap((tool) => tool.misleading)
    .map((name) => [name, values[name] ?? inventValue(name)] as const);
  const proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [
    [name, proxy] as const,
    [name.toLowerCase(), proxy] as const,
  ]);
  return { ...Object.fromEntries([...misleading, ...proxies]), NO_PROXY: "corp.example", HOME: home };
}

function inventValue(name: string): string {
  if (name.endsWith("_HEADERS")) return "Authorization: Bearer sk-theirs";
  return name.includes("_USE_") ? "true" : "sk-theirs";
}

function start(command: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  return startProgram(command, { folder: folder.path, env });
}
