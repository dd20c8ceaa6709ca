// What a channel was charged today is what the ledger says, after a stop, a kill, and without the file that remembers
// channels.

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";

import { CREDENTIAL, keyOf, makeConfig, startGateway } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { runProcess } from "../../cli/driving.ts";
import { makeRequest } from "../world.ts";

test("a channel's charge of today is that of `usage today`, also after a kill and without the file of channels", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = makeConfig(upstream, { timezone: "UTC" });
  const read = async (...args: string[]): Promise<unknown> =>
    JSON.parse((await runProcess({ folder: folder.path }, ...args, "--json")).stdout);
  const compare = async (): Promise<void> => {
    const channels = await read("channels");
    const usage = await read("usage", "today", "--by", "channel");
    const rows: Record<string, unknown>[] = Object(usage).rows;
    const charges = Object.fromEntries(rows.map((row) => [row["channel"], row["charge_usd"]]));
    expect(Object.keys(charges)).toEqual(["messages"]);
    const views: Record<string, unknown>[] = Object.values(Object(channels));
    for (const { name, charge_today_usd: charge } of views)
      expect([name, charge]).toEqual([name, charges[String(name)] ?? "0"]);
  };
  try {
    for (const end of ["SIGKILL", "SIGTERM"] as const) {
      const gateway = await startGateway({ config, folder });
      for (const stream of [true, false]) {
        const fields = { "x-api-key": keyOf("messages") };
        expect((await rawRequest(gateway.port, { ...makeRequest("messages", stream), fields })).status).toBe(
          200,
        );
      }
      await gateway.recorded(2);
      await compare();
      gateway.signal(end);
      await gateway.exited;
      await compare();
      rmSync(folder.join("ledger.jsonl.channels.json"), { force: true });
    }
    const gateway = await startGateway({ config, folder });
    await compare();
    await gateway.stop();
  } finally {
    upstream.stop();
  }
});
