import { PLATFORMS } from "../../../src/config/schema.ts";
import { afterEach, expect, test } from "bun:test";
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { askGateway, tryGateway } from "../../../src/cli/access/control.ts";
import { isPrivate, locateControl } from "../../../src/gateway/control/socket.ts";
import { gatewayStateSchema } from "../../../src/gateway/control/state.ts";
import { type InsideGateway, makeConfig, startGatewayHere } from "../../harness/gateway.ts";
import { expectMode, makeTempFolder } from "../../harness/temp.ts";

const UPSTREAM = { url: "http://127.0.0.1:9" };

let gateway: InsideGateway | null = null;
afterEach(async () => {
  await gateway?.stop();
  gateway = null;
});

function start(): string {
  gateway = startGatewayHere({ config: makeConfig(UPSTREAM) });
  return gateway.running.gateway.catalog.ledger.path;
}

test("a running gateway shows its state without a secret", async () => {
  const ledger = start();
  const answered = await askGateway(ledger, "GET", "/state");
  const state = gatewayStateSchema.parse(answered);
  expect(state).toMatchObject({ pid: process.pid, ledger: { path: ledger, problem: null }, streams: [] });
  expect(state.channels.map(({ name }) => name)).toEqual([...PLATFORMS]);
  expect(state.spend).toMatchObject({ today_usd: "0", by_key: { messages: "0" } });
  expect(JSON.stringify(answered)).not.toContain("sk-test");
  expect(JSON.stringify(answered)).not.toContain("credential");
});

test("only this user can use its socket", () => {
  const [socket] = locateControl(start());
  const { folder, path } = socket!;
  expectMode(folder, 0o700);
  expectMode(path, 0o600);
});

test("without a running gateway, the command says so", async () => {
  const ledger = start();
  await gateway?.stop();
  gateway = null;
  expect(await tryGateway({ ledgerPath: ledger }, "GET", "/state")).toBeNull();
  const failure = await askGateway(ledger, "GET", "/state").catch(String);
  expect(failure).toContain("No gateway is running for this config");
});

test("the socket of a dead gateway is replaced", async () => {
  using folder = makeTempFolder();
  const [socket] = locateControl(folder.join("ledger.jsonl"));
  const { path } = socket!;
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, "");
  expect(await tryGateway({ ledgerPath: folder.join("ledger.jsonl") }, "GET", "/state")).toBeNull();
  gateway = startGatewayHere({ config: makeConfig(UPSTREAM), folder });
  expect(await askGateway(folder.join("ledger.jsonl"), "GET", "/state")).toMatchObject({ pid: process.pid });
});

test("for a suspended gateway, the command says so and does not wait", async () => {
  using folder = makeTempFolder();
  const ledgerPath = folder.join("ledger.jsonl");
  const [socket] = locateControl(ledgerPath);
  mkdirSync(dirname(socket!.path), { recursive: true, mode: 0o700 });
  const still = Bun.listen({ unix: socket!.path, socket: { data() {} } });
  const failure = await tryGateway({ ledgerPath, timeoutMs: 50 }, "GET", "/state").catch(String);
  still.stop(true);
  expect(failure).toContain("The running gateway does not answer. It may be suspended");
});

test("a socket that is removed, for example at logout, is opened again", async () => {
  const ledgerPath = start();
  const [socket] = locateControl(ledgerPath);
  rmSync(socket!.path);
  expect(await tryGateway({ ledgerPath }, "GET", "/state")).toBeNull();
  let state: unknown = null;
  while (state === null) {
    await Bun.sleep(5);
    state = await tryGateway({ ledgerPath }, "GET", "/state");
  }
  expect(state).toMatchObject({ pid: process.pid });
});

test("a link, or a folder that others can write to, is not trusted", () => {
  using folder = makeTempFolder();
  mkdirSync(folder.join("open"), { mode: 0o755 });
  mkdirSync(folder.join("closed"), { mode: 0o700 });
  symlinkSync(folder.join("closed"), folder.join("link"));
  const trusted = ["open", "link", "none", "closed"].filter((name) => isPrivate(folder.join(name)));
  expect(trusted).toEqual(["closed"]);
});

test("commands send nothing to a socket in such a folder", async () => {
  using folder = makeTempFolder();
  const ledgerPath = folder.join("ledger.jsonl");
  const [socket] = locateControl(ledgerPath);
  mkdirSync(dirname(socket!.path), { recursive: true, mode: 0o700 });
  let calls = 0;
  const foreign = Bun.serve({
    unix: socket!.path,
    fetch: () => {
      calls += 1;
      return Response.json({ pid: 1 });
    },
  });
  const ask = (): Promise<unknown> => tryGateway({ ledgerPath }, "GET", "/state");
  expect(await ask()).toEqual({ pid: 1 });
  chmodSync(socket!.folder, 0o777);
  expect(await ask()).toBeNull();
  chmodSync(socket!.folder, 0o700);
  await foreign.stop(true);
  expect(calls).toBe(1);
});

test("an unknown channel is reported with the nearest known name", async () => {
  const ledger = start();
  const failure = await askGateway(ledger, "POST", "/channels/mesages/disable").catch(String);
  expect(failure).toContain('There is no channel "mesages" (did you mean "messages"?).');
});
