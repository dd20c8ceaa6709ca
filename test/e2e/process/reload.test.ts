// A changed config file under a running gateway: it applies within a second, no
// stream is dropped, and an invalid file is reported once and changes nothing.

import { renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "bun:test";
import { askGateway } from "../../../src/cli/access/control.ts";
import { startDemoUpstream, type DemoUpstream, makeGate } from "../../harness/upstreams/demo-upstream.ts";
import {
  type ChildGateway,
  CREDENTIAL,
  keyOf,
  makeConfig,
  startGateway,
  type TestConfig,
} from "../../harness/gateway.ts";
import { openRaw, parseAnswer, rawRequest, writeRequest } from "../../harness/raw.ts";
import { bearer, makeRequest } from "../world.ts";

interface Served {
  readonly upstream: DemoUpstream;
  readonly gateway: ChildGateway;
  readonly config: TestConfig;
  /** Replaces the file, as an editor does, and waits until the gateway reports it. */
  readonly change: (next: object | string) => Promise<void>;
}

async function withGateway(
  use: (served: Served) => Promise<void>,
  more: { readonly config: object; readonly args: readonly string[] } = { config: {}, args: [] },
): Promise<void> {
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = makeConfig(upstream);
  const gateway = await startGateway({ config: { ...config, ...more.config }, args: more.args });
  const reports = (): number =>
    gateway.stderr().split(/changes are applied|the changed file is invalid/).length;
  const change = async (next: object | string): Promise<void> => {
    const before = reports();
    const text = typeof next === "string" ? next : JSON.stringify({ listen: { port: 0 }, ...next });
    writeFileSync(`${gateway.configPath}.new`, text, { mode: 0o600 });
    renameSync(`${gateway.configPath}.new`, gateway.configPath);
    while (reports() === before) await Bun.sleep(1);
  };
  try {
    await use({ upstream, gateway, config, change });
  } finally {
    await gateway.stop();
    upstream.stop();
  }
}

/** The file, with one key of its list changed. */
function changeKey(config: TestConfig, name: string, more: object): object {
  return { ...config, keys: config.keys.map((key) => (key["name"] === name ? { ...key, ...more } : key)) };
}

describe("a changed file", () => {
  test("a changed file applies to the next request and leaves running streams alone", async () => {
    await withGateway(async ({ upstream, gateway, config, change }) => {
      const gate = makeGate();
      upstream.next({ gates: { 6: gate } });
      const client = await openRaw(gateway.port);
      client.send(writeRequest(makeRequest("messages", true)));
      await client.until("text_delta");
      await change(changeKey(config, "messages", { disabled: true }));
      const refused = await rawRequest(gateway.port, makeRequest("messages"));
      expect([refused.status, JSON.parse(refused.text).error.message]).toEqual([
        401,
        expect.stringContaining("disabled"),
      ]);
      await change(changeKey(config, "messages", { group: "responses" }));
      expect((await rawRequest(gateway.port, makeRequest("messages"))).status).toBe(403);
      expect(
        (await rawRequest(gateway.port, { ...makeRequest("responses"), fields: bearer("messages") })).status,
      ).toBe(200);
      gate.open();
      await client.until("message_stop");
      expect(parseAnswer(client.bytes())?.status).toBe(200);
      await gateway.recorded(4);
      client.close();
      gateway.signal("SIGTERM");
      await gateway.exited;
      // The stream is charged to the group that it began with.
      expect(gateway.ledger().find((line) => line["stream"] === true)).toMatchObject({
        group: "messages",
        outcome: "complete",
      });
    });
  });

  test("a changed file does not change the price of a request that is being sent, nor of a running one", async () => {
    await withGateway(async ({ upstream, gateway, config, change }) => {
      const priced = (output: string) => ({
        ...config,
        prices: { "claude-haiku-4-5": { input: "1", output } },
      });
      await change(priced("2"));
      const gate = makeGate();
      upstream.next({ gates: { 6: gate } });
      const running = await openRaw(gateway.port);
      running.send(writeRequest(makeRequest("messages", true)));
      await running.until("text_delta");
      const request = writeRequest(makeRequest("messages"));
      const sending = await openRaw(gateway.port);
      sending.send(request.subarray(0, -5));
      await change(priced("999"));
      sending.send(request.subarray(-5));
      gate.open();
      await running.until("message_stop");
      await gateway.recorded(2);
      for (const client of [running, sending]) client.close();
      gateway.signal("SIGTERM");
      await gateway.exited;
      const prices = { input: "1", output: "2" };
      expect(gateway.ledger()).toMatchObject([{ prices }, { prices }]);
    });
  });

  test("a changed file brings new keys, groups, channels and prefixes", async () => {
    await withGateway(async ({ gateway, upstream, config, change }) => {
      const other = startDemoUpstream({ credential: "another-credential" });
      await change({
        ...config,
        relay_prefix: "far",
        channels: {
          ...config.channels,
          added: { platform: "messages", base_url: other.url, credential: "another-credential" },
        },
        groups: { ...config.groups, added: { platform: "messages", multiplier: "2", channels: ["added"] } },
        keys: [...config.keys, { name: "added", group: "added", secret: "sk-added" }],
      });
      const answer = await rawRequest(gateway.port, {
        ...makeRequest("messages"),
        fields: { "x-api-key": "sk-added" },
      });
      expect(answer.status).toBe(200);
      expect([other.requests.length, upstream.requests.length]).toEqual([1, 0]);
      const relayed = { ...makeRequest("messages"), fields: { "x-api-key": keyOf("relay") } };
      expect((await rawRequest(gateway.port, { ...relayed, target: "/far/v1/messages" })).status).toBe(200);
      expect((await rawRequest(gateway.port, { ...relayed, target: "/relay/v1/messages" })).status).toBe(404);
      other.stop();
    });
  });

  test("a changed address or ledger reports that a restart is needed, and keeps the old ones", async () => {
    await withGateway(async ({ gateway, config, change }) => {
      await change({ ...config, listen: { host: "127.0.0.1", port: 1 }, ledger: { path: "other.jsonl" } });
      expect(gateway.stderr()).toContain(
        "config: the changes are applied; a restart is needed for listen and ledger\n",
      );
      const state = await askGateway(join(dirname(gateway.configPath), "ledger.jsonl"), "GET", "/state");
      expect(state).toMatchObject({
        address: { port: gateway.port },
        ledger: { path: join(dirname(gateway.configPath), "ledger.jsonl") },
      });
      await change(changeKey(config, "messages", { disabled: true }));
      expect(gateway.stderr()).toEndWith("config: the changes are applied\n");
    });
  });

  test("a changed file leaves the address of --port and --host alone, and needs no restart for it", async () => {
    const served = {
      config: { listen: { host: "::1", port: 1 } },
      args: ["--host", "127.0.0.1", "--port", "0"],
    };
    await withGateway(async ({ gateway, config, change }) => {
      await change({ ...served.config, ...changeKey(config, "messages", { disabled: true }) });
      expect(gateway.stderr()).toEndWith("config: the changes are applied\n");
      expect((await rawRequest(gateway.port, makeRequest("messages"))).status).toBe(401);
    }, served);
  });
});
