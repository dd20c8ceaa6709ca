// `gateway export` and `otlp:` with real commands, a gateway and a receiver.

import { writeFileSync } from "node:fs";
import { join } from "node:path";

import { afterAll, beforeAll, describe, expect, test } from "bun:test";

import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../../harness/gateway.ts";
import { makeSweptFolder } from "../../../harness/temp.ts";
import { type DemoUpstream, startDemoUpstream } from "../../../harness/upstreams/demo-upstream.ts";
import { run, writeLedger } from "../ledger/ledger-runs.ts";

const PATH = writeLedger([
  { id: "req_1", time: "2026-11-19T10:00:00.000Z", client: { tool: "=cmd", session: "s-1" } },
  { id: "req_2", time: "2026-11-20T10:00:00.000Z", provider_usd: "0.02" },
  { id: "req_3", time: "2026-11-21T10:00:00.000Z" },
]);

describe("gateway export", () => {
  test("csv has a row for each request of the period, and no cell is a formula", async () => {
    const period = ["--since", "2026-11-19", "--until", "2026-11-20"];
    const { stdout, status } = await run("export", "csv", ...period, "--ledger", PATH);
    expect(status).toBe(0);
    const [head = "", ...rows] = stdout.trimEnd().split("\n");
    const names = head.split(",");
    const cells = rows.map((row) => row.split(","));
    expect(cells.map((row) => row[names.indexOf("id")])).toEqual(["req_1", "req_2"]);
    expect(cells.map((row) => row.length)).toEqual([names.length, names.length]);
    expect(cells[0]?.[names.indexOf("tool")]).toBe(`"'=cmd"`);
    expect(cells[1]?.[names.indexOf("provider_usd")]).toBe("0.02");
    expect(cells[1]?.[names.indexOf("cache_read")]).toBe("11000");
  });

  test("otlp --print writes what a receiver would get", async () => {
    const { stdout } = await run("export", "otlp", "2026-11-20", "--print", "--ledger", PATH);
    const { resourceSpans } = JSON.parse(stdout);
    expect(resourceSpans[0].scopeSpans[0].spans).toHaveLength(1);
    expect(stdout).toContain('{"key":"gateway.request.id","value":{"stringValue":"req_2"}}');
  });

  test("otlp without a receiver says what to add", async () => {
    const config = join(makeSweptFolder(), "gateway.yaml");
    writeFileSync(config, "keys: []\n", { mode: 0o600 });
    const { stderr, status } = await run("export", "otlp", "--config", config, "--ledger", PATH);
    expect(status).toBe(1);
    expect(stderr).toContain("Add `otlp: { url: http://127.0.0.1:4318/v1/traces }` to the config");
  });
});

describe("a gateway with a receiver", () => {
  const PARENT = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
  const arrived = Promise.withResolvers<string>();
  let upstream: DemoUpstream;
  let receiver: ReturnType<typeof Bun.serve>;
  let gateway: ChildGateway;
  beforeAll(async () => {
    upstream = startDemoUpstream();
    receiver = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        arrived.resolve(`${request.headers.get("authorization")} ${await request.text()}`);
        return Response.json({});
      },
    });
    const otlp = {
      url: `http://127.0.0.1:${receiver.port}`,
      headers: { authorization: "Bearer of-the-receiver" },
    };
    gateway = await startGateway({ config: makeConfig(upstream, { otlp }) });
  });
  afterAll(async () => {
    await gateway.stop();
    await receiver.stop(true);
    upstream.stop();
  });

  test("sends it each line, in the client's trace, without the key's secret, and the log does not hold its credential", async () => {
    const answer = await fetch(`${gateway.url}/v1/messages`, {
      method: "POST",
      headers: { "x-api-key": keyOf("messages"), traceparent: PARENT },
      body: JSON.stringify({
        model: "claude-haiku-4-5",
        max_tokens: 16,
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    expect(answer.status).toBe(200);
    await answer.text();
    const text = await arrived.promise;
    expect(text).toStartWith("Bearer of-the-receiver ");
    expect(text).toContain(`"traceId":"${"a".repeat(32)}"`);
    expect(text).not.toContain(keyOf("messages"));
    expect(gateway.ledger()[0]).toMatchObject({ traceparent: PARENT });
  });
});
