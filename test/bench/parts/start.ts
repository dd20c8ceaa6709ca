// How long a start takes: from the start of the process to the first byte of the first answer.

import type { Bench, Sample } from "../bench.ts";
import { findFreePort, makeFolder, start } from "../machine.ts";
import { hold, writeGatewayConfig } from "../targets/targets.ts";
import { readMicros, sleep } from "../wire/sockets.ts";

export async function measureColdStart(
  command: readonly string[],
  { upstream, load, cores }: Bench,
): Promise<Sample> {
  const folder = makeFolder();
  const port = findFreePort();
  const file = writeGatewayConfig(folder, upstream.port, { port });
  const fields = { "x-api-key": "sk-bench" };
  const waiting = load.run({
    do: "first",
    request: { kind: "json", port, path: "/v1/messages", fields, model: "claude-haiku-4-5", bytes: 1000 },
  });
  sleep(20);
  const began = readMicros();
  const child = start([...command, "serve", "--config", file, "--log", "off"], {
    core: cores?.proxy ?? null,
  });
  const { at, errors } = await waiting;
  await hold("", child, folder).stop();
  return { "cold start ms": (at - began) / 1000, errors };
}
