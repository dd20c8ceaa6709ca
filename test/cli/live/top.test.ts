import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { passMidnight } from "../../harness/day.ts";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run } from "../driving.ts";
import { type Watched, watch } from "../../harness/terminal/watching.ts";

let folder: TempFolder;
let upstream: DemoUpstream;
let gateway: ChildGateway;
/** The response is kept, because a client disconnects when its response is garbage-collected. */
let held: Response;
const leaving = new AbortController();

const ask = (platform: "messages" | "relay", model: string, path = "/v1/messages"): Promise<Response> =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { "x-api-key": keyOf(platform), "content-type": "application/json" },
    body: JSON.stringify({
      model,
      max_tokens: 64,
      stream: true,
      messages: [{ role: "user", content: "Hello" }],
    }),
    signal: leaving.signal,
  });

/** One gateway for all tests: with two spenders, a refusal and a stream that never ends. */
beforeAll(async () => {
  await passMidnight();
  folder = makeTempFolder();
  upstream = startDemoUpstream();
  gateway = await startGateway({ config: makeConfig(upstream), folder });
  for (const model of ["claude-sonnet-4-5", "claude-haiku-4-5"]) await (await ask("messages", model)).text();
  await (await ask("relay", "claude-haiku-4-5", "/relay/v1/messages")).text();
  await (await fetch(`${gateway.url}/v1/messages`, { method: "POST", body: "{}" })).text();
  await (await fetch(`${gateway.url}/v1/models`, { headers: { "x-api-key": keyOf("messages") } })).text();
  upstream.next("stall");
  held = await ask("messages", "claude-opus-4-1");
});
afterAll(async () => {
  leaving.abort();
  expect(held.status).toBe(200);
  await gateway.stop();
  upstream.stop();
  folder.remove();
});

const ENDS = "Ctrl-C ends it.";

let opened: Watched[] = [];
afterEach(async () => {
  for (const program of opened) {
    program.signal("SIGKILL");
    await program.status;
  }
  opened = [];
});

function top(
  size: { columns?: number; rows?: number; env?: Record<string, string> } = {},
  ...args: string[]
): Watched {
  const program = watch({ folder: folder.path, ...size }, "top", ...args);
  opened.push(program);
  return program;
}

describe("`gateway top` fills a terminal, and follows the gateway", () => {
  test("`top` shows what runs, and one table of requests, the open ones first", async () => {
    const { screen, until } = top({ columns: 140 });
    await until(ENDS);
    const rows = screen.rows();
    expect(rows[0]).toMatch(
      /^gateway on 127\.0\.0\.1:\d+ · up [\dhms ]+ · 4 requests, 0 failed, 1 refused · 1 open stream · \$[\d.]+ today$/,
    );
    const at = rows.findIndex((row) => row.startsWith("TIME "));
    const [open = "", last = "", before = ""] = rows.slice(at + 1);
    expect(open).toMatch(/ messages +claude-opus-4-1 +messages .* open /);
    expect(last).toContain(" 401 ");
    expect(before).toMatch(/ relay +claude-haiku-4-5 +relay .* 200 .*\$0\.\d{6}/);
  });

  test("`top` fits any size that the terminal is changed to", async () => {
    const { screen, until, resize } = top();
    await until(ENDS);
    for (const [columns, rows] of [
      [40, 12],
      [20, 5],
      [200, 50],
      [60, 24],
    ] as const) {
      resize(columns, rows);
      await until(
        (seen) => seen.some((row) => row.startsWith(ENDS)) && (seen[0] ?? "").startsWith("gateway on"),
      );
      for (const row of screen.rows()) expect(Bun.stringWidth(row)).toBeLessThanOrEqual(columns);
    }
    expect(screen.rows().join("\n")).toContain("claude-opus-4-1");
  });

  test.each([60, 61, 80, 120])("`top` loses no digit of an amount at %p columns", async (columns) => {
    const { screen, until } = top({ columns });
    await until(ENDS);
    const rows = screen.rows();
    const table = rows.slice(rows.findIndex((row) => row.includes("STATUS")));
    const amounts = table.flatMap((row) => row.match(/\$[\d.]+/g) ?? []);
    expect(amounts.length).toBeGreaterThan(2);
    for (const amount of amounts) expect(amount).toMatch(/^\$\d+\.\d{6}$/);
  });

  test("`top` shows requests that come while it runs", async () => {
    const { until } = top({ columns: 120 });
    await until(ENDS);
    await (await fetch(`${gateway.url}/v1/nothing`)).text();
    await until("2 refused");
  });

  test("`top` ends at Ctrl-C with status 0, with the cursor below what it showed", async () => {
    const program = top();
    await program.until(ENDS);
    program.press(KEYS.interrupt);
    expect(await program.status).toBe(0);
    expect(program.screen.isOther).toBe(false);
    expect(program.screen.cursor).toMatchObject({ column: 0, isShown: true });
  });

  test("P30: `top` uses no colour with NO_COLOR", async () => {
    const { screen, until } = top({ env: { NO_COLOR: "1" } });
    await until(ENDS);
    expect(screen.hasColour).toBe(false);
  });

  test("`top` says when the gateway has stopped, and continues when it is back", async () => {
    using own = makeTempFolder();
    const config = makeConfig(upstream);
    const first = await startGateway({ config, folder: own });
    const { until } = top({}, "--ledger", own.join("ledger.jsonl"));
    await until(ENDS);
    await first.stop();
    await until("The gateway has stopped.");
    const second = await startGateway({ config, folder: own });
    await until((rows) => !rows.join().includes("has stopped"));
    await second.stop();
  });
});

describe("`gateway top` prints once in scripts", () => {
  test("top without a terminal prints the state once, without escapes", async () => {
    const { status, stdout } = await run({ folder: folder.path }, "top");
    expect(status).toBe(0);
    expect(stdout).not.toContain("\u001B");
    expect(stdout).toMatch(/ messages +claude-opus-4-1 +messages .* open /m);
    expect(stdout).toContain("refused: ");
    expect(stdout).not.toContain(ENDS);
  });

  test("top without a terminal aligns the columns of all rows", async () => {
    const { stdout } = await run({ folder: folder.path }, "top");
    const [head = "", ...rows] = stdout.slice(stdout.indexOf("TIME ")).trimEnd().split("\n");
    const statuses = rows.map((row) => row.slice(head.indexOf("STATUS"), head.indexOf("STATUS") + 3));
    expect(statuses).toEqual(rows.map(() => expect.stringMatching(/^(?:\d{3}|ope)$/)));
    expect(rows.length).toBeGreaterThan(2);
  });

  test("`top --json` prints one JSON document, which leaves out requests for the list of models", async () => {
    const { status, stdout } = await run({ folder: folder.path }, "top", "--json");
    expect(status).toBe(0);
    const { streams, recent, totals } = JSON.parse(stdout);
    expect(JSON.stringify(recent)).not.toContain("/models");
    expect(totals.requests).toBe(recent.length);
    expect(streams).toMatchObject([{ key: "messages", model: "claude-opus-4-1" }]);
    expect(recent[0]).toMatchObject({ charge_usd: expect.stringMatching(/^0\.\d+$/) });
  });

  test("`top` fails if no gateway is running", async () => {
    using empty = makeTempFolder();
    writeFileSync(empty.join("gateway.yaml"), JSON.stringify(makeConfig(upstream)), { mode: 0o600 });
    const { status, stdout, stderr } = await run({ folder: empty.path }, "top");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe("gateway: No gateway is running for this config. Start it with `gateway serve`.\n");
    const named = await run({ folder: empty.path }, "top", "--ledger", "other.jsonl");
    expect(named.stderr).toBe(`gateway: No gateway is running on the ledger ${empty.join("other.jsonl")}.\n`);
  });
});
