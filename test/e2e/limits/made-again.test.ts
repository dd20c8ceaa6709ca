// A key that is made again under the name of a removed one: a script that makes and removes a key for each job does so.

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";

import { CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { rawRequest } from "../../harness/raw.ts";
import { makeTempFolder } from "../../harness/temp.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { runProcess } from "../../cli/driving.ts";
import { makeRequest } from "../world.ts";

test("a key made again under an old name has spent nothing, whether the gateway runs or not", async () => {
  using folder = makeTempFolder();
  const upstream = startDemoUpstream({ credential: CREDENTIAL });
  const config = makeConfig(upstream, { timezone: "UTC" });
  const command = (...args: string[]) => runProcess({ folder: folder.path }, ...args);
  const make = async (): Promise<string> => {
    const limits = ["usd_total=0.0001", "usd_per_day=0.0001"].flatMap((limit) => ["--limit", limit]);
    const made = await command("keys", "add", "--name", "job", "--group", "messages", ...limits);
    expect(made).toMatchObject({ status: 0 });
    return made.stdout.trim();
  };
  const spent = async () => {
    const { stdout } = await command("keys", "show", "job", "--json");
    const { last_used, spent_today_usd, spent_total_usd } = JSON.parse(stdout);
    return { last_used, spent_today_usd, spent_total_usd };
  };
  const nothing = { last_used: null, spent_today_usd: "0", spent_total_usd: "0" };
  const start = () => startGateway({ config: JSON.stringify({ listen: { port: 0 }, ...config }), folder });
  let gateway = await start();
  const again = (): Promise<typeof gateway> =>
    startGateway({ config: readFileSync(folder.join("gateway.yaml"), "utf8"), folder });
  const ask = async (secret: string): Promise<number> => {
    const fields = { "x-api-key": secret };
    return (await rawRequest(gateway.port, { ...makeRequest("messages"), fields })).status;
  };
  try {
    for (const isStopped of [false, true]) {
      const first = await make();
      expect([await ask(first), await ask(first)]).toEqual([200, 429]);
      expect((await spent()).spent_total_usd).not.toBe("0");
      if (isStopped) await gateway.stop();
      expect(await command("keys", "remove", "job", "--yes")).toMatchObject({ status: 0 });
      const second = await make();
      if (isStopped) gateway = await again();
      expect(await spent()).toEqual(nothing);
      expect([await ask(second), await ask(second)]).toEqual([200, 429]);
      const { spent_total_usd: counted } = await spent();
      await gateway.stop();
      gateway = await again();
      expect((await spent()).spent_total_usd).toBe(counted);
      expect(await ask(second)).toBe(429);
      expect(await command("keys", "remove", "job", "--yes")).toMatchObject({ status: 0 });
    }
    const lines = gateway.ledger().filter(({ key }) => key === "job");
    expect(lines).toHaveLength(4);
  } finally {
    await gateway.stop();
    upstream.stop();
  }
});
