// The owner hears of a limit before it is reached, and nothing waits for the owner's command.

import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { type DemoUpstream, startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { type ChildGateway, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { makeTempFolder, type TempFolder } from "../../harness/temp.ts";

let folder: TempFolder;
let upstream: DemoUpstream;
beforeEach(() => {
  folder = makeTempFolder();
  upstream = startDemoUpstream();
});
afterEach(() => {
  upstream.stop();
  folder.remove();
});

/** A limit so small that the first request crosses 80 % of it, and none is refused. */
function configWith(alerts: Record<string, unknown>, groupLimit = "100") {
  const config = makeConfig(upstream, { alerts });
  const limits = { usd_total: "0.000001" };
  return {
    ...config,
    keys: config.keys.map((key) => (key["name"] === "messages" ? { ...key, limits } : key)),
    groups: {
      ...config.groups,
      messages: { ...config.groups["messages"], limits: { usd_total: groupLimit } },
    },
  };
}

function ask(gateway: ChildGateway): Promise<Response> {
  const messages = [{ role: "user", content: "Hello" }];
  return fetch(`${gateway.url}/v1/messages`, {
    method: "POST",
    headers: { "x-api-key": keyOf("messages"), "content-type": "application/json" },
    body: JSON.stringify({ model: "claude-haiku-4-5", max_tokens: 64, messages }),
  });
}

/** Only whole lines: the shell makes the file before it writes to it. */
async function waitFor(path: string, lines: number): Promise<string[]> {
  for (;;) {
    const found = existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
    if (found.length >= lines) return found;
    await Bun.sleep(5);
  }
}

const noticesOf = (gateway: ChildGateway): Record<string, unknown>[] =>
  gateway
    .stdout()
    .split("\n")
    .filter((line) => line.includes('"notice"'))
    .map((line) => JSON.parse(line));

describe("a request that crosses a percentage of a limit", () => {
  test("runs the command once, also after kill -9, and prints a line in the log", async () => {
    const runs = folder.join("runs");
    const command = ["sh", "-c", 'echo "$GATEWAY_ALERT_NAME $GATEWAY_ALERT_PERCENT" >> runs'];
    const config = configWith({ at: [50, 90], command });
    const first = await startGateway({ config, folder });
    expect((await ask(first)).status).toBe(200);
    expect(await waitFor(runs, 1)).toEqual(["messages 90"]);
    first.signal("SIGKILL");
    await first.exited;
    const [notice] = noticesOf(first);
    expect(notice).toMatchObject({
      level: "warning",
      limit: {
        kind: "key",
        name: "messages",
        limit: "usd_total",
        percent: 90,
        usd: "0.000001",
        resets: null,
      },
    });

    const second = await startGateway({ config: configWith({ at: [50, 90], command }, "0.0000001"), folder });
    // The group's limit is lower now, so this warning is new. The key's is not repeated.
    expect(await waitFor(runs, 2)).toEqual(["messages 90", "messages 90"]);
    expect(await second.stop()).toBe(0);
    expect(noticesOf(second).map(({ limit }) => limit)).toEqual([expect.objectContaining({ kind: "group" })]);
  });

  test("is answered, and the next one too, while the command hangs", async () => {
    const command = ["sh", "-c", "echo $$ > pid; sleep 1000"];
    const gateway = await startGateway({ config: configWith({ command }, "0.01"), folder });
    expect((await ask(gateway)).status).toBe(200);
    const [pid] = await waitFor(folder.join("pid"), 1);
    expect((await ask(gateway)).status).toBe(429);
    process.kill(Number(pid), 0);
    // The end of the gateway ends the command.
    expect(await gateway.stop()).toBe(0);
    expect(() => process.kill(Number(pid), 0)).toThrow();
  });
});
