// Runs `gateway doctor` with real upstreams, which are healthy, fail, or are not there.

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { ENV_TOOLS } from "../../../src/dialects/platforms.ts";
import { TOOLS } from "../../../src/cli/tools/tools.ts";
import { quoteWord } from "../../../src/lib/text/shell-word.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { run } from "../driving.ts";
import { writeLedger } from "../money/ledger/ledger-runs.ts";

interface Check {
  readonly check: string;
  readonly state: string;
  readonly detail: string;
  readonly mend: string | null;
}

interface Report {
  readonly status: number;
  readonly ok: boolean;
  readonly checks: Check[];
  readonly stdout: string;
}

async function examine(
  folder: TempFolder,
  env: Record<string, string> = {},
  ...words: string[]
): Promise<Report> {
  const around = { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path, ...env } };
  const { status, stdout, stderr } = await run(around, "doctor", "--json", ...words);
  expect(stderr).toBe("");
  return { status, stdout, ...JSON.parse(stdout) };
}

const wrongIn = ({ checks }: Report): Check[] => checks.filter(({ state }) => state === "wrong");

function write(folder: TempFolder, config: unknown): void {
  const text = typeof config === "string" ? config : JSON.stringify(config);
  writeFileSync(folder.join("gateway.yaml"), text, { mode: 0o600 });
}

/** Makes a config with one channel, its group and a key, on a free port. */
function configFor(url: string, channel: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    listen: { port: 0 },
    channels: { main: { platform: "messages", base_url: url, credential: CREDENTIAL, ...channel } },
    groups: { claude: { platform: "messages", channels: ["main"] } },
    keys: [{ name: "laptop", group: "claude", secret: "sk-laptop" }],
  };
}

/** Starts an upstream that answers everything alike. */
function serve(status: number, body: string, headers: Record<string, string> = {}) {
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response(body, { status, headers }),
  });
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

test("`doctor` says that there are no problems, and exits with 0", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  write(folder, makeConfig(upstream, { listen: { port: 0 } }));
  const report = await examine(folder);
  const around = { folder: folder.path, env: { XDG_RUNTIME_DIR: folder.path } };
  const human = await run(around, "doctor");
  upstream.stop();
  expect(wrongIn(report)).toEqual([]);
  expect(report).toMatchObject({ status: 0, ok: true });
  const channels = report.checks.filter(({ check }) => check.startsWith("channel "));
  expect(channels.map(({ state }) => state)).toEqual(["ok", "ok", "ok", "ok"]);
  expect(human.status).toBe(0);
  expect(human.stdout).toContain("✓ config");
  expect(human.stdout).toEndWith("No problems found.\n");
});

test("a config without channels and groups is a problem, and the fix says where to add them", async () => {
  using folder = makeTempFolder();
  write(folder, { listen: { port: 0 } });
  expect(wrongIn(await examine(folder)).map(({ check, mend }) => ({ check, mend }))).toEqual(
    ["channels", "groups"].map((what) => ({
      check: what,
      mend: `add one under ${what}: in ${folder.join("gateway.yaml")}`,
    })),
  );
});

describe("`doctor` says what is wrong with a channel", () => {
  const find = async (
    url: string,
    channel: Record<string, unknown> = {},
  ): Promise<Check & { status: number }> => {
    using folder = makeTempFolder();
    write(folder, configFor(url, channel));
    const report = await examine(folder);
    const found = report.checks.find(({ check }) => check === "channel main");
    expect(report.stdout).not.toContain(CREDENTIAL);
    return { check: "", state: "", detail: "", mend: "", ...found, status: report.status };
  };

  test("a channel at a closed port is reported with its address", async () => {
    const found = await find("http://127.0.0.1:9");
    const detail = expect.stringContaining("127.0.0.1:9");
    expect(found).toMatchObject({ state: "wrong", status: 1, detail });
    expect(found.mend).toContain("start the program that serves there, or check channels.main.base_url");
  });

  const answers: ReadonlyArray<readonly [status: number, body: string, state: string, detail: string]> = [
    [401, `{"error":"bad key ${CREDENTIAL}"}`, "wrong", "refuses the credential (401)"],
    [403, "", "wrong", "refuses the credential (403)"],
    [400, '{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}', "wrong", "refuses the credential (400)"],
    [404, "", "note", "answers 404"],
    [429, "", "note", "answers 429"],
    [500, "", "wrong", "answers 500"],
    [302, "", "wrong", "answers 302"],
    [200, "<html>", "wrong", "not with a list of models"],
    [200, '{"data":[{"id":"claude-x"}]}', "ok", "accepts the credential and lists 1 model"],
  ];
  for (const [status, body, state, detail] of answers) {
    test(`a channel that answers ${status} ${body.slice(0, 8)} is reported with "${detail}"`, async () => {
      using upstream = serve(status, body);
      const found = await find(upstream.url);
      expect(found).toMatchObject({ state, status: state === "wrong" ? 1 : 0 });
      expect(found.detail).toContain(detail);
    });
  }

  test("a credential with `${` in it is not taken for an unset variable, and a missing credential is mentioned", async () => {
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    const open = await find(upstream.url, { credential: undefined });
    expect(open.detail).toEndWith("answers without a credential and lists 1 model");
    expect((await find(upstream.url, { credential: "ab$${CD}ef" })).state).toBe("ok");
  });

  test("a channel that does not speak TLS is reported", async () => {
    using upstream = serve(200, "");
    expect((await find(upstream.url.replace("http:", "https:"))).state).toBe("wrong");
  });

  test.skipIf(Bun.which("openssl") === null)(
    "if nobody vouches for a channel's certificate, `doctor` suggests the setting `ca`",
    async () => {
      using folder = makeTempFolder();
      const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"];
      const files = ["-keyout", "key.pem", "-out", "cert.pem"];
      Bun.spawnSync(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", ...files, ...names], {
        cwd: folder.path,
      });
      const tls = { key: Bun.file(folder.join("key.pem")), cert: Bun.file(folder.join("cert.pem")) };
      const body = '{"data":[{"id":"claude-x"}]}';
      const server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response(body) });
      const url = `https://127.0.0.1:${server.port}`;
      const strange = await find(url);
      const vouched = await find(url, { ca: folder.join("cert.pem") });
      await server.stop(true);
      expect(strange).toMatchObject({ state: "wrong", status: 1 });
      expect(strange.mend).toContain("`ca`");
      expect(vouched).toMatchObject({ state: "ok", status: 0 });
    },
  );

  test("a channel that is disabled is not contacted", async () => {
    using folder = makeTempFolder();
    write(folder, configFor("http://127.0.0.1:9", { disabled: true }));
    const report = await examine(folder);
    expect(report.checks.find(({ check }) => check === "channel main")?.state).toBe("note");
    expect(wrongIn(report).map(({ check }) => check)).toEqual(["group claude"]);
  });
});

describe("`doctor` says what is wrong with the config", () => {
  test("the fix for a missing config is `gateway init`", async () => {
    using folder = makeTempFolder();
    const report = await examine(folder, { GATEWAY_CONFIG: "" });
    expect(report.status).toBe(1);
    expect(wrongIn(report)).toMatchObject([{ check: "config", mend: "gateway init" }]);
  });

  test.skipIf(process.platform === "win32")(
    "a config that everybody can write is refused with the command that fixes it",
    async () => {
      using folder = makeTempFolder();
      write(folder, "{}");
      const path = folder.join("gateway.yaml");
      chmodSync(path, 0o666);
      const wrong = wrongIn(await examine(folder));
      expect(wrong).toMatchObject([{ check: "config", mend: `chmod 600 ${quoteWord(path)}` }]);
      expect(wrong[0]?.detail).toEndWith("then keep others out");
    },
  );

  test("each mistake in a config is named with its place, and nothing else is checked", async () => {
    using folder = makeTempFolder();
    write(folder, "lisen: {}\ngroups:\n  g: { platform: messages, channels: [nope], colour: red }\n");
    const report = await examine(folder);
    expect(wrongIn(report).map(({ mend }) => mend)).toEqual([
      `edit ${folder.join("gateway.yaml")}:1`,
      `edit ${folder.join("gateway.yaml")}:3`,
    ]);
    expect(wrongIn(report)[0]?.detail).toContain('did you mean "listen"?');
  });

  test("a missing ledger is not reported as a fault of the config", async () => {
    using folder = makeTempFolder();
    write(folder, "groups: {}\n");
    const [wrong] = wrongIn(await examine(folder, {}, "--ledger", "/nope"));
    expect(wrong).toMatchObject({ check: "ledger", mend: "name another file with --ledger" });
  });

  test("a refused credential is named with its place and the command that replaces the credential", async () => {
    using folder = makeTempFolder();
    using upstream = serve(401, "{}");
    const place = async (credential: string, env: Readonly<Record<string, string>> = {}): Promise<string> => {
      write(folder, configFor(upstream.url, { credential }));
      const [wrong] = wrongIn(await examine(folder, env)).filter(({ check }) => check === "channel main");
      expect(wrong?.mend).toBe("gateway channels set main --credential -");
      return wrong?.detail.replace(/^.*\(401\): /, "") ?? "";
    };
    expect(await place("secret-12345")).toBe(`channels.main.credential in ${folder.join("gateway.yaml")}`);
    expect(await place("${KEY}", { KEY: "x" })).toBe("the environment variable KEY");
    writeFileSync(folder.join("gateway.env"), "KEY=x\n", { mode: 0o600 });
    expect(await place("${KEY}")).toBe(`KEY in ${folder.join("gateway.env")}`);
  });

  test("the config's variables that are not set are named, and everything else is still checked", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url, { credential: "${SOME_CREDENTIAL}" }));
    const without = await examine(folder);
    const advice = `add SOME_CREDENTIAL=… to ${folder.join("gateway.env")}`;
    expect(wrongIn(without).map(({ check, mend }) => [check, mend])).toEqual([["environment", advice]]);
    const asked = without.checks.find(({ check }) => check === "channel main");
    expect([asked?.state, asked?.mend]).toEqual(["note", "gateway channels set main --credential -"]);
    const given = await examine(folder, { SOME_CREDENTIAL: "x" });
    expect(wrongIn(given)).toEqual([]);
    expect(given.checks).toContainEqual({
      check: "environment",
      state: "ok",
      detail: "set: SOME_CREDENTIAL",
      mend: null,
    });
  });

  test.skipIf(process.platform === "win32")("chmod is the fix if others can read the config", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url));
    const path = folder.join("it's mine.yaml");
    renameSync(folder.join("gateway.yaml"), path);
    chmodSync(path, 0o644);
    const [wrong] = wrongIn(await examine(folder, { GATEWAY_CONFIG: path }));
    expect([wrong?.check, wrong?.mend?.slice(0, 10)]).toEqual(["permissions", "chmod 600 "]);
    Bun.spawnSync(["sh", "-c", wrong?.mend ?? ""]);
    expect(wrongIn(await examine(folder, { GATEWAY_CONFIG: path }))).toEqual([]);
  });

  test("for a config that is not text, `doctor` suggests to edit it, and not `gateway init`", async () => {
    using folder = makeTempFolder();
    writeFileSync(folder.join("gateway.yaml"), Buffer.of(0xff));
    expect(wrongIn(await examine(folder))).toMatchObject([
      { check: "config", mend: `edit ${folder.join("gateway.yaml")}` },
    ]);
  });
});

test("`doctor` names a key without sk-, and each file with secrets or charges that git tracks or would add", async () => {
  using folder = makeTempFolder();
  using other = makeTempFolder();
  using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
  const ledger = { path: other.join("charges.jsonl") };
  const keys = [{ name: "old", group: "claude", secret: "old-secret-of-mine" }];
  const headers = { "x-api-key": "sk-in-a-header", authorization: "Bearer ${B:-sk-default1}" };
  write(folder, { ...configFor(upstream.url, { headers }), ledger, keys });
  const env = folder.join("gateway.env");
  const files = [env, ledger.path, `${ledger.path}.index`, other.join("charges-2026-10.jsonl")];
  for (const file of files) writeFileSync(file, "", { mode: 0o600 });
  const notes = async () => {
    const { checks, stdout } = await examine(folder);
    expect(stdout).not.toMatch(/old-secret|credential-of|sk-in-|sk-def/);
    return checks.filter(({ state }) => state === "note").map(({ check, mend }) => [check, mend]);
  };
  expect(await notes()).toContainEqual(["key old", "gateway keys rotate old"]);
  for (const { path } of [folder, other]) Bun.spawnSync(["git", "init", "-q", path]);
  Bun.spawnSync(["git", "-C", folder.path, "add", "-f", env]);
  // A stranger's repository may name a program that git starts. `doctor` must not let git start it.
  const settings = { fsmonitor: `touch '${folder.join("ran")}'; true`, untrackedCache: "true" };
  for (const [name, value] of Object.entries(settings))
    Bun.spawnSync(["git", "-C", folder.path, "config", `core.${name}`, value]);
  const fixes = (await notes()).flatMap(([check, mend = ""]) => (check === "git" ? [mend] : []));
  expect(existsSync(folder.join("ran"))).toBe(false);
  const [first = "", second = ""] = fixes;
  expect(first).toContain(" rm -r -q --cached gateway.env && ");
  Bun.spawnSync(["sh", "-c", `${first};${second}`]);
  expect(fixes).toHaveLength(6);
  Bun.spawnSync(["git", "-C", folder.path, "add", "gateway.yaml"]);
  const places = ["main.credential", "main.headers.x-api-key", "main.headers.authorization", "keys.0.secret"];
  const found = (await examine(folder)).stdout.match(/\S+(?= in \S+: its history keeps it, so)/g);
  expect(found?.map((place) => place.replace("channels.", ""))).toEqual(places);
  const seen = ["ls-files", "-co", "--exclude-standard"];
  for (const { path } of [folder, other])
    expect(Bun.spawnSync(["git", "-C", path, ...seen]).stdout.toString()).not.toMatch(/charges|env/);
});

describe("`doctor` says what is wrong with the port and the ledger", () => {
  test("`doctor` recognizes the running gateway of its config", async () => {
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    using runtime = makeTempFolder();
    const gateway = await startGateway({
      config: makeConfig(upstream),
      env: { XDG_RUNTIME_DIR: runtime.path },
    });
    const report = await examine(gateway.folder, { XDG_RUNTIME_DIR: runtime.path });
    const { pid, url } = gateway;
    await gateway.stop();
    upstream.stop();
    expect(wrongIn(report)).toEqual([]);
    const port = report.checks.find(({ check }) => check === "port");
    expect(port?.detail).toBe(`the gateway is running on ${url} (process ${pid})`);
  });

  test("a variable that only the running gateway has is a note of `doctor`, not a problem", async () => {
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    using runtime = makeTempFolder();
    const config = makeConfig(upstream);
    config.channels["messages"] = { ...config.channels["messages"], credential: "${SOME_CREDENTIAL}" };
    const around = { XDG_RUNTIME_DIR: runtime.path };
    const gateway = await startGateway({ config, env: { ...around, SOME_CREDENTIAL: CREDENTIAL } });
    const report = await examine(gateway.folder, around);
    await gateway.stop();
    upstream.stop();
    expect([report.status, wrongIn(report)]).toEqual([0, []]);
    const shown = report.checks.filter(({ detail }) => detail.includes("in this shell"));
    expect(shown.map(({ check, state, mend }) => [check, state, mend])).toEqual([
      ["environment", "note", `add SOME_CREDENTIAL=… to ${gateway.folder.join("gateway.env")}`],
      ["channel messages", "note", "gateway channels set messages --credential -"],
    ]);
  });

  test("another program on the port is reported", async () => {
    using folder = makeTempFolder();
    using program = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, { ...configFor(program.url), listen: { port: Number(new URL(program.url).port) } });
    const found = wrongIn(await examine(folder)).find(({ check }) => check === "port");
    expect(found?.detail).toContain("used by another program");
  });

  test("a ledger locked by a process that does not answer is reported with that process", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url));
    const script = `const { takeLock } = await import(${JSON.stringify(Bun.fileURLToPath(new URL("../../../src/lib/files/file-lock.ts", import.meta.url)))});
      globalThis.held = takeLock(${JSON.stringify(folder.join("ledger.jsonl.lock"))}); console.log("held"); process.stdin.resume();`;
    const holder = Bun.spawn([process.execPath, "-e", script], { stdin: "pipe", stdout: "pipe" });
    for await (const _ of holder.stdout) break;
    const report = await examine(folder);
    holder.kill();
    await holder.exited;
    expect(wrongIn(report)).toMatchObject([{ check: "ledger", mend: `kill ${holder.pid}` }]);
  });

  test("a damaged line in the middle of the ledger is a problem", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url));
    const [first = "", , last = ""] = readFileSync(
      writeLedger([{ id: "1" }, { id: "2" }, { id: "3" }]),
      "utf8",
    ).split("\n");
    writeFileSync(folder.join("ledger.jsonl"), `${first}\n\0\0\0\n${last}\n`, { mode: 0o600 });
    const report = await examine(folder);
    expect(wrongIn(report)).toMatchObject([
      {
        check: "ledger",
        detail: "1 line cannot be read and is missing from all amounts",
        mend: "gateway ledger verify",
      },
    ]);
  });

  test("requests whose model has no price are a note of `doctor`, not a problem", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url));
    const unpriced = { basis: "unpriced", prices: null, official_usd: null, charge_usd: null } as const;
    const ledger = writeLedger([
      { id: "1", model: "mine", ...unpriced },
      { id: "2", model: "mine", ...unpriced },
      { id: "3" },
    ]);
    writeFileSync(folder.join("ledger.jsonl"), readFileSync(ledger), { mode: 0o600 });
    const { checks } = await examine(folder);
    expect(checks).toContainEqual({
      check: "prices",
      state: "note",
      detail: "2 requests have no price and are in no amount",
      mend: "gateway usage --by model, then gateway prices check",
    });
  });

  test("a missing folder of the ledger is not a problem, because a start creates it", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, { ...configFor(upstream.url), ledger: { path: "new/folder/ledger.jsonl" } });
    expect(wrongIn(await examine(folder))).toEqual([]);
  });

  test.skipIf(process.getuid?.() === 0)("a ledger that cannot be written is reported", async () => {
    using folder = makeTempFolder();
    using upstream = serve(200, '{"data":[{"id":"claude-x"}]}');
    write(folder, configFor(upstream.url));
    writeFileSync(folder.join("ledger.jsonl"), "", { mode: 0o400 });
    expect(wrongIn(await examine(folder))).toMatchObject([{ check: "ledger" }]);
  });
});

describe("`doctor` says what is wrong with the shell that runs it", () => {
  test("every variable that makes a tool bypass the gateway is named in a note", async () => {
    using folder = makeTempFolder();
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    write(folder, makeConfig(upstream, { listen: { port: 0 } }));
    for (const [name, { misleading }] of TOOLS) {
      const env = Object.fromEntries(misleading.map((each) => [each, "Authorization: sk-theirs"]));
      const { status, checks, stdout } = await examine(folder, env);
      const found = checks.find(({ check }) => check === `tool ${name}`);
      for (const each of misleading) expect(found?.detail).toContain(each);
      if (misleading.length > 0) {
        expect(found?.state).toBe("note");
        expect(found?.mend).toContain(`gateway ${ENV_TOOLS.has(name) ? "env" : "run"} ${name}`);
        expect(found?.mend?.includes("gateway run")).toBe(!ENV_TOOLS.has(name));
      }
      expect(status).toBe(0);
      expect(stdout).not.toContain("sk-theirs");
    }
    upstream.stop();
  });
});
