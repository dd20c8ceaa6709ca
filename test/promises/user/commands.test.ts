// The contract's promises about commands: what they print, return and change.

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { PROGRAM } from "../../harness/program.ts";
import { whole } from "../world/answers.ts";
import {
  eventually,
  openOwnWorld,
  type Line,
  makeFolder,
  removeFolder,
  runIn,
  serveIn,
  useWorld,
  World,
} from "../world/world.ts";

const world = useWorld({
  config: (built) => ({
    ...built,
    plans: {
      max: { groups: ["vip"], active: false },
      ended: { groups: ["vip"], active: true, until: "2026-01-31" },
    },
  }),
});
const plain = world.group("plain", {
  channels: {
    main: { models: ["test-model", "mystery-9", "/home/*", "many-*"], aliases: { quick: "test-model" } },
  },
  group: { multiplier: "0.5", description: "Half of it" },
});
const vip = world.group("vip", { group: { exclusive: true } });
const cheap = world.group("cheap", { platform: "responses" });
const weary = world.group("weary", { channels: { main: {}, spare: { priority: 2 } } });

/** A gateway that stops while the other tests run: its stream lasts for the complete grace period. */
const stopping = new World();
const slow = stopping.group("slow");
let lasted: Promise<number>;
beforeAll(async () => {
  await stopping.start();
  slow.channel().next({ pieces: [": beginning\n\n"], ending: "silence" });
  const client = await slow.open("messages", { stream: true });
  await client.until(": beginning");
  const from = performance.now();
  stopping.server.signal("SIGTERM");
  lasted = client.ended.then(() => performance.now() - from);
});
afterAll(async () => {
  stopping.server.signal("SIGKILL");
  await stopping.stop();
});

const ESCAPE = /\u001B/; // oxlint-disable-line no-control-regex -- colours are what this is about
const CLAUDE = {
  "user-agent": "claude-cli/2.1.332 (external, cli)",
  "x-claude-code-session-id": "session-of-commands",
};

/** Calls `use` with a new folder, in which no gateway runs. */
async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = makeFolder();
  try {
    await use(folder);
  } finally {
    removeFolder(folder);
  }
}

/** Each row has a command line, its exit status, and how its result on stdout and its message on stderr begin. */
const SPOKEN: readonly (readonly [string, number, string, string])[] = [
  ["keys list", 0, "NAME", ""],
  ["keys add --name spoken --group plain", 0, "sk-", 'The key "spoken" is bound to plain'],
  ["keys rotate spoken", 0, "sk-", 'The key "spoken" has a new secret'],
  ["keys show spoken", 0, "name ", ""],
  ["keys disable spoken", 0, "", "Disabled"],
  ["keys move spoken --group plain", 0, "", 'The key "spoken" is bound'],
  ["keys remove spoken", 2, "", "gateway: "],
  ["keys remove spoken --yes", 0, "", "Removed"],
  ["keys remove spoken --yes --missing-ok", 0, "", "There is no such key"],
  ["keys remove spoken --yes", 1, "", 'gateway: There is no key "spoken"'],
  ["keys show nobody", 1, "", 'gateway: There is no key "nobody"'],
  ["keys lst", 2, "", "gateway: unknown command"],
  ["keys add --name spoken", 2, "", "gateway: "],
  ["groups list", 0, "NAME", ""],
  ["channels", 0, "CHANNEL", ""],
  ["channels probe plain-main", 0, "", 'The channel "plain-main" is'],
  ["models --group plain", 0, "MODEL", "Prices are official"],
  ["cache --key nobody", 1, "", 'gateway: There is no key "nobody". Known keys: '],
  ["run foo", 2, "", 'gateway: There is no tool "foo". Known: claude, codex, gemini, opencode, pi, '],
  ["serve --demo --config x.yaml", 2, "", "gateway: --demo and --config exclude each other."],
  ["usage yesterday --csv", 0, "day,", "No requests in this period"],
  ["usage --nonsense", 2, "", "gateway: unknown option"],
  ["usage someday", 2, "", "gateway: There is no period"],
  ["usage --config nothing.yaml", 2, "", "gateway: "],
  ["prices set spoken-model input=1", 0, "", "In the config"],
  ["ledger verify", 0, "OK: ", ""],
  ["ledger show nothing", 1, "", "gateway: There is no request"],
  ["service status", 3, "not installed", "`gateway service install`"],
  ["env claude --secret KEY", 0, "", ""],
  ["env openai --secret KEY", 1, "", "gateway: The key"],
  ["schema config", 0, "{", ""],
  ["completions bash", 0, "#", ""],
  ["--version", 0, "", ""],
];

test("P24, P25, P30: commands exit with the right status, and write results to stdout, messages to stderr, and no colours", async () => {
  for (const [line, status, result, message] of SPOKEN) {
    const found = await world.run(...line.replace("KEY", plain.key).split(" "));
    const begin = ({ stdout, stderr }: typeof found) => [
      stdout.slice(0, result.length),
      stderr.slice(0, message.length),
    ];
    expect([line, found.status, ...begin(found)]).toEqual([line, status, result, message]);
    const isShort = line.startsWith("env claude") || line === "--version";
    // An empty text stands for no output at all.
    expect([line, found.stdout === "", found.stderr === ""]).toEqual([
      line,
      result === "" && !isShort,
      message === "",
    ]);
    expect([line, ESCAPE.test(found.stdout + found.stderr)]).toEqual([line, false]);
  }
});

/** Each row has a command line that lacks a value, and the flag that gives it. */
const LACKING: readonly (readonly [string, string])[] = [
  ["keys add --name without-group", "--group"],
  ["keys add --group plain", "--name"],
  ["keys move plain", "--group"],
  ["keys remove plain", "--yes"],
  ["plans remove max", "--yes"],
  ["groups add without-channel", "--channel"],
  ["channels add http://127.0.0.1:1/x --group plain --name without-platform", "--platform"],
];

test.each(LACKING)(
  "P28, P29: without a terminal, a missing value is an error that names the flag, and no prompt appears: %s",
  async (line, flag) => {
    const before = world.config;
    const { status, stdout, stderr } = await world.run(...line.split(" "));
    expect([status === 0, stdout]).toEqual([false, ""]);
    expect(stderr).toContain(flag);
    expect(world.config).toBe(before);
  },
);

test("P59: `keys list --group` leaves out the keys of other groups", async () => {
  const keys = await world.json("keys", "list", "--group", "cheap");
  expect(keys.map(({ name }: Line) => name)).toEqual(["cheap"]);
});

test("P32: without a terminal, keys add prints the secret alone", async () => {
  const more = ["--expires", "30d", "--limit", "usd_total=1"];
  const { status, stdout } = await world.run("keys", "add", "--name", "script", "--group", "plain", ...more);
  expect(status).toBe(0);
  expect(stdout).toMatch(/^sk-\S+\n$/);
  expect((await world.run("keys", "list", "--json")).stdout).not.toContain(stdout.trim());
});

test("P35: after keys rotate --grace, the old secret works for that time, and no longer", async () => {
  const old = (await world.run("keys", "add", "--name", "grace", "--group", "plain")).stdout.trim();
  const status = async (key: string) => (await plain.ask("messages", {}, { "x-api-key": key })).status;
  const rotate = async (...flags: string[]) =>
    (await world.run("keys", "rotate", "grace", ...flags)).stdout.trim();
  const second = await rotate("--grace", "1h");
  expect([await status(old), await status(second)]).toEqual([200, 200]);
  const { previous_until: until } = await world.json("keys", "show", "grace");
  expect(Date.parse(until) - Date.now()).toBeWithin(3_000_000, 3_600_001);
  // A reload and a restart do not change how long the old secret works.
  await world.run("keys", "limit", "grace", "requests_per_minute=1000");
  await world.halt();
  await world.start();
  expect([await status(old), await status(second)]).toEqual([200, 200]);
  // A second `--grace` is refused, so that the time of the first one still counts.
  const refused = await world.run("keys", "rotate", "grace", "--grace", "2h");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  expect(refused.stderr).toContain(`"grace" has an earlier secret until ${until}`);
  expect([await status(old), await status(second)]).toEqual([200, 200]);
  const third = await rotate();
  expect([await status(old), await status(second), await status(third)]).toEqual([401, 401, 200]);
  expect(await world.run("keys", "rotate", "grace", "--grace", "100000d")).toMatchObject({ status: 2 });
  const fourth = await rotate("--grace", "1s");
  await eventually(async () => (await status(third)) === 401);
  expect(await status(fourth)).toBe(200);
  expect(await rotate()).not.toBe(fourth);
  expect(await status(fourth)).toBe(401);
  // The old secret stops working when the key expires, or earlier.
  const short = await world.json("keys", "rotate", "grace", "--grace", "1h", "--expires", "1m");
  expect(short.previous_until).toBe(short.expires);
  await world.run("keys", "disable", "grace");
  expect(await world.json("keys", "show", "grace")).not.toHaveProperty("previous_until");
  const disabled = await world.run("keys", "rotate", "grace", "--grace", "1h");
  expect([disabled.status, disabled.stdout]).toEqual([2, ""]);
  expect(disabled.stderr).toContain("the old secret does not work");
});

test("P36: a key added under a removed key's name starts with nothing spent", async () => {
  const flags = ["--name", "again", "--group", "plain", "--limit", "usd_total=0.001"];
  const add = async () => (await world.run("keys", "add", ...flags)).stdout.trim();
  const ask = async (key: string) => (await plain.ask("messages", {}, { "x-api-key": key })).status;
  const first = await add();
  expect([await ask(first), await ask(first), await ask(first)]).toEqual([200, 200, 429]);
  expect((await world.run("keys", "remove", "again", "--yes")).status).toBe(0);
  const second = await add();
  const nothing = { spent_today_usd: "0", spent_total_usd: "0", last_used: null };
  expect(await world.json("keys", "show", "again")).toMatchObject(nothing);
  // A request of the removed key that still runs is never charged to the new key.
  const held = Promise.withResolvers<void>();
  plain.channel().next(() => held.promise.then(() => ({})));
  const sent = plain.channel().seen.length;
  const late = plain.ask("messages", {}, { "x-api-key": second });
  await plain.channel().got(sent + 1);
  expect((await world.run("keys", "remove", "again", "--yes")).status).toBe(0);
  const third = await add();
  expect(await ask(third)).toBe(200);
  held.resolve();
  await world.line(await late);
  expect([await ask(third), await ask(third)]).toEqual([200, 429]);
});

test("P37, P38: an exclusive group is selectable only while its plan is active, and its keys get 403 otherwise", async () => {
  const names = async (...flags: string[]) =>
    (await world.json("groups", "list", ...flags)).map(({ name }: Line) => name);
  const status = async () => (await vip.ask("messages")).status;
  const refused = await world.run("keys", "add", "--name", "v1", "--group", "vip");
  expect((await world.run("keys", "move", "cheap", "--group", "vip")).status).not.toBe(0);
  expect([
    (await names()).includes("vip"),
    (await names("--all")).includes("vip"),
    refused.status !== 0,
    await status(),
  ]).toEqual([false, true, true, 403]);
  expect((await world.run("plans", "activate", "max", "--until", "2099-01-31")).status).toBe(0);
  expect([(await names()).includes("vip"), await status()]).toEqual([true, 200]);
  expect((await world.run("keys", "add", "--name", "v2", "--group", "vip")).status).toBe(0);
  expect((await world.run("plans", "deactivate", "max")).status).toBe(0);
  expect([(await names()).includes("vip"), await status()]).toEqual([false, 403]);
  expect((await world.request("/v1/models", { "x-api-key": vip.key })).status).toBe(403);
  const until = new Date(Date.now() + 5000).toISOString();
  expect((await world.run("plans", "activate", "max", "--until", until)).status).toBe(0);
  expect(await status()).toBe(200);
  // The plan ends at its time, without a command.
  await eventually(async () => (await status()) === 403);
  expect((await names()).includes("vip")).toBe(false);
  expect((await world.run("plans", "activate", "max", "--until", "never")).status).toBe(0);
  expect(await status()).toBe(200);
});

describe("P39: init and import write a config of mode 0600 and refuse to overwrite", () => {
  const ccr = {
    Providers: [
      {
        name: "own",
        api_base_url: "http://127.0.0.1:1/v1/messages",
        api_key: "sk-own-credential",
        models: ["best"],
      },
    ],
    Router: { default: "own,best" },
  };
  test.each([
    ["init", ["init", "--yes"]],
    ["import", ["import", "ccr", "theirs.json"]],
  ])("%s writes a config of mode 0600, and refuses to overwrite it", async (_, args) => {
    await inFolder(async (folder) => {
      writeFileSync(join(folder, "theirs.json"), JSON.stringify(ccr));
      const path = join(folder, "gateway.yaml");
      const env = { ANTHROPIC_API_KEY: "sk-ant-invented-0123456789" };
      const first = await runIn(folder, args, { env });
      expect(first.status).toBe(0);
      expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
      const text = readFileSync(path, "utf8");
      const second = await runIn(folder, args, { env });
      expect(second.status).not.toBe(0);
      expect(readFileSync(path, "utf8")).toBe(text);
    });
  });
});

test("P40: `import` writes both keys of one provider to gateway.env, and clients' keys as hashes to the config", async () => {
  const [own] = await openOwnWorld({}, (own) => own.group("unused"));
  await own.halt();
  const upstream = own.upstream.channel("theirs");
  const entry = (name: string, key: string) =>
    `  - model_name: ${name}\n    litellm_params: { model: openai/${name}-of-openai, api_base: "${upstream.url}/v1", api_key: ${key} }\n`;
  const text = `model_list:\n${entry("one", "sk-first-credential")}${entry("two", "sk-second-credential")}general_settings: { master_key: sk-master-of-clients, database_url: "postgres://x" }\n`;
  writeFileSync(own.path("theirs.yaml"), text);
  rmSync(own.path("gateway.yaml"));
  const document = await own.json("import", "litellm", "theirs.yaml");
  expect(document.channels).toHaveLength(2);
  expect(document.no_counterpart.join()).toContain("database_url");
  for (const secret of ["sk-first-credential", "sk-second-credential", "sk-master-of-clients"])
    expect(own.config).not.toContain(secret);
  expect(own.config).toContain(new Bun.CryptoHasher("sha256").update("sk-master-of-clients").digest("hex"));
  const env = readFileSync(own.path("gateway.env"), "utf8");
  for (const secret of ["sk-first-credential", "sk-second-credential"]) expect(env).toContain(secret);
  expect((statSync(own.path("gateway.env")).mode & 0o777).toString(8)).toBe("600");
  own.writeConfig(`${own.config}\nlisten: { port: 0 }\n`);
  await own.start();
  for (const name of ["one", "two"]) {
    const body = { model: name, messages: [{ role: "user", content: "Hello" }] };
    const fields = { authorization: "Bearer sk-master-of-clients" };
    expect((await own.request("/v1/chat/completions", fields, body)).status).toBe(200);
  }
  const used = upstream.seen.map(({ text, fields }) => [
    JSON.parse(text).model,
    fields.find(([name]) => name === "authorization")?.[1],
  ]);
  expect(used).toEqual([
    ["one-of-openai", "Bearer sk-first-credential"],
    ["two-of-openai", "Bearer sk-second-credential"],
  ]);
});

test("P41: `serve` prints its address when it is ready", async () => {
  expect(world.server.stderr()).toContain(`http://127.0.0.1:${world.port}`);
});

const hasIpv6 = Object.values(networkInterfaces()).some((all) =>
  all?.some(({ address }) => address === "::1"),
);

test.skipIf(!hasIpv6)("P41: `serve` prints an address of IPv6 in brackets", async () => {
  await inFolder(async (folder) => {
    const server = await serveIn(folder, ["--demo", "--host", "::1", "--port", "0"]);
    const said = server.stdout() + server.stderr();
    await server.stop();
    expect(said).toContain(` http://[::1]:${server.port}`);
  });
});

test("P41, P42, P59: serve --demo --log off needs no config, account or network, and prints a key for each group", async () => {
  await inFolder(async (folder) => {
    const server = await serveIn(folder, ["--demo", "--curl", "--port", "0", "--log", "off"], {
      GATEWAY_CONFIG: "",
    });
    onTestFinished(() => server.stop());
    const said = await eventually(() => {
      const text = server.stdout() + server.stderr();
      return text.includes("/relay/models'") && text;
    });
    const groups = Array.from(said.matchAll(/key of the (\w+) group: sk-/g), ([, name]) => name);
    expect(new Set(groups)).toEqual(new Set(["chat", "content", "messages", "relay", "responses"]));
    const keys = [...new Set(said.match(/sk-[\w-]{8,}/g))];
    for (const key of keys) {
      const asked = ["/v1/models", "/v1beta/models", "/relay/models"].map((path) =>
        fetch(`http://127.0.0.1:${server.port}${path}`, { headers: { "x-gateway-key": key } }),
      );
      expect((await Promise.all(asked)).some(({ status }) => status === 200)).toBe(true);
    }
    const commands = said.match(/curl .*/g)!;
    expect([keys.length, commands.length]).toEqual([5, 9]);
    for (const line of commands)
      expect([line, Bun.spawnSync(["sh", "-c", `${line} -f`]).exitCode]).toEqual([line, 0]);
  });
});

/** Reads the names and contents of all files below a folder. */
const snapshot = (folder: string): string =>
  readdirSync(folder, { recursive: true })
    .map((name) => join(folder, String(name)))
    // If the tests run the source in place of the executable, the runtime has a cache there.
    .filter((path) => statSync(path).isFile() && !/\/\.(?:bun|cache)\//.test(path))
    .toSorted()
    .map((path) => `${path}: ${readFileSync(path, "latin1")}`)
    .join("\n");

test("P43: `run` starts a tool with this gateway, changes no settings file, and returns the tool's exit status", async () => {
  const home = world.path("home");
  mkdirSync(join(home, ".claude"), { recursive: true });
  writeFileSync(join(home, ".claude/settings.json"), "{}");
  mkdirSync(join(home, ".codex"), { recursive: true });
  writeFileSync(join(home, ".codex/config.toml"), "# mine\n");
  const before = snapshot(home);
  const script = 'echo "$OPENAI_BASE_URL $OPENAI_API_KEY"; exit 7';
  const { status, stdout } = await world.run("run", "--secret", cheap.key, "openai", "sh", "-c", script);
  expect(status).toBe(7);
  expect(stdout).toStartWith(`${world.url}/v1 ${cheap.key}=run-`);
  expect(snapshot(home)).toBe(before);
});

const CALL = `curl -s -o /dev/null -w '%{http_code} ' "$OPENAI_BASE_URL/responses" -H "authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '{"model":"test-model","input":"Hello"}'`;
const runCalls = (script: string, ...flags: string[]) =>
  world.run("run", ...flags, "--secret", cheap.key, "openai", "sh", "-c", script);

test("P44: `run --budget` limits the cost of the run's sessions together, and further requests get 429", async () => {
  const session = (name: string): string => CALL.replace("-d ", `-H 'session-id: ${name}' -d `);
  // A subagent's requests count, too.
  const agent = `-A '${CLAUDE["user-agent"]}' -H 'x-claude-code-agent-id: a1'`;
  const script = [session("a"), session("b").replace("-d ", `${agent} -d `), session("c")].join("; ");
  const { stdout, stderr } = await runCalls(script, "--budget", "0.002");
  expect(stdout.trim().split(" ")).toEqual(["200", "200", "429"]);
  expect(stderr).toContain(
    "The budget of $0.002 is spent: 1 request refused. 2 sessions: gateway sessions --key",
  );
  expect((await runCalls(script)).stdout.trim().split(" ")).toEqual(["200", "200", "200"]);
  // A request of unknown cost counts with its estimate.
  cheap.channel().next({ body: { ...whole("responses"), usage: undefined } });
  const unknown = await runCalls(`${CALL}; ${CALL}`, "--budget", "0.00001");
  expect(unknown.stdout.trim().split(" ")).toEqual(["200", "429"]);
  expect(unknown.stderr).toContain("The budget of $0.00001 is spent");
  const one = await runCalls(CALL, "--budget", "0.00001");
  expect(one.stderr).toMatch(/ \$0\.0014, .* The budget of \$0\.00001 is spent\. gateway sessions show/);
  // From a gateway on another machine, `run` only learns whether the budget is spent.
  for (const [usd, state] of Object.entries({ "0.00001": "is spent", "5": "is not spent" })) {
    const { stderr: end } = await runCalls(CALL, "--budget", usd, "--url", world.url);
    expect(end).toContain(`This run: its budget of $${usd} ${state}.`);
  }
});

test("P44: under a budget, a model without a price is refused, even if the key's limits allow it", async () => {
  const limits = ["--limit", "usd_per_day=9", "--limit", "unpriced=allow"];
  const key = (await world.run("keys", "add", "--name", "open", "--group", "cheap", ...limits)).stdout.trim();
  const script = CALL.replace("test-model", "mystery-9").replace("-o /dev/null ", "");
  const ask = (...flags: string[]) =>
    world.run("run", ...flags, "--secret", key, "openai", "sh", "-c", script);
  expect((await ask()).stdout).toEndWith("200 ");
  const { stdout, stderr } = await ask("--budget", "1");
  expect(stdout).toMatch(/This run has .* or run without --budget.*403 $/);
  expect(stderr).toContain('This run: 0 requests, $0.00. "mystery-9" has no price: ');
});

test("P45: `run` ends with one line on stderr that has the cost, unless --quiet is set or nothing was spent", async () => {
  const lines = async (script: string, ...flags: string[]): Promise<string[]> => {
    const { stderr, status } = await runCalls(`${script}; exit 3`, ...flags);
    expect(status).toBe(3);
    return stderr.split("\n").filter((line) => line.includes("This run"));
  };
  expect(await lines(`${CALL}; ${CALL}`)).toEqual([
    expect.stringMatching(/^This run: 2 requests, \$0\.0028, 20 % from the cache\. gateway sessions show /),
  ]);
  const unpriced = CALL.replace("test-model", "mystery-9");
  expect(await lines(unpriced)).toEqual([
    expect.stringMatching(/: 1 request, of unknown cost, .* "mystery-9" has no price: /),
  ]);
  expect(await lines(`${CALL}; ${unpriced}`)).toEqual([
    expect.stringMatching(/: 2 requests, \$0\.0014 without 1 request of unknown cost, /),
  ]);
  expect(await lines(CALL, "--quiet")).toEqual([]);
  cheap.channel().next({ status: 400, body: { error: { message: "no" } } });
  expect(await lines(CALL)).toEqual([]);
  expect(await lines("true")).toEqual([]);
});

test("if the gateway was killed and restarted during a run, the run's last line counts only what came after, and says so", async () => {
  const [sent, go] = [world.path("sent"), world.path("go")];
  const port = String(world.port);
  const run = runCalls(
    `${CALL}; touch ${sent}; until [ -e ${go} ]; do sleep 0.02; done; ${CALL}`,
    "--budget",
    "1",
  );
  await eventually(() => existsSync(sent));
  await world.kill();
  await world.start("--port", port);
  writeFileSync(go, "");
  const { stdout, stderr } = await run;
  expect(stdout.trim()).toBe("200 200");
  expect(stderr).toMatch(/This run, since the gateway started again: 1 request, \$0\.0014,/);
  const { pid } = world.server;
  const wait = `kill ${pid}; while kill -0 ${pid} 2>/dev/null; do sleep 0.02; done`;
  const stopped = await runCalls(`${CALL}; ${wait}; exit 3`);
  expect([stopped.status, stopped.stderr]).toEqual([
    3,
    expect.stringMatching(/This run: the gateway does not answer, .* gateway sessions --key cheap\n$/),
  ]);
  await world.start("--port", port);
});

test("if the suffix of a key is not the name of a run, the request gets 401, and the log does not show the suffix", async () => {
  const bad = [
    "run-x",
    "run-../../etc",
    `run-${"0".repeat(10_000)}`,
    "run-\u00e9\u00e9",
    "run-%0d%0aHost: x",
  ];
  for (const name of bad) {
    const { status } = await cheap.ask("responses", {}, { authorization: `Bearer ${cheap.key}=${name}` });
    expect([name.slice(0, 20), status]).toEqual([name.slice(0, 20), 401]);
  }
  const id = encodeURIComponent("run-\r\n\u{1f600}");
  expect((await fetch(`${world.url}/v1/models?key=${cheap.key}=${id}`)).status).toBe(401);
  expect(world.log()).not.toMatch(/run-(?:x|\.\.|0000|%0d|\u00e9)/);
});

test("a run blames its budget only for requests that the budget refused", async () => {
  const limit = ["--limit", "requests_per_minute=2"];
  const key = (await world.run("keys", "add", "--name", "slow", "--group", "cheap", ...limit)).stdout.trim();
  const flags = ["--budget", "0.002", "--secret", key];
  const script = `${CALL}; ${CALL}; ${CALL}`;
  const { stdout, stderr } = await world.run("run", ...flags, "openai", "sh", "-c", script);
  expect(stdout.trim()).toBe("200 200 429");
  expect(stderr).toContain("The budget of $0.002 is spent. ");
});

test("P46: `env` prints the settings that `run` would set, as lines for a shell", async () => {
  const { status, stdout } = await world.run("env", "openai", "--secret", cheap.key, "--shell", "bash");
  expect(status).toBe(0);
  const shell = Bun.spawnSync([
    "sh",
    "-c",
    `eval "$1"; echo "$OPENAI_BASE_URL $OPENAI_API_KEY"`,
    "sh",
    stdout,
  ]);
  expect(shell.stdout.toString()).toBe(`${world.url}/v1 ${cheap.key}\n`);
  // `env` prints the arguments of a tool, too, but not the name that `run` gives each run.
  mkdirSync(world.path("bin"));
  const tool = `#!/bin/sh\nprintf '%s\\n' "$@" "$GATEWAY_CODEX_KEY"\n`;
  writeFileSync(world.path("bin/codex"), tool, { mode: 0o755 });
  const env = { PATH: `${world.path("bin")}:${process.env["PATH"]}` };
  const own = ["--secret", cheap.key, "codex"];
  const lines = (await world.runWith({ env }, "env", "--shell", "bash", ...own)).stdout;
  const shown = Bun.spawnSync(["sh", "-c", 'eval "$1"; codex exec', "sh", lines], { env });
  const ran = (await world.runWith({ env }, "run", ...own, "exec")).stdout;
  const plainly = ran.replaceAll(/=run-\S+|-c\n\S+\.env_http_headers\S+\n/g, "");
  expect(shown.stdout.toString()).toBe(plainly);
});

test("P47: `models` lists the models that a group's keys can call now, with prices", async () => {
  const models = await world.json("models", "--group", "plain");
  expect(models.map(({ id }: Line) => id).toSorted()).toEqual(["quick", "test-model"]);
  for (const model of models) {
    expect(model).toMatchObject({ group: "plain", platform: "messages", channels: ["plain-main"] });
    expect(JSON.stringify(model.price)).toContain('"output":"2"');
  }
});

test("P47, P48: `models` leaves out the models of disabled channels, and `channels` has exit status 1 if a group has no usable channel", async () => {
  const models = async () => (await world.run("models", "--group", "cheap")).stdout;
  expect([(await world.run("channels")).status, await models()]).toEqual([
    0,
    expect.stringContaining("test-model"),
  ]);
  await world.run("channels", "disable", "cheap-main");
  expect([(await world.run("channels")).status, await models()]).toEqual([
    1,
    expect.not.stringContaining("test-model"),
  ]);
  // The time limit that `env` prints for Codex is a number even if the group has no usable channel.
  expect((await world.run("env", "codex", "--key", "cheap", "--json")).stdout).not.toMatch(/Infinity|NaN/);
  await world.run("channels", "enable", "cheap-main");
  // One available channel of a group is enough, but a channel that rests is not available.
  await world.run("channels", "disable", "weary-spare");
  expect((await world.run("channels")).status).toBe(0);
  weary.channel().next({ status: 429, body: {}, fields: { "retry-after": "100" } });
  await weary.ask("messages");
  expect((await world.run("channels")).status).toBe(1);
  await world.run("channels", "enable", "weary-main");
  expect((await world.run("channels")).status).toBe(0);
  // A channel whose credential is refused is not available, either.
  weary.channel().next({ status: 401, body: {} });
  await weary.ask("messages");
  expect((await world.run("channels")).status).toBe(1);
  await world.run("channels", "enable", "weary-main");
});

test("P49, P53: usage and sessions show exact sums, and show a model without a price as unpriced, never as $0", async () => {
  await world.line(await plain.ask("messages", {}, CLAUDE));
  await world.line(await plain.ask("messages", { model: "mystery-9" }, CLAUDE));
  const lines = world.lines().filter((line) => line["group"] === "plain");
  const nano = (name: string): bigint =>
    lines.reduce((sum, line) => sum + BigInt(Math.round(Number(line[name] ?? 0) * 1e9)), 0n);
  const usage = await world.json("usage", "today", "--by", "model", "--group", "plain");
  expect(usage.total).toMatchObject({ requests: lines.length, unpriced: 1 });
  expect(BigInt(Math.round(Number(usage.total.charge_usd) * 1e9))).toBe(nano("charge_usd"));
  expect(BigInt(Math.round(Number(usage.total.official_usd) * 1e9))).toBe(nano("official_usd"));
  const table = (await world.run("usage", "today", "--by", "model")).stdout;
  const row = table.split("\n").find((line) => line.includes("mystery-9"))!;
  expect(row).toMatch(/ unpriced +unpriced$/);
  const as = await world.run("usage", "today", "--by", "model", "--as", "claude-haiku-4-5");
  expect(as.stdout).toMatch(/^mystery-9 +\d+ +0 +- +- +-$/m);
  expect(as.stderr).toMatch(/Not compared: \d+ requests? for mystery-9/);
  const alone = { ...CLAUDE, "x-claude-code-session-id": "unpriced" };
  await world.line(await plain.ask("messages", { model: "mystery-9" }, alone));
  expect((await world.run("sessions")).stdout).toMatch(/^.* unpriced .* unpriced$/m);
  const report = (await world.run("report", "today", "--markdown")).stdout;
  expect(report).toMatch(/^\| model-\w{8} \| \d+ \|.*\| no price \|$/m);
  const { sessions } = await world.json("sessions");
  const session = sessions.find((each: Line) => each["session"] === CLAUDE["x-claude-code-session-id"]);
  expect(session).toMatchObject({ requests: 2, unpriced: 1, charge_usd: "0.00071", tool: "claude-code" });
});

test("P49: usage and sessions show exact sums of a period, however many digits the amounts have", async () => {
  await world.line(await plain.ask("messages", {}, CLAUDE));
  const whole = world.lines().find((line) => line["charge_usd"] === "0.00071")!;
  const digits = (index: number): string => String(1_000_000_000_001n * BigInt(index + 1)).padStart(13, "0");
  const lines = Array.from({ length: 48 }, (_, index) => {
    const amount = digits(index).replace(/(\d{12})$/, ".$1");
    const time = `2026-03-${String(1 + Math.floor(index / 12)).padStart(2, "0")}T${String((index % 12) * 2).padStart(2, "0")}:00:00.000Z`;
    const client = { ...whole["client"], session: `session-${index % 2}` };
    return { ...whole, id: `req_${index}`, time, client, charge_usd: amount, official_usd: amount };
  });
  const copy = world.path("amounts.jsonl");
  writeFileSync(copy, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
  const since = ["--since", "2026-03-02", "--until", "2026-03-03"];
  // `--until` includes its day: two days with 12 requests each.
  const wanted = lines.filter(({ time }) => time >= "2026-03-02" && time < "2026-03-04");
  const sum = (of: typeof lines): string => {
    const all = of.reduce((each, { charge_usd: usd }) => each + BigInt(usd.replace(".", "")), 0n);
    return String(all)
      .replace(/(\d{12})$/, ".$1")
      .replace(/0+$/, "");
  };
  const usage = await world.json("usage", ...since, "--ledger", copy, "--by", "session");
  expect(usage.total).toMatchObject({ requests: 24, charge_usd: sum(wanted), official_usd: sum(wanted) });
  const { sessions, total } = await world.json("sessions", ...since, "--ledger", copy);
  expect(total).toMatchObject({ requests: 24, charge_usd: sum(wanted) });
  for (const { session, charge_usd } of [...sessions, ...usage.rows]) {
    const own = wanted.filter(({ client }) => client.session === session);
    expect([session, charge_usd]).toEqual([session, sum(own)]);
  }
});

test("P50: `usage --by version` groups by the tool's version", async () => {
  const early = { "user-agent": "codex_cli_rs/0.170.0-alpha.3 (x)" };
  for (const fields of [CLAUDE, early]) await world.line(await plain.ask("messages", {}, fields));
  const { rows } = await world.json("usage", "--by", "version");
  const versions = rows.map(({ version }: Line) => version);
  expect(versions).toEqual(expect.arrayContaining(["2.1.332", "0.170.0-alpha.3"]));
});

/** The transcript of a Claude Code session, with the row of one answer twice. */
function writeHistory(home: string): void {
  const folder = join(home, ".claude/projects/-home-me-project");
  mkdirSync(folder, { recursive: true });
  const row = (id: string) => ({
    type: "assistant",
    timestamp: new Date().toISOString(),
    sessionId: "11111111-2222-4333-8444-555555555555",
    cwd: "/home/me/project",
    version: "2.1.332",
    requestId: `req_${id}`,
    uuid: crypto.randomUUID(),
    message: {
      id: `msg_${id}`,
      type: "message",
      role: "assistant",
      model: "claude-haiku-4-5",
      content: [{ type: "text", text: "Hi" }],
      stop_reason: "end_turn",
      usage: {
        input_tokens: 1000,
        cache_read_input_tokens: 0,
        cache_creation_input_tokens: 0,
        output_tokens: 100,
      },
    },
  });
  const rows = [row("1"), row("1"), row("2")].map((each) => JSON.stringify(each)).join("\n");
  writeFileSync(join(folder, "11111111-2222-4333-8444-555555555555.jsonl"), `${rows}\n`);
}

test("P51, P52: `usage --history` reads the agents' logs without a config, counts repeats once, and writes nothing", async () => {
  await inFolder(async (folder) => {
    writeHistory(join(folder, "home"));
    const before = snapshot(folder);
    const { status, stdout } = await runIn(folder, ["usage", "--history", "--json"], {
      env: { GATEWAY_CONFIG: "" },
    });
    expect(status).toBe(0);
    // Each of the two answers has 1,000 input tokens at $1 and 100 output tokens at $5 a million.
    expect(JSON.parse(stdout).total).toMatchObject({ requests: 2, official_usd: "0.003" });
    expect(snapshot(folder)).toBe(before);
  });
});

test("P52: `usage --history --both` counts a request once if the logs and the ledger have it", async () => {
  const channels = { main: { models: ["claude-haiku-4-5"] } };
  const [own, group] = await openOwnWorld({}, (world) => world.group("claude", { channels }));
  writeHistory(own.path("home"));
  const usage = { input_tokens: 1000, output_tokens: 100 };
  const body = {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model: "claude-haiku-4-5",
    content: [{ type: "text", text: "Hi" }],
    stop_reason: "end_turn",
    usage,
  };
  group.channel().next({ body, fields: { "request-id": "req_1" } });
  await own.line(
    await group.ask(
      "messages",
      { model: "claude-haiku-4-5" },
      { ...CLAUDE, "x-claude-code-session-id": "11111111-2222-4333-8444-555555555555" },
    ),
  );
  const { total } = await own.json("usage", "--history", "--both");
  expect(total.requests).toBe(2);
  expect(own.lines()).toHaveLength(1);
});

test("P54: `report` writes one file without prompts, answers, secrets or labels", async () => {
  const label = "/home/me/secret-project";
  await world.line(
    await plain.ask("messages", { model: "/home/me/m/own.gguf" }, { ...CLAUDE, "x-gateway-label": label }),
  );
  // Words that may be secrets, in the places of a tool, its version, a model, a session and a request id.
  const words = ["4Xq9vB27LmZk81RtYw05", "hunter2"];
  for (const word of words) {
    plain.channel().next({ body: whole("messages"), fields: { "request-id": `req_${word}` } });
    const fields = { "user-agent": `${word}/1.${word}`, "session-id": `${word}-4155551234` };
    await world.line(await plain.ask("messages", { model: `many-${word}` }, fields));
  }
  await world.line(await plain.ask("messages", { model: "many-claude is the password" }, CLAUDE));
  // The number of a card, written as a model's name, and the number of a phone, written as a version.
  const phone = { ...CLAUDE, "user-agent": "claude-cli/415.555.1234 (external, cli)" };
  await world.line(await plain.ask("messages", { model: "many-4111-1111-1111-1111" }, phone));

  const path = world.path("report.html");
  expect(await world.run("report", "today", "-o", path)).toMatchObject({ status: 0, stdout: `${path}\n` });
  const session = (await world.run("report", "hunter2-4155551234", "-o", "-")).stdout;
  const text = session + readFileSync(path, "utf8");
  const own = [plain.channelName(), CLAUDE["x-claude-code-session-id"], label];
  const parts = "secret-project /home/ own.gguf password 41555512 4111-1111 415.555".split(" ");
  const names = [...own, ...parts, ...words.flatMap((word) => [word, word.toLowerCase()])];
  for (const secret of ["Hello from upstream", '"Hello"', plain.key, plain.credentialOf(), ...names])
    expect(text).not.toContain(secret);
  expect(text).toMatch(/>model-[0-9a-f]{8}</);
  // The report needs nothing from a network when it is opened.
  expect(text).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
  expect(text).not.toMatch(/<(?:script|link|img|iframe)|https?:|url\(|@import/);
  expect(text.length).toBeLessThan(200_000);
  const kept = ["gateway.yaml", "link.html"].map((name) => world.path(name));
  symlinkSync(path, kept[1]!);
  const nowhere = ["no/such.html", "report.html/x", "x".repeat(300)].map((name) => world.path(name));
  const lost = [...kept, ...nowhere, world.folder, ""].map((place) => ["-o", place]);
  for (const flags of [...lost, ["-o", path, "--json"]]) {
    const before = kept.map((file) => [readFileSync(file, "utf8"), lstatSync(file).isSymbolicLink()]);
    const { status, stderr } = await world.run("report", "today", ...flags);
    expect([flags, status > 0, /\bE[A-Z]{4}|: move it/.test(stderr)]).toEqual([flags, true, false]);
    expect(kept.map((file) => [readFileSync(file, "utf8"), lstatSync(file).isSymbolicLink()])).toEqual(
      before,
    );
  }
  // Reports that are written in the same second have different names.
  const reports = Array.from({ length: 4 }, () => world.run("report", "today"));
  expect(new Set((await Promise.all(reports)).map(({ stdout }) => stdout)).size).toBe(4);
  // A report (here in Markdown, because of its name) to which the user has added words is not replaced.
  const draft = world.path("draft.md");
  const writeDraft = async () => (await world.run("report", "today", "-o", draft)).status;
  expect([await writeDraft(), await writeDraft()]).toEqual([0, 0]);
  writeFileSync(draft, readFileSync(draft, "utf8").replace("In it:", "My words. In it:"));
  expect(await writeDraft()).toBe(1);
  expect(readFileSync(draft, "utf8")).toContain("My words.");
});

test("P53, P55: the cache misses in a report have time, request id, version, changed part, tokens and dollars, and labels if asked for", async () => {
  const ask = async (
    upstream: string,
    tool: string,
    system: string,
    { version = "2.1.332", session = "session-of-report", model = "test-model", choice = "auto" } = {},
  ): Promise<Line> => {
    const usage = { input_tokens: 5000, cache_read_input_tokens: 0, cache_creation_input_tokens: 4000 };
    plain.channel().next({ body: whole("messages", { model, usage }), fields: { "request-id": upstream } });
    const body = {
      model,
      system: system.repeat(9000),
      cache_control: { type: "ephemeral" },
      tools: [{ name: tool, input_schema: { type: "object" } }],
      tool_choice: { type: choice },
    };
    const label = { "x-gateway-label": "my-project" };
    const fields = { ...CLAUDE, ...label, "x-claude-code-session-id": session };
    const agent = { "user-agent": `claude-cli/${version} (external, cli)` };
    return await world.line(await plain.ask("messages", body, { ...fields, ...agent }));
  };
  const id = "req_011CSHoEeqs5C35K2UU";
  await ask(`${id}1`, "read", "s");
  const misses = [
    await ask(`${id}2`, "write", "s"),
    await ask(`${id}3`, "write", "t", { version: "2.1.333" }),
    await ask(`${id}4`, "write", "t", { version: "2.1.334", choice: "any" }),
  ];
  const { stdout } = await world.run("report", "session-of-report", "--markdown");
  const labelled = await world.run("report", "session-of-report", "--markdown", "--labels");
  expect([stdout, labelled.stdout].map((text) => text.split("my-project").length - 1)).toEqual([0, 3]);
  const rows = stdout.split("\n").filter((row) => row.includes("req\\_011"));
  const [, hash] = /\| model-([0-9a-f]{8})/.exec(stdout) ?? [];
  const changed = [
    "tool 1 changed",
    "version 2.1.332 → 2.1.333; system part 1 changed",
    "version 2.1.333 → 2.1.334; tool\\_choice changed",
  ];
  expect(rows).toEqual(
    misses.map(({ time, cache }, index) => {
      expect(cache).toMatchObject({ missed: 4000 });
      const tool = `claude-code 2.1.33${index + 2}`;
      const amounts = `4,000 | $${Number(cache.usd).toFixed(4)}`;
      const when = time.slice(0, 16).replace("T", " ");
      return `| ${when} | ${id.replace("_", "\\_")}${index + 2} | ${tool} | model-${hash} | ${changed[index]} | ${amounts} |`;
    }),
  );
  // `ledger verify` accepts the anchor that the report names.
  const [, anchor = ""] = /--anchor (\S+)`/.exec(stdout) ?? [];
  expect((await world.run("ledger", "verify", "--anchor", anchor)).status).toBe(0);
  const report = await world.json("report", "session-of-report");
  expect(report).toMatchObject({
    session: expect.stringMatching(/^[0-9a-f]{8}$/),
    anchor,
    paid_again: { misses: 3, tokens: 12_000 },
  });
  // Misses without a price have no amount, not an amount of 0.
  const free = { session: "session-without-price", model: "mystery-9" };
  for (const tool of ["read", "write"]) await ask(`${id}4`, tool, "s", free);
  const unpriced = (await world.run("report", free.session, "--markdown")).stdout;
  expect(unpriced).toMatch(/tool 1 changed.*4,000 \| no price/);
  expect(unpriced).not.toContain("$0");
  expect((await world.run("report", "today", "--markdown")).stdout).toContain("**at least $");
  for (const line of ["cache", `sessions show ${free.session} --turns`, "usage --by model"]) {
    const { stdout } = await world.run(
      ...line.split(" "),
      ...(line.includes("show") ? [] : ["--model", free.model]),
    );
    expect([line, stdout.includes("unpriced"), /\b0\.0/.test(stdout)]).toEqual([line, true, false]);
  }
});

test("a report does not count a failed request as a turn, and leaves no number empty even if all requests failed", async () => {
  const fields = { ...CLAUDE, "x-claude-code-session-id": "failed-session" };
  const fail = async (): Promise<void> => {
    plain.channel().next({ status: 400, body: { type: "error", error: { type: "x", message: "No" } } });
    await world.line(await plain.ask("messages", {}, fields));
  };
  await fail();
  expect((await world.run("report", "failed-session", "--markdown")).stdout).not.toContain("****");
  await fail();
  await world.line(await plain.ask("messages", {}, fields));
  const { requests, versions, models, known } = await world.json("report", "failed-session");
  expect({ requests, known }).toEqual({
    requests: 3,
    known: { exact: 1, partial: 0, unpriced: 0, unknown: 0, failed: 2 },
  });
  expect([...versions, ...models].map(({ turns }: Line) => turns)).toEqual([1, 1]);
});

test("a report's tables have the versions and models with the most input, and say how many more there are", async () => {
  for (let index = 0; index < 15; index += 1) {
    const usage = { input_tokens: index === 0 ? 900_000 : 10, output_tokens: 1 };
    plain.channel().next({ body: whole("messages", { usage }) });
    const agent = { "user-agent": `claude-cli/3.0.${index} (external, cli)` };
    await world.line(await plain.ask("messages", { model: `many-${index}` }, { ...CLAUDE, ...agent }));
  }
  const { versions, models, more_rows: more } = await world.json("report", "today");
  expect([versions.length, models.length]).toEqual([8, 8]);
  expect(versions.some(({ version }: Line) => version === "3.0.0")).toBe(true);
  const { stdout } = await world.run("report", "today", "--markdown");
  for (const left of [more.versions, more.models])
    expect(stdout).toContain(`Only the rows with the most input. Not shown: ${left} more.`);
});

test("commands that write the same report at once leave one complete file, and only a killed one may leave its draft", async () => {
  await world.line(await plain.ask("messages", {}, CLAUDE));
  const folder = world.path("reports");
  mkdirSync(folder);
  const path = join(folder, "report.html");
  const write = () => world.run("report", "today", "-o", path);
  const words = ["report", "today", "-o", path, "--config", world.path("gateway.yaml")];
  const dies = Bun.spawn([...PROGRAM, ...words], { stdout: "ignore", stderr: "ignore" });
  const all = await Promise.all([write(), write(), write(), write().finally(() => dies.kill("SIGKILL"))]);
  await dies.exited;
  expect(all.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
  expect(readFileSync(path, "utf8")).toMatch(/<\/html>\n<!-- gateway report \w+ -->\s*$/);
  const draft = new RegExp(`^\\.report\\.html\\.${dies.pid}\\.[0-9a-f]{8}\\.tmp$`);
  const names = readdirSync(folder).sort();
  expect(draft.test(names[0] ?? "") ? names.slice(1) : names).toEqual(["report.html"]);
});

test("P56: `statusline` prints one line about the session on its stdin, and an empty line without a gateway", async () => {
  await world.line(await plain.ask("messages", {}, CLAUDE));
  const stdin = JSON.stringify({ session_id: CLAUDE["x-claude-code-session-id"] });
  const { status, stdout } = await world.runWith({ stdin }, "statusline");
  expect(status).toBe(0);
  expect(stdout).toMatch(/^test-model .*\n$/);
  await inFolder(async (folder) => {
    writeFileSync(join(folder, "gateway.yaml"), world.config, { mode: 0o600 });
    const nobody = await runIn(folder, ["statusline"], { stdin });
    expect([nobody.status, nobody.stdout]).toEqual([0, "\n"]);
  });
  expect(existsSync(world.path("ledger.jsonl"))).toBe(true);
});

test("P98: a stream may go on for 30 seconds after the gateway has got a signal to stop", async () => {
  expect(await lasted).toBeWithin(29_900, 45_000);
});
