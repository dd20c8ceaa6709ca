// A gateway.yaml in the current folder: a stranger's is never read, and the one that 0.1.0 wrote there can be adopted.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run, runOnTerminal } from "../driving.ts";
import { MAIN } from "../../harness/program.ts";

const SECRET = "sk-of-the-laptop";
const CREDENTIAL = "sk-ant-of-the-user";

/** Word for word what `gateway init` of 0.1.0 wrote, but for the address, the port and the key's hash. */
const writtenBefore = (baseUrl: string): string => `\
# The gateway's configuration. A running gateway takes up changes by itself.
# \`gateway keys\`, \`gateway plans\` and your editor may all write here: comments stay.
# \${NAME} stands for an environment variable, \${NAME:-default} for one that may be unset.

listen: { host: 127.0.0.1, port: 0 } # loopback: this machine only
ledger: { path: ledger.jsonl } # what every request cost

# Where requests go: one upstream each, with its own credential.
channels:
  anthropic-main:
    platform: messages
    base_url: ${baseUrl}
    credential: \${ANTHROPIC_API_KEY}
  # openai-main:
  #   platform: responses
  #   base_url: https://api.openai.com
  #   credential: \${OPENAI_API_KEY}

# What a key is bound to. A charge is the official price × the multiplier.
groups:
  claude: { platform: messages, multiplier: 1, channels: [anthropic-main], description: Anthropic at cost }
  # codex: { platform: responses, multiplier: 1, channels: [openai-main], description: OpenAI at cost }

# What clients send. Only hashes stand here: \`gateway keys add\` shows a secret once.
keys:
  - { name: claude, group: claude, secret_sha256: ${sha256Hex(SECRET)}, created: 2026-11-21T10:00:00Z }
`;

/** The user's home, and in it a folder with a gateway.yaml. */
let home: TempFolder;
beforeEach(() => {
  home = makeTempFolder();
  mkdirSync(home.join("project"));
  mkdirSync(home.join("bin"));
  writeFileSync(home.join("bin", "claude"), "#!/bin/sh\n", { mode: 0o755 });
});
afterEach(() => home.remove());

const local = () => home.join("project", "gateway.yaml");
const adopted = () => home.join(".config", "gateway", "gateway.yaml");
const write = (text: string): void => writeFileSync(local(), text, { mode: 0o600 });
const inProject = () => ({
  folder: home.join("project"),
  env: {
    HOME: home.path,
    PATH: `${home.join("bin")}:${process.env["PATH"]}`,
    XDG_RUNTIME_DIR: home.path,
    GATEWAY_CONFIG: "",
    ANTHROPIC_API_KEY: CREDENTIAL,
  },
});

/** An upstream that keeps what it was sent. */
function listen() {
  const received: string[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: (request) => {
      received.push(`${request.method} ${request.url} ${request.headers.get("x-api-key") ?? ""}`);
      return new Response("{}");
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    received,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

describe("a stranger's gateway.yaml in the current folder", () => {
  const commands =
    "doctor, serve, models, channels, keys list, keys add --name a --group claude, groups list, plans list, " +
    "usage, ledger verify, ledger tail, env claude --secret sk-of-the-laptop, run claude --secret sk-of-the-laptop, " +
    "service install, top";
  test.each(commands.split(", "))(
    "is not read by `gateway %s`, whose error names both ways to use it",
    async (words) => {
      using stranger = listen();
      write(writtenBefore(stranger.url));
      const { status, stdout, stderr } = await run(inProject(), ...words.split(" "));
      expect(stranger.received).toEqual([]);
      expect(status).not.toBe(0);
      expect(stdout + stderr).toContain("gateway init --adopt gateway.yaml");
      expect(stdout + stderr).toContain("--config gateway.yaml");
      expect(readFileSync(local(), "utf8")).toBe(writtenBefore(stranger.url));
    },
  );

  test.skipIf(process.platform === "win32")(
    "is not named by a .env, and no code of a bunfig.toml is run",
    async () => {
      write("vendor: stranger\n");
      writeFileSync(home.join("project", ".env"), "GATEWAY_CONFIG=gateway.yaml\n");
      writeFileSync(home.join("project", "bunfig.toml"), 'preload = ["./preload.ts"]\n');
      writeFileSync(home.join("project", "preload.ts"), 'console.log("run by the stranger");\n');
      const { HOME, ANTHROPIC_API_KEY } = inProject().env;
      // By the first line of the file, as npm's `bin` has it; `bun` is the one that runs this test.
      symlinkSync(process.execPath, home.join("bin", "bun"));
      const env = { HOME, ANTHROPIC_API_KEY, PATH: inProject().env.PATH };
      const child = Bun.spawn([MAIN, "keys", "list"], {
        cwd: home.join("project"),
        env,
        stdout: "pipe",
        stderr: "pipe",
      });
      const output = (await child.stdout.text()) + (await child.stderr.text());
      expect(output).toContain("gateway init --adopt gateway.yaml");
      expect(output).not.toContain("run by the stranger");
    },
  );

  test("a stranger's gateway.yaml gives no names to completions", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const { stdout } = await run(inProject(), "__complete", "--", "keys", "show", "");
    expect(stdout).not.toContain("claude");
  });

  test("a stranger's gateway.yaml is not read by the console", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const screen = runOnTerminal(inProject(), "console");
    await screen.shows("gateway init --adopt gateway.yaml");
    expect(await screen.status).not.toBe(0);
  });

  test("a stranger's gateway.yaml is not adopted by a plain init, which says so", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const { status, stderr } = await run(inProject(), "init", "--yes");
    expect(status).toBe(0);
    expect(stderr).toContain("read only with `--config gateway.yaml`");
    expect(readFileSync(adopted(), "utf8")).toContain("https://api.anthropic.com");
  });

  test("init --adopt shows every address and variable before a file is adopted", async () => {
    write(
      `channels:
  a: { platform: messages, base_url: "https://\${HOME_HOST:-evil}.example", credential: "\${ANTHROPIC_API_KEY:-}", headers: { x-also: \${AWS_SECRET} } }
  b: { platform: messages, base_url: "https://b.example", credential: plainly-in-the-file, proxy: "http://me:hush@p.example:1" }
listen: { host: 0.0.0.0 }
keys: []
`,
    );
    const { status, stdout, stderr } = await run(inProject(), "init", "--adopt", "gateway.yaml");
    expect([status, stdout, existsSync(adopted())]).toEqual([2, "", false]);
    expect(stderr).toMatch(
      /a +https:\/\/\$\{HOME_HOST:-evil\}\.example +\$\{HOME_HOST\}, \$\{ANTHROPIC_API_KEY\}, \$\{AWS_SECRET\}\n/,
    );
    expect(stderr).toMatch(/b +https:\/\/b\.example through http:\/\/me:…@p\.example:1 +nothing\n/);
    expect(stderr).toContain("listens on 0.0.0.0");
    expect(stderr).toContain("--yes is missing");
    for (const secret of ["hush", "plainly-in-the-file", CREDENTIAL]) expect(stderr).not.toContain(secret);
  });
});

const POWERFUL = `channels:
  a: { platform: messages, base_url: "https://api.anthropic.com", credential: "\${ANTHROPIC_API_KEY}", free: true }
  b: { platform: messages, base_url: "https://api.anthropic.com", credential: "\${ANTHROPIC_API_KEY}", bill: reported }
groups: { claude: { platform: messages, channels: [a, b] } }
keys: [{ name: theirs, group: claude, secret: sk-known-to-a-stranger }]
prices: { claude-opus-4-8: { input: 0 } }
listen: { host: 0.0.0.0, port: 0 }
console: always
alerts: { command: [sh, -c, "id > PWNED"] }
cors_origins: ["https://evil.example"]
allowed_hosts: [evil.example]
`;
const STRANGE = [
  "runs a program for each alert: sh -c id > PWNED",
  "lets these pages of a browser use the gateway: https://evil.example",
  "answers under these host names: evil.example",
  "serves the console's page to other machines",
  "listens on 0.0.0.0: other machines reach it",
];

test("init --adopt shows every power of a file, and --yes leaves out those that a script cannot have read", async () => {
  write(POWERFUL);
  const { status, stderr } = await run(inProject(), "init", "--adopt", "gateway.yaml", "--yes");
  expect(status).toBe(0);
  for (const text of [
    ...STRANGE,
    "has keys, whose secrets the author of the file may know: theirs",
    "has keys without a limit in USD: theirs",
    "sets prices: claude-opus-4-8",
    "counts these channels as free of charge: a",
    "charges what these channels say, whatever that is: b",
  ])
    expect(stderr).toContain(`It ${text}.\n`);
  expect(stderr).toContain("Left out: alerts.command. Add it to the config if you want it.");
  expect(stderr).not.toContain("sk-known");
  const { catalog } = loadConfig(adopted(), {}, { missing: "keep" });
  expect(catalog).toMatchObject({ corsOrigins: [], allowedHosts: [], console: "loopback" });
  expect([catalog.alerts.command, catalog.listen.host]).toEqual([null, "127.0.0.1"]);
});

test("init --adopt asks for each power on a terminal, and keeps what the user accepts", async () => {
  write(POWERFUL);
  const screen = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
  await screen.shows("Make this file your config?");
  screen.press("y");
  for (const [index, question] of [
    "runs a program",
    "lets these pages",
    "answers under",
    "serves",
    "listens",
  ].entries()) {
    await screen.shows(`It ${question}`);
    screen.press(index === 1 ? "y" : "n");
  }
  expect(await screen.status).toBe(0);
  const { catalog } = loadConfig(adopted(), {}, { missing: "keep" });
  expect([catalog.corsOrigins, catalog.alerts.command]).toEqual([["https://evil.example"], null]);
});

test("doctor names the powers of a config that somebody else may have written", async () => {
  write(POWERFUL);
  const { stdout } = await run(inProject(), "doctor", "--json", "--config", "gateway.yaml");
  const details = JSON.parse(stdout).checks.map(({ detail }: { detail: string }) => detail);
  expect(details).toEqual(expect.arrayContaining(STRANGE.map((text) => `it ${text}`)));
});

describe("the folder in which gateway 0.1.0 was used", () => {
  const ask = (url: string) =>
    fetch(`${url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": SECRET, "content-type": "application/json" },
      body: JSON.stringify({
        model: "claude-haiku-4-5",
        max_tokens: 64,
        messages: [{ role: "user", content: "Hello" }],
      }),
    });

  /** Serves the config that is in this folder, with one request. */
  async function serveOnce(folder: string, text: string): Promise<void> {
    const place: TempFolder = { ...home, path: folder, join: (...parts) => [folder, ...parts].join("/") };
    const gateway = await startGateway({
      config: text,
      folder: place,
      env: { ANTHROPIC_API_KEY: CREDENTIAL },
    });
    const response = await ask(gateway.url);
    await response.text();
    expect(response.status).toBe(200);
    expect(await gateway.stop()).toBe(0);
  }

  test("init --adopt keeps keys and comments, and the ledger continues as one chain", async () => {
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    const ledger = home.join("project", "ledger.jsonl");
    await serveOnce(home.join("project"), writtenBefore(upstream.url));
    const before = readFileSync(ledger, "utf8");

    const { status, stdout, stderr } = await run(
      inProject(),
      "init",
      "--adopt",
      "gateway.yaml",
      "--yes",
      "--json",
    );
    expect({ status, stderr }).toEqual({
      status: 0,
      stderr: expect.stringContaining(`The ledger stays where it is: ${ledger}`),
    });
    expect(JSON.parse(stdout)).toEqual({
      config: adopted(),
      adopted: local(),
      ledger,
      channels: [
        { name: "anthropic-main", base_url: upstream.url, proxy: null, variables: ["ANTHROPIC_API_KEY"] },
      ],
    });
    expect(statSync(adopted()).mode & 0o777).toBe(0o600);
    expect(statSync(home.join(".config", "gateway")).mode & 0o777).toBe(0o700);
    expect(readFileSync(adopted(), "utf8")).toBe(
      writtenBefore(upstream.url).replace("path: ledger.jsonl", `path: ${ledger}`),
    );
    expect(readFileSync(local(), "utf8")).toBe(writtenBefore(upstream.url));

    await serveOnce(home.join(".config", "gateway"), readFileSync(adopted(), "utf8"));
    upstream.stop();
    expect(readFileSync(ledger, "utf8")).toStartWith(before);
    expect(readLedger(ledger)).toHaveLength(2);
    expect(existsSync(home.join(".config", "gateway", "ledger.jsonl"))).toBe(false);
    const elsewhere = { ...inProject(), folder: home.path };
    expect(JSON.parse((await run(elsewhere, "ledger", "verify", "--json")).stdout)).toMatchObject({
      ledger,
      right: true,
      lines: 2,
    });
    expect(JSON.parse((await run(elsewhere, "keys", "list", "--json")).stdout)).toHaveLength(1);
  });

  test("init --adopt without a ledger starts one next to the config", async () => {
    write("vendor: goog # mine\n");
    expect((await run(inProject(), "init", "--adopt", "gateway.yaml", "--yes")).status).toBe(0);
    expect(readFileSync(adopted(), "utf8")).toBe("vendor: goog # mine\n");
  });

  test("init --adopt keeps a ledger that the file does not mention, also when it is rotated or not yet written", async () => {
    for (const name of ["ledger.jsonl", "ledger-2026-10.jsonl", "ledger.jsonl.lock"]) {
      write("vendor: goog # mine\n");
      writeFileSync(home.join("project", name), "");
      const place = home.join(name, "gateway.yaml");
      const { status } = await run(inProject(), "init", "--adopt", local(), "--yes", "--config", place);
      expect(status).toBe(0);
      const text = readFileSync(place, "utf8");
      expect(text).toStartWith("vendor: goog # mine\n");
      expect(text).toContain(home.join("project", "ledger.jsonl"));
      Bun.spawnSync(["rm", home.join("project", name)]);
    }
  });

  test("init --adopt keeps other relative paths, and refuses one with a variable", async () => {
    write("ledger: { path: ../money/l.jsonl }\n");
    expect((await run(inProject(), "init", "--adopt", "gateway.yaml", "--yes")).status).toBe(0);
    expect(readFileSync(adopted(), "utf8")).toBe(`ledger: { path: ${home.join("money", "l.jsonl")} }\n`);
    write("ledger: { path: '${MONEY:-money}/l.jsonl' }\n");
    const place = home.join("other.yaml");
    const { status, stderr } = await run(inProject(), "init", "--adopt", local(), "--yes", "--config", place);
    expect([status, existsSync(place)]).toEqual([1, false]);
    expect(stderr).toContain("ledger.path in");
    expect(stderr).toContain("Change it to an absolute path first");
  });

  test("init --adopt does nothing if a config exists or if the file is invalid", async () => {
    write("channels: 7\n");
    const wrong = await run(inProject(), "init", "--adopt", "gateway.yaml", "--yes");
    expect([wrong.status, existsSync(adopted())]).toEqual([2, false]);
    expect(wrong.stderr).toContain("gateway.yaml:1:11: channels");
    write("vendor: goog\n");
    mkdirSync(home.join(".config", "gateway"), { recursive: true });
    writeFileSync(adopted(), "vendor: mine\n", { mode: 0o600 });
    const there = await run(inProject(), "init", "--adopt", "gateway.yaml", "--yes");
    expect([there.status, readFileSync(adopted(), "utf8")]).toEqual([1, "vendor: mine\n"]);
    expect(there.stderr).toContain("already exists and was not changed");
    // Not even where a link leads nowhere.
    const link = home.join("link.yaml");
    symlinkSync("gone", link);
    const led = await run(inProject(), "init", "--adopt", local(), "--yes", "--config", link);
    expect([led.status, existsSync(home.join("gone"))]).toEqual([1, false]);
  });

  test("init --adopt asks on a terminal, and `no` changes nothing", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const screen = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
    await screen.shows("Make this file your config?");
    screen.press(KEYS.enter);
    expect(await screen.status).toBe(1);
    expect(existsSync(adopted())).toBe(false);
    const again = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
    await again.shows("Make this file your config?");
    again.press("y");
    expect(await again.status).toBe(0);
    expect(existsSync(adopted())).toBe(true);
  });

  test("init --adopt does nothing if the file changes after it was shown", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const screen = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
    await screen.shows("Make this file your config?");
    write(writtenBefore("http://127.0.0.1:10"));
    screen.press("y");
    expect(await screen.status).toBe(1);
    expect(screen.raw()).toContain("has just changed. Try again.");
    expect(existsSync(adopted())).toBe(false);
  });
});
