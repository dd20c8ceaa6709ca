// Measurements apart from requests: the start and the memory.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Load } from "../wire/ends.ts";
import { findFreePort, type Folder, makeFolder, readMemory, start } from "../machine.ts";
import { type Bench, describeRequest, type Sample } from "../bench.ts";
import { readMicros, sleep } from "../wire/sockets.ts";
import { hold, type Recipe, type Target, writeGatewayConfig } from "../targets/targets.ts";

const OPEN_STREAMS = 1000;

/** A fresh process: idle, then with streams open. */
export async function measureMemory(recipe: Recipe, { upstream, load }: Bench): Promise<Sample> {
  const target = await recipe.start(upstream.port);
  const { pid } = target;
  if (pid === null) return {};
  await Bun.sleep(1000);
  const idle = readMemory(pid);
  let open = idle;
  const request = describeRequest(target, "slow");
  await load.run({ do: "hold", request, connections: OPEN_STREAMS, ms: 2000 }, async () => {
    await Bun.sleep(1500);
    open = readMemory(pid);
  });
  await target.stop();
  return { "memory MB, idle": idle, "memory KB a stream, 1,000 open": ((open - idle) * 1024) / OPEN_STREAMS };
}

/** Whether memory stays flat while clients come and leave in the middle of their streams. */
export async function measureFlatness(recipe: Recipe, { upstream, load }: Bench): Promise<Sample> {
  const target = await recipe.start(upstream.port);
  const early = await leaveMidway(target, load, 20_000);
  const late = await leaveMidway(target, load, 180_000);
  await target.stop();
  return {
    "memory MB, stream 20,000": early,
    "memory MB, stream 200,000": late,
    "memory growth": late / early,
  };
}

async function leaveMidway(target: Target, load: Load, count: number): Promise<number> {
  const request = describeRequest(target, "halves");
  await load.run({ do: "leave", request, connections: 64, count, leaveShare: 0.3 });
  return target.pid === null ? 0 : readMemory(target.pid);
}

/** From the process's start to the first byte of the first answer. */
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

/** Commands that a shell or a tool runs often. */
const SMALL_COMMANDS = [["--version"], ["keys", "list"], ["statusline"]] as const;

/** From start to end. */
export function measureCommands(command: readonly string[]): Sample {
  const folder = makeFolder();
  const file = writeGatewayConfig(folder, 9);
  const sample: Record<string, number> = {};
  for (const words of SMALL_COMMANDS) {
    const began = performance.now();
    const { resourceUsage } = Bun.spawnSync([...command, ...words], {
      env: { ...process.env, GATEWAY_CONFIG: file },
    });
    sample[`${words.join(" ")} ms`] = performance.now() - began;
    sample[`${words.join(" ")} CPU ms`] = Number(resourceUsage.cpuTime.total) / 1000;
  }
  folder.remove();
  return sample;
}

/** An executable of an empty program: what the runtime alone takes of each start. */
export async function buildEmpty(folder: Folder): Promise<string> {
  const source = join(folder.path, "empty.ts");
  const outfile = join(folder.path, "empty");
  writeFileSync(source, "");
  await Bun.build({ entrypoints: [source], bytecode: true, format: "esm", compile: { outfile } });
  return outfile;
}
