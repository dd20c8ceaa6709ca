// Tests a gateway that has reached its limit of open files.

import { readdirSync } from "node:fs";
import { expect, test } from "bun:test";
import { CREDENTIAL, makeConfig, startGateway } from "../../harness/gateway.ts";
import { openRaw, parseAnswer, type RawConnection, writeRequest } from "../../harness/raw.ts";
import { startDemoUpstream } from "../../harness/upstreams/demo-upstream.ts";
import { makeRequest } from "../world.ts";

async function ask(client: RawConnection) {
  client.send(writeRequest(makeRequest("messages")));
  const bytes = await client.until((all) => parseAnswer(all)?.complete === true);
  return parseAnswer(bytes);
}

test.skipIf(Bun.which("prlimit") === null)(
  "a gateway that may open no more files answers 503, and serves waiting clients once it may open more",
  async () => {
    const upstream = startDemoUpstream({ credential: CREDENTIAL });
    const gateway = await startGateway({ config: makeConfig(upstream, { warm: false }) });
    const limit = (files: number) =>
      expect(Bun.spawnSync(["prlimit", `--pid=${gateway.pid}`, `--nofile=${files}:`]).exitCode).toBe(0);
    const clients: RawConnection[] = [];
    try {
      const early = await openRaw(gateway.port);
      clients.push(early);
      early.send("GET / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
      const from = await early.until((all) => parseAnswer(all)?.complete === true);
      limit(readdirSync(`/proc/${gateway.pid}/fd`).length);
      for (let count = 0; count < 20; count += 1) clients.push(await openRaw(gateway.port));
      early.send(writeRequest(makeRequest("messages")));
      const size = from.length;
      const refused = await early.until((all) => parseAnswer(all.subarray(size))?.complete === true);
      expect(parseAnswer(refused.subarray(size))).toMatchObject({ status: 503 });
      expect(gateway.stderr() + gateway.stdout()).toContain("too many open files");
      limit(500);
      for (const client of clients.slice(1)) expect(await ask(client)).toMatchObject({ status: 200 });
    } finally {
      for (const client of clients) client.reset();
      await gateway.stop();
      upstream.stop();
    }
  },
);
