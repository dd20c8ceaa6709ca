// A gateway.yaml in the current folder: a stranger's is never read, and the one that 0.1.0 wrote there can be adopted.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { loadConfig } from "../../../src/config/file/load.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { sha256Hex } from "../../../src/lib/secret.ts";
import { startGateway } from "../../harness/gateway.ts";
import { expectMode, makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";
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
  a: { platform: messages, base_url: "https://api.anthropic.com", credential: "\${ANTHROPIC_API_KEY}", free: true, ca: ca.pem }
  b: { platform: messages, base_url: "http://127.0.0.1:9", credential: client, price_provider: openai, bill: reported }
groups:
  claude: { platform: messages, channels: [a], multiplier: 0.001 }
  plan: { platform: messages, channels: [b], other_paths: forward }
keys:
  - { name: limited, group: claude, secret: sk-limited-by-a-stranger, limits: { usd_per_day: 1, unpriced: allow } }
  - { name: theirs, group: claude, secret: sk-known-to-a-stranger }
prices: { claude-opus-4-8: { input: 0 } }
console: always
alerts: { command: [sh, -c, "id > PWNED"] }
cors_origins: ["https://evil.example"]
allowed_hosts: [evil.example]
ledger: { path: ../.bashrc }
`;

/** By the name of a power: how it is shown. */
const POWERS: Readonly<Record<string, string>> = {
  login: "passes on the login of your tool: b to http://127.0.0.1:9/",
  "alerts.command": "runs a program for each alert: sh -c id > PWNED",
  cors_origins: "lets these pages of a browser use the gateway: https://evil.example",
  allowed_hosts: "answers under these host names: evil.example",
  console: "serves the console's page to other machines",
  ca: "trusts the certificates of these files: a: ca.pem",
  other_paths: "sends paths upstream that the gateway neither knows nor prices: plan",
  unpriced: "lets models without a price pass limits in USD: limited",
  keys: "has keys, whose secrets the author of the file may know: limited, theirs",
  unlimited: "has keys without a limit in USD: theirs",
  prices: "sets prices: claude-opus-4-8 (input 0)",
  bill: "charges what these channels say, whatever that is: b",
  price_provider: "takes the prices of these providers: b: openai",
  free: "counts these channels as free of charge: a",
  multiplier: "multiplies what these groups cost: claude: 0.001",
  ledger: "writes its ledger to ",
};

/** What a config may do, without what it is for. */
function readPowers(): Record<string, boolean> {
  const { catalog } = loadConfig(adopted(), {}, { missing: "keep" });
  const { channels, groups, keys, prices, corsOrigins, allowedHosts, alerts, console, ledger } = catalog;
  const [a, claude] = [channels.get("a"), groups.get("claude")];
  return {
    login: groups.get("plan")?.channels.length !== 0,
    "alerts.command": alerts.command !== null,
    cors_origins: corsOrigins.length > 0,
    allowed_hosts: allowedHosts.length > 0,
    console: console === "always",
    ca: a?.ca !== null,
    other_paths: groups.get("plan")?.otherPaths !== null,
    unpriced: keys.get("limited")?.limits.allowUnpriced === true,
    keys: keys.has("limited"),
    unlimited: keys.has("theirs"),
    prices: prices.size > 0,
    bill: channels.get("b")?.bill === "reported",
    price_provider: channels.get("b")?.priceProvider !== null,
    free: a?.free === true,
    multiplier: claude?.multiplier !== "1",
    ledger: ledger.path !== home.join(".config", "gateway", "ledger.jsonl"),
  };
}

const writePowerful = (): void => {
  writeFileSync(home.join("project", "ca.pem"), "-----BEGIN CERTIFICATE-----\n");
  write(POWERFUL);
};
const none: Record<string, boolean> = Object.fromEntries(Object.keys(POWERS).map((name) => [name, false]));
const all: Record<string, boolean> = Object.fromEntries(Object.keys(POWERS).map((name) => [name, true]));

describe("the powers of a config", () => {
  test("init --adopt --yes shows each of them, and leaves each out", async () => {
    writePowerful();
    const { status, stdout, stderr } = await run(
      inProject(),
      ..."init --adopt gateway.yaml --yes --json".split(" "),
    );
    expect([status, JSON.parse(stdout).left_out]).toEqual([
      0,
      Object.keys(POWERS).filter((name) => name !== "unlimited"),
    ]);
    for (const text of Object.values(POWERS)) expect(stderr).toContain(`It ${text}`);
    expect(stderr).not.toContain("sk-known");
    expect(readPowers()).toEqual(none);
  });

  test.each(Object.keys(POWERS))("init --adopt --accept %s keeps that one only", async (name) => {
    writePowerful();
    const accepted = ["unlimited", "unpriced"].includes(name) ? ["keys", name] : [name];
    const words = [
      "init",
      "--adopt",
      "gateway.yaml",
      "--yes",
      ...accepted.flatMap((each) => ["--accept", each]),
    ];
    expect((await run(inProject(), ...words)).status).toBe(0);
    expect(readPowers()).toEqual({ ...none, ...Object.fromEntries(accepted.map((each) => [each, true])) });
  });

  test("init --adopt asks for each of them on a terminal, and keeps what the user accepts", async () => {
    writePowerful();
    const screen = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
    await screen.shows("Make this file your config?");
    screen.press("y");
    for (const text of Object.values(POWERS)) {
      await screen.shows(`It ${text.slice(0, 30)}`);
      screen.press(text === POWERS["console"] ? "n" : "y");
    }
    expect(await screen.status).toBe(0);
    expect(readPowers()).toEqual({ ...all, console: false });
  });

  test("init --adopt without a terminal names the flags, and one that the file does not need is refused", async () => {
    writePowerful();
    const silent = await run(inProject(), "init", "--adopt", "gateway.yaml");
    expect([silent.status, existsSync(adopted())]).toEqual([2, false]);
    expect(silent.stderr).toContain(`--accept: ${Object.keys(POWERS).join(" ")}.`);
    const wrong = await run(
      inProject(),
      ..."init --adopt gateway.yaml --yes --accept listen.host".split(" "),
    );
    expect([wrong.status, existsSync(adopted())]).toEqual([2, false]);
    expect(wrong.stderr).toContain("the file has nothing of that name");
  });

  test("doctor names those that not every config has", async () => {
    writePowerful();
    const { stdout } = await run(inProject(), "doctor", "--json", "--config", "gateway.yaml");
    const details = JSON.parse(stdout).checks.map(({ detail }: { detail: string }) => detail);
    const { keys: _keys, multiplier: _multiplier, ledger: _ledger, ...strange } = POWERS;
    expect(details).toEqual(expect.arrayContaining(Object.values(strange).map((text) => `it ${text}`)));
  });
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
      "--accept",
      "keys",
      "unlimited",
      "ledger",
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
        {
          name: "anthropic-main",
          base_url: upstream.url,
          proxy: null,
          variables: ["ANTHROPIC_API_KEY"],
          keychain: null,
        },
      ],
      left_out: [],
    });
    expectMode(adopted(), 0o600);
    expectMode(home.join(".config", "gateway"), 0o700);
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
      const { status } = await run(
        inProject(),
        "init",
        "--adopt",
        local(),
        "--yes",
        "--accept",
        "ledger",
        "--config",
        place,
      );
      expect(status).toBe(0);
      const text = readFileSync(place, "utf8");
      expect(text).toStartWith("vendor: goog # mine\n");
      expect(text).toContain(home.join("project", "ledger.jsonl"));
      Bun.spawnSync(["rm", home.join("project", name)]);
    }
  });

  test("init --adopt keeps other relative paths, and refuses one with a variable", async () => {
    write("ledger: { path: ../money/l.jsonl }\n");
    const words = ["init", "--adopt", "gateway.yaml", "--yes", "--accept", "ledger"];
    expect((await run(inProject(), ...words)).status).toBe(0);
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
  });

  test("init --adopt does nothing if the file changes after it was shown", async () => {
    write(writtenBefore("http://127.0.0.1:9"));
    const screen = runOnTerminal(inProject(), "init", "--adopt", "gateway.yaml");
    await screen.shows("Make this file your config?");
    write(writtenBefore("http://127.0.0.1:10"));
    screen.press("y");
    for (const question of ["It has keys,", "It has keys without"]) {
      await screen.shows(question);
      screen.press("y");
    }
    expect(await screen.status).toBe(1);
    expect(screen.raw()).toMatch(/has just changed\.\s+Try\s+again\./);
    expect(existsSync(adopted())).toBe(false);
  });
});
