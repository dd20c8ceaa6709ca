import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { gatewayStateSchema } from "../../../src/gateway/control/state.ts";
import { passMidnight } from "../../harness/day.ts";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { KEYS, run } from "../driving.ts";
import { type Watched, watch } from "../../harness/terminal/watching.ts";

let folder: TempFolder;
let upstream: DemoUpstream;
let gateway: ChildGateway;
/** Nobody may forget it: a stream that is collected is left. */
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

/** One gateway for all: with two spenders, a refusal and a stream that stays open. */
beforeAll(async () => {
  await passMidnight();
  folder = makeTempFolder();
  upstream = startDemoUpstream();
  gateway = await startGateway({ config: makeConfig(upstream), folder });
  for (const model of ["claude-sonnet-4-5", "claude-haiku-4-5"]) await (await ask("messages", model)).text();
  await (await ask("relay", "claude-haiku-4-5", "/relay/v1/messages")).text();
  await (await fetch(`${gateway.url}/v1/messages`, { method: "POST", body: "{}" })).text();
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

describe("gateway top on a terminal", () => {
  test("shows open streams, the spend of each key as bars, and recent requests", async () => {
    const { screen, until } = top({ columns: 120 });
    await until("q: quit");
    const rows = screen.rows();
    expect(rows[0]).toMatch(/^gateway on 127\.0\.0\.1:\d+ · up [\dhms ]+ · 4 requests, 0 failed, 1 refused$/);
    expect(rows[1]).toMatch(/^1 open stream · \d+ tokens\/s · \$[\d.]+ today$/);
    const [, , stream = ""] = rows.slice(rows.indexOf("Open streams"));
    expect(stream).toMatch(/^messages +claude-opus-4-1 +messages +\w{9} +~\w{8} +[\dhms ]+ +\d+$/);
    const [, most = "", less = ""] = rows.slice(rows.indexOf("Spent today, by key"));
    expect(most).toMatch(/^messages +\$0\.\d+ +█{99}$/);
    expect(less).toMatch(/^relay +\$0\.\d+ +█+[▏▎▍▌▋▊▉]?$/);
    const [, head = "", last = "", before = ""] = rows.slice(rows.indexOf("Recent requests"));
    expect(head).toStartWith("TIME ");
    expect(last).toContain(" 401 ");
    expect(before).toMatch(/ relay +claude-haiku-4-5 +relay +200 /);
    expect(screen.isOther).toBe(true);
    expect(screen.cursor.isShown).toBe(false);
  });

  test("fits whatever the terminal is resized to", async () => {
    const { screen, until, resize } = top();
    await until("q: quit");
    for (const [columns, rows] of [
      [40, 12],
      [20, 5],
      [200, 50],
      [40, 1],
      [60, 24],
    ] as const) {
      resize(columns, rows);
      await until((seen) => seen.at(-1) === "q: quit" && (seen[0]?.length ?? 0) <= columns);
      for (const row of screen.rows()) expect(Bun.stringWidth(row)).toBeLessThanOrEqual(columns);
      expect(screen.rows()).toHaveLength(rows);
    }
    expect(screen.rows().join("\n")).toContain("claude-opus-4-1");
  });

  test.each([60, 61, 80, 120])("loses no digit and no cell at the edge of %p columns", async (columns) => {
    const { screen, until } = top({ columns });
    await until("q: quit");
    const rows = screen.rows();
    const [, most = ""] = rows.slice(rows.indexOf("Spent today, by key"));
    expect(Bun.stringWidth(most)).toBe(columns);
    const amounts = rows.flatMap((row) => row.match(/\$[\d.]+/g) ?? []);
    expect(amounts.length).toBeGreaterThan(4);
    for (const amount of amounts) expect(amount).toMatch(/^\$\d+\.\d{6}$/);
  });

  test("sees what comes while it runs", async () => {
    const { until } = top();
    await until("q: quit");
    await (await fetch(`${gateway.url}/v1/nothing`)).text();
    await until("2 refused");
  });

  test.each([
    ["q", (program: Watched) => program.press("\u001B[A\u001B[Bxq")],
    ["Ctrl-C", (program: Watched) => program.press(`x${KEYS.interrupt}`)],
    ["SIGTERM", (program: Watched) => program.signal("SIGTERM")],
  ] as const)("leaves the terminal as it was at %s", async (_, leave) => {
    const program = top();
    await program.until("q: quit");
    leave(program);
    expect(await program.status).toBe(0);
    expect(program.screen.isOther).toBe(false);
    expect(program.screen.cursor).toMatchObject({ row: 0, column: 0, isShown: true });
    expect(program.screen.rows().join("")).toBe("");
  });

  test("uses no colour with NO_COLOR", async () => {
    const { screen, until } = top({ env: { NO_COLOR: "1" } });
    await until("q: quit");
    expect(screen.hasColour).toBe(false);
  });

  test("says when the gateway has stopped, and continues when it is back", async () => {
    using own = makeTempFolder();
    const config = makeConfig(upstream);
    const first = await startGateway({ config, folder: own });
    const { until } = top({}, "--ledger", own.join("ledger.jsonl"));
    await until("q: quit");
    await first.stop();
    await until("The gateway has stopped.");
    const second = await startGateway({ config, folder: own });
    await until((rows) => rows.at(-1) === "q: quit");
    await second.stop();
  });
});

describe("gateway top elsewhere", () => {
  test("prints the state once, without escapes", async () => {
    const { status, stdout } = await run({ folder: folder.path }, "top");
    expect(status).toBe(0);
    expect(stdout).not.toContain("\u001B");
    expect(stdout).toMatch(/^messages +claude-opus-4-1 +messages +\w{9} +~\w{8} +[\dhms ]+ +\d+$/m);
    expect(stdout).toMatch(/^relay +\$0\.\d+ +█/m);
    expect(stdout).toContain("refused: ");
    expect(stdout).not.toContain("q: quit");
  });

  test("stands in columns from the first row on", async () => {
    const { stdout } = await run({ folder: folder.path }, "top");
    const [, section = ""] = stdout.split("Recent requests\n");
    const [head = "", ...rows] = section.trimEnd().split("\n");
    const statuses = rows.map((row) => row.slice(head.indexOf("STATUS"), head.indexOf("STATUS") + 3));
    expect(statuses).toEqual(rows.map(() => expect.stringMatching(/^\d{3}$/)));
    expect(rows.length).toBeGreaterThan(2);
  });

  test("prints the same as one JSON document", async () => {
    const { status, stdout } = await run({ folder: folder.path }, "top", "--json");
    expect(status).toBe(0);
    const state = gatewayStateSchema.unwrap().omit({ recent: true }).parse(JSON.parse(stdout));
    expect(state.streams).toMatchObject([{ key: "messages", model: "claude-opus-4-1" }]);
    expect(JSON.parse(stdout).recent[0]).toMatchObject({ charge_usd: expect.stringMatching(/^0\.\d+$/) });
  });

  test("fails if no gateway is running", async () => {
    using empty = makeTempFolder();
    writeFileSync(empty.join("gateway.yaml"), JSON.stringify(makeConfig(upstream)), { mode: 0o600 });
    const { status, stdout, stderr } = await run({ folder: empty.path }, "top");
    expect({ status, stdout }).toEqual({ status: 1, stdout: "" });
    expect(stderr).toBe("gateway: No gateway is running for this config. Start it with `gateway serve`.\n");
    const named = await run({ folder: empty.path }, "top", "--ledger", "other.jsonl");
    expect(named.stderr).toBe(`gateway: No gateway is running on the ledger ${empty.join("other.jsonl")}.\n`);
  });
});
