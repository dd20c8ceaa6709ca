import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { askGateway, tryGateway } from "../../../src/cli/access/control.ts";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { gatewayStateSchema } from "../../../src/gateway/control/state.ts";
import { formatAmount } from "../../../src/cli/terminal/text.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../../src/lib/money.ts";
import { passMidnight } from "../../harness/day.ts";
import { keyOf, makeConfig } from "../../harness/gateway.ts";
import { makeTempFolder, readLedger, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run, runOnTerminal } from "../driving.ts";
import { type Watched, watch } from "../../harness/terminal/watching.ts";
import { PROGRAM } from "../../harness/program.ts";

let folder: TempFolder;
let upstream: DemoUpstream;
let served: Watched | null = null;
beforeEach(() => {
  folder = makeTempFolder();
  upstream = startDemoUpstream();
  const config = { listen: { port: 0 }, ...makeConfig(upstream) };
  writeFileSync(folder.join("gateway.yaml"), JSON.stringify(config), { mode: 0o600 });
});
afterEach(async () => {
  served?.signal("SIGKILL");
  await served?.status;
  served = null;
  upstream.stop();
  folder.remove();
});

const addressOf = (text: string): string => /ready on (http:\S+)/.exec(text)?.[1] ?? "";

async function serve(size: { columns?: number; rows?: number; env?: Record<string, string> } = {}) {
  const program = watch({ folder: folder.path, ...size }, "serve");
  served = program;
  await program.until(/^TIME |STATUS/m);
  return { program, address: addressOf(program.screen.history().join("\n")) };
}

function ask(address: string, more: RequestInit & { key?: string; model?: string } = {}): Promise<Response> {
  const { key = keyOf("messages"), model = "claude-haiku-4-5", ...init } = more;
  const messages = [{ role: "user", content: "Hello" }];
  return fetch(`${address}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify({ model, max_tokens: 64, stream: true, messages }),
    ...init,
  });
}

const finish = async (answer: Promise<Response>): Promise<string> => (await answer).text();

describe("gateway serve on a terminal", () => {
  test("serve shows a line for each request in columns", async () => {
    const { program, address } = await serve({ columns: 140 });
    expect(program.screen.history().join("\n")).toMatch(/^page: http.*#code=.* later: .*open\)$/m);
    await finish(ask(address));
    await finish(ask(address, { model: "claude-sonnet-4-5" }));
    await program.until(/claude-sonnet-4-5 .*\$/);
    const rows = program.screen.rows().filter((row) => row !== "");
    const [head = "", first = "", second = ""] = rows.slice(-3);
    expect(head).toMatch(
      /^TIME +ID +KEY +MODEL +CHANNEL +(?:LABEL +)?(?:SESSION +)?STATUS +FIRST +TOOK +IN +CACHED +OUT +CHARGE +TODAY$/,
    );
    expect(first).toMatch(/^\d\d:\d\d:\d\d +\w{9} +messages +claude-haiku-4-5 +messages +200 /);
    for (const title of ["KEY", "MODEL", "CHANNEL", "STATUS"]) {
      const at = head.indexOf(title);
      for (const row of [first, second]) expect(row.slice(at - 2, at + 1)).toMatch(/^ {2}\S$/);
    }
    for (const title of ["CHARGE", "TODAY"]) {
      const end = head.indexOf(title) + title.length;
      for (const row of [first, second]) expect(row.slice(0, end + 1)).toMatch(/ \$\d+\.\d{6} ?$/);
    }
  });

  test("serve adds the day up", async () => {
    await passMidnight();
    const { program, address } = await serve({ columns: 160 });
    for (let count = 1; count <= 3; count += 1) {
      await finish(ask(address));
      await program.until((rows) => rows.filter((row) => row.includes("claude-haiku")).length === count);
    }
    // A line of the log may come before the line of the ledger.
    while (readLedger(folder.join("ledger.jsonl")).length < 3) await Bun.sleep(1);
    const total = readLedger(folder.join("ledger.jsonl"))
      .map((line) => parseUsd(String(line["charge_usd"])))
      .reduce(addUsd, ZERO_USD);
    expect(total).toBeGreaterThan(0n);
    const shown = `$${formatAmount(formatUsd(total))}`;
    expect(program.screen.rows().findLast((row) => row.includes("claude-haiku"))).toEndWith(` ${shown}`);
  });

  test("serve says why a request was refused, below the line if there is no room beside it", async () => {
    const { program, address } = await serve({ columns: 80 });
    await finish(ask(address, { key: "sk-wrong" }));
    await program.until("refused: This gateway does not know this key.");
    for (const row of program.screen.rows()) expect(Bun.stringWidth(row)).toBeLessThanOrEqual(80);
  });

  test("serve says at Ctrl-C that it stops, and leaves the terminal as it was", async () => {
    const { program } = await serve();
    program.press(KEYS.interrupt);
    expect(await program.status).toBe(0);
    const { screen } = program;
    expect(screen.rows().findLast((row) => row !== "")).toEndWith(
      "stopping: running streams may finish, a second signal ends them",
    );
    expect(screen.cursor).toMatchObject({ column: 0, isShown: true });
    expect(screen.isOther).toBe(false);
  });

  test("serve lets running streams finish when its window is closed", async () => {
    const { program, address } = await serve();
    const answer = await ask(address, { model: "demo-words-20_pace-20" });
    program.hangUp();
    expect(await answer.text()).toContain("message_stop");
    await program.status;
    expect(readLedger(folder.join("ledger.jsonl"))).toMatchObject([
      { outcome: "complete", usage: { output: 20 } },
    ]);
  });

  test("serve uses no colour with NO_COLOR", async () => {
    const coloured = await serve();
    await finish(ask(coloured.address));
    await coloured.program.until("claude-haiku");
    expect(coloured.program.screen.hasColour).toBe(true);
    coloured.program.signal("SIGTERM");
    await coloured.program.status;
    const plain = await serve({ env: { NO_COLOR: "1" } });
    await finish(ask(plain.address, { key: "sk-wrong" }));
    await plain.program.until("refused");
    expect(plain.program.screen.hasColour).toBe(false);
  });
});

describe("gateway serve into a pipe", () => {
  async function servePiped(...args: string[]) {
    const child = Bun.spawn([...PROGRAM, "serve", ...args], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", GATEWAY_CONFIG: folder.join("gateway.yaml") },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    let said = "";
    const all = { stdout: "", stderr: "" };
    const ready = Promise.withResolvers<string>();
    const read = async (name: keyof typeof all): Promise<void> => {
      for await (const chunk of child[name]) {
        const text = new TextDecoder().decode(chunk);
        all[name] += text;
        said += text;
        if (addressOf(said) !== "") ready.resolve(addressOf(said));
      }
    };
    const ended = Promise.all([read("stdout"), read("stderr")]);
    return {
      address: await ready.promise,
      stop: async () => {
        child.kill("SIGTERM");
        await Promise.all([child.exited, ended]);
        return all;
      },
    };
  }

  test("serve writes the same columns into a pipe, one line for each request, without escapes", async () => {
    const { address, stop } = await servePiped();
    await finish(ask(address));
    await finish(ask(address, { key: "sk-wrong" }));
    const { stdout, stderr } = await stop();
    expect(stdout + stderr).not.toContain("\u001B");
    const [head = "", ...lines] = stdout.slice(stdout.indexOf("TIME ")).trimEnd().split("\n");
    expect(head).toMatch(/^TIME +ID .* FIRST +TOOK +IN +CACHED +OUT +CHARGE +TODAY$/);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain("401");
    expect(lines[1]).toContain("refused: This gateway does not know this key.");
    for (const line of lines) expect(line.slice(0, head.length)).toMatch(/ \$\d+\.\d{6}$/);
  });

  test("serve --log json writes nothing but JSON objects to stdout", async () => {
    const { address, stop } = await servePiped("--log", "json");
    await finish(ask(address));
    await finish(ask(address, { key: "sk-wrong" }));
    const { stdout } = await stop();
    const records = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(records.map(({ status }) => status)).toEqual([200, 401]);
    const [line] = readLedger(folder.join("ledger.jsonl"));
    const { id, time, key, endpoint, usage, charge_usd, first_byte_ms, duration_ms } = records[0];
    expect(line).toMatchObject({ id, time, key, endpoint, usage, charge_usd, first_byte_ms });
    expect(duration_ms).toBeGreaterThanOrEqual(first_byte_ms);
  });
});

test("gateway serve continues when the reader of its log has left", async () => {
  const out = folder.join("out");
  const line = '{ "$@" serve 3>&-; echo "ended with $?" >&3; } 3>"$OUT" | head -1 > "$ADDRESS"';
  const shell = Bun.spawn(["sh", "-c", line, "sh", ...PROGRAM], {
    cwd: folder.path,
    env: {
      PATH: process.env["PATH"] ?? "",
      GATEWAY_CONFIG: folder.join("gateway.yaml"),
      OUT: out,
      ADDRESS: folder.join("address"),
    },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "ignore",
  });
  let address = "";
  while (address === "") {
    await Bun.sleep(5);
    if (existsSync(folder.join("address"))) address = addressOf(readFileSync(folder.join("address"), "utf8"));
  }
  for (let count = 0; count < 3; count += 1) expect((await ask(address)).status).toBe(200);
  const { pid } = gatewayStateSchema.parse(await askGateway(folder.join("ledger.jsonl"), "GET", "/state"));
  process.kill(pid, "SIGTERM");
  await shell.exited;
  expect(readFileSync(out, "utf8")).toBe("ended with 0\n");
});

test.skipIf(!existsSync("/dev/full"))(
  "gateway serve continues when the disk of its log is full",
  async () => {
    const child = Bun.spawn([...PROGRAM, "serve"], {
      cwd: folder.path,
      env: { PATH: process.env["PATH"] ?? "", GATEWAY_CONFIG: folder.join("gateway.yaml") },
      stdin: "ignore",
      stdout: Bun.file("/dev/full"),
      stderr: "pipe",
    });
    const ledger = folder.join("ledger.jsonl");
    const { address } = gatewayStateSchema.parse(await untilAnswers(ledger));
    const url = `http://127.0.0.1:${address.port}`;
    for (let count = 0; count < 3; count += 1) expect(await finish(ask(url))).toContain("message_stop");
    child.kill("SIGTERM");
    const stderr = await child.stderr.text();
    expect(stderr).toBe(
      "gateway: cannot write to stdout: ENOSPC: no space left on device, write.\n" +
        "stopping: running streams may finish, a second signal ends them\n",
    );
    expect(await child.exited).toBe(0);
  },
);

async function untilAnswers(ledger: string): Promise<unknown> {
  for (;;) {
    const state = await tryGateway({ ledgerPath: ledger }, "GET", "/state");
    if (state !== null) return state;
    await Bun.sleep(5);
  }
}

test("a line of the log leads to its request, and counts all input with the cached share", async () => {
  const { program, address } = await serve({ columns: 160 });
  const messages = [
    {
      role: "user",
      content: [{ type: "text", text: "Hello ".repeat(500), cache_control: { type: "ephemeral" } }],
    },
  ];
  for (let count = 1; count <= 2; count += 1) {
    await finish(
      ask(address, { body: JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 64, messages }) }),
    );
    await program.until((rows) => rows.filter((row) => row.includes("claude-haiku")).length === count);
  }
  for (const [index, row] of program.screen
    .rows()
    .filter((each) => each.includes("claude-haiku"))
    .entries()) {
    const [, short = ""] = /^\S+ +(\w+) /.exec(row) ?? [];
    const shown = await run({ folder: folder.path }, "ledger", "show", short, "--json");
    const line = readLedger(folder.join("ledger.jsonl"))[index];
    expect(JSON.parse(shown.stdout).line.id).toBe(line?.["id"]);
    const { input = 0, cache_read = 0, cache_write_5m = 0 } = JSON.parse(shown.stdout).line.usage;
    const all = input + cache_read + cache_write_5m;
    const share = cache_read === 0 ? "" : ` +${Math.floor((cache_read / all) * 100)}%`;
    expect(row).toMatch(new RegExp(` ${all}${share} `));
  }
});

test("gateway serve warns if there are no keys", async () => {
  using folder = makeTempFolder();
  writeFileSync(folder.join("gateway.yaml"), "listen: { port: 0 }", { mode: 0o600 });
  const screen = runOnTerminal({ folder: folder.path }, "serve");
  await screen.shows("there are no keys yet. Create one with `gateway keys add`");
  screen.press(KEYS.interrupt);
  expect(await screen.status).toBe(0);
});

describe("gateway serve without a config file", () => {
  test("offers to write one on a terminal, and serves it", async () => {
    using empty = makeTempFolder();
    const env = { ANTHROPIC_API_KEY: "not-a-real-credential" };
    const screen = runOnTerminal(
      { folder: empty.path, env: { ...env, HOME: empty.path, GATEWAY_CONFIG: "" } },
      "serve",
      "--port",
      "0",
    );
    await screen.shows("There is no config file yet.");
    screen.press(KEYS.enter);
    await screen.shows("Which platforms do you use?");
    screen.press(KEYS.enter);
    await screen.shows("gateway is ready on http://127.0.0.1:");
    screen.press(KEYS.interrupt);
    expect(await screen.status).toBe(0);
  });

  test("names init without a terminal", async () => {
    using empty = makeTempFolder();
    const { status, stderr } = await run({ folder: empty.path, env: { GATEWAY_CONFIG: "" } }, "serve");
    expect(status).toBe(2);
    expect(stderr).toContain("Write one with `gateway init`");
  });
});
