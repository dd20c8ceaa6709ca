// Tests how a gateway ends: by signals, in the grace period, at a second signal, and if nobody reads its output.

import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { describe, expect, onTestFinished, test } from "bun:test";
import { startDemoUpstream, type DemoUpstream, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, rawRequest, type RequestLines, writeRequest } from "../../harness/raw.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";
import { DIALECTS, openOwnWorld, makeRequest } from "../world.ts";
import { PROGRAM } from "../../harness/program.ts";

interface Served {
  readonly upstream: DemoUpstream;
  readonly gateway: ChildGateway;
}

async function openGateway(): Promise<Served> {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const gateway = await startGateway({ config: makeConfig(upstream) });
  for (const part of [gateway, upstream]) onTestFinished(() => part.stop());
  return { upstream, gateway };
}

async function begin({ gateway }: Served, request: RequestLines) {
  const client = await openRaw(gateway.port);
  client.send(writeRequest(request));
  return client;
}

/** Sends the signal, and waits until the gateway reports it. */
async function signal(gateway: ChildGateway, name: "SIGINT" | "SIGTERM"): Promise<void> {
  gateway.signal(name);
  while (!gateway.stderr().includes("stopping")) await Bun.sleep(1);
}

test.skipIf(process.platform !== "linux")(
  "a gateway's process has the variables BUN_JSC_useFTLJIT and MIMALLOC_PURGE_DELAY",
  async () => {
    const { gateway } = await openGateway();
    const environment = readFileSync(`/proc/${gateway.pid}/environ`, "utf8").split("\0");
    expect(environment).toContain("BUN_JSC_useFTLJIT=0");
    expect(environment).toContain("MIMALLOC_PURGE_DELAY=1000");
  },
);

describe.each(["SIGINT", "SIGTERM"] as const)("a gateway that gets %s", (name) => {
  test("P98: a gateway that gets a signal lets running requests finish, accepts no new ones, and exits with 0", async () => {
    const served = await openGateway();
    const { upstream, gateway } = served;
    const [early, middle] = [makeGate(), makeGate()];
    upstream.next({ gates: { [-1]: early } }, { gates: { 6: middle } });
    const waiting = await begin(served, makeRequest("messages"));
    await early.reached;
    const streaming = await begin(served, makeRequest("messages", true));
    await streaming.until("text_delta");
    const idle = await begin(served, { target: "/healthz" });
    await idle.until("status");
    await signal(gateway, name);
    expect(await idle.ended).toBe("fin");
    expect(
      await openRaw(gateway.port).then(
        () => "taken in",
        () => "refused",
      ),
    ).toBe("refused");
    early.open();
    middle.open();
    await waiting.until("usage");
    await streaming.until("message_stop");
    expect(await gateway.exited).toBe(0);
    for (const client of [waiting, streaming]) {
      expect(await client.ended).toBe("fin");
      expect(parseAnswer(client.bytes())).toMatchObject({ status: 200, complete: true });
    }
    expect(gateway.ledger()).toMatchObject([
      { outcome: "complete", basis: "exact" },
      { outcome: "complete", basis: "exact" },
    ]);
  });

  test("a second signal ends the gateway at once, and every request has its line", async () => {
    const served = await openGateway();
    const { upstream, gateway } = served;
    const clients = [];
    for (const dialect of DIALECTS) {
      const [early, middle] = [makeGate(), makeGate()];
      upstream.next({ gates: { [-1]: early } }, { gates: { 8: middle } });
      clients.push(await begin(served, makeRequest(dialect)));
      await early.reached;
      const streaming = await begin(served, makeRequest(dialect, true));
      await streaming.until("said");
      clients.push(streaming);
    }
    await signal(gateway, name);
    expect(gateway.ledger()).toEqual([]);
    gateway.signal(name);
    expect(await gateway.exited).toBe(0);
    for (const client of clients) {
      await client.ended;
      expect(parseAnswer(client.bytes())?.complete ?? false).toBe(false);
    }
    // The gateway did not take the second signal for a first one: it says `stopping` once.
    expect(gateway.stderr().split("stopping: ")).toHaveLength(2);
    const lines = gateway.ledger();
    expect(lines).toHaveLength(clients.length);
    expect(new Set(lines.map((line) => line["id"])).size).toBe(clients.length);
    const reported = lines.map((line) => [line["outcome"], line["stream"], line["basis"]].join(" "));
    expect(new Set(reported)).toEqual(new Set(["interrupted false unknown", "interrupted true partial"]));
  });
});

test("P98: streams that outlast the grace period are ended", async () => {
  const world = openOwnWorld();
  world.upstream.next("stall", "never-answer");
  const streaming = await world.begin(makeRequest("messages", true));
  await streaming.client.until("text_delta");
  const waiting = await world.begin(makeRequest("responses"));
  await world.upstream.received(1);
  const stopped = world.gateway.running.stop(20);
  expect([await world.upstream.ended(0), await world.upstream.ended(1)]).toEqual(["left", "left"]);
  await stopped;
  expect(parseAnswer(streaming.client.bytes())?.complete).toBe(false);
  expect(await waiting.client.ended).toBeDefined();
  const lines = world.gateway.ledger();
  expect(lines.map((line) => line["outcome"])).toEqual(["interrupted", "interrupted"]);
});

describe("a gateway whose output nobody reads still ends with status 0", () => {
  test.skipIf(!existsSync("/dev/full"))("a gateway whose log disk is full ends with status 0", async () => {
    using folder = makeTempFolder();
    const child = serveTo(folder, "pipe", Bun.file("/dev/full"));
    const out = child.stdout instanceof ReadableStream ? child.stdout : null;
    await portIn(out);
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
  });

  test.skipIf(Bun.which("mkfifo") === null)(
    "a gateway ends with status 0 if its log is no longer read",
    async () => {
      using folder = makeTempFolder();
      Bun.spawnSync(["mkfifo", folder.join("log")]);
      const log = openSync(folder.join("log"), "r+");
      const child = serveTo(folder, log, "pipe");
      const err = child.stderr instanceof ReadableStream ? child.stderr : null;
      const port = await portIn(err);
      // With so many requests, the log gets longer than a pipe can hold.
      for (let asked = 0; asked < 400; asked += 1) await rawRequest(port, makeRequest("messages"));
      child.kill("SIGTERM");
      expect(await child.exited).toBe(0);
      closeSync(log);
    },
  );
});

type Sink = "pipe" | number | ReturnType<typeof Bun.file>;

function serveTo(folder: TempFolder, stdout: Sink, stderr: Sink): Bun.Subprocess {
  const upstream = { url: "http://127.0.0.1:9" };
  const config = folder.join("gateway.yaml");
  writeFileSync(config, JSON.stringify({ listen: { port: 0 }, ...makeConfig(upstream) }), { mode: 0o600 });
  const log = stdout === "pipe" ? "text" : "json";
  return Bun.spawn([...PROGRAM, "serve", "--config", config, "--log", log], {
    stdin: "ignore",
    stdout,
    stderr,
    // This kills only a gateway that hangs. It is so long because a busy machine is slow.
    timeout: 55_000,
    killSignal: "SIGKILL",
  });
}

/** Returns the port in the gateway's address, once it is ready. */
async function portIn(words: ReadableStream<Uint8Array> | null): Promise<number> {
  let text = "";
  for await (const chunk of words ?? []) {
    text += Buffer.from(chunk).toString();
    const port = /ready on http:\/\/[^\s]*:(\d+)/.exec(text)?.[1];
    if (port !== undefined) return Number(port);
  }
  throw new Error(`it never said that it is ready: ${text}`);
}
