// Starts the targets of the benchmark: the upstream alone, nginx as a plain proxy, and gateways with everything on.

import type { Subprocess } from "bun";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type Address, runLoad } from "./ends.ts";

const KEY = "sk-bench";
const MAIN = join(import.meta.dir, "../../src/main.ts");
const FLOOR = join(import.meta.dir, "floor.ts");
/** The measured program has a core of its own. Null: this machine cannot pin a process to a core. */
const CORES = Bun.which("taskset") !== null && availableParallelism() > 1 ? { measured: 0, ends: 1 } : null;

export interface Target {
  readonly name: string;
  readonly address: Address;
  /** CPU time so far, in microseconds; null where it is not known. */
  readonly readCpu: () => number | null;
  readonly stop: () => Promise<void>;
}

const running = new Set<Subprocess>();

export function pinEnds(): string {
  if (CORES === null) return "nothing is pinned: taskset or a second core is missing";
  Bun.spawnSync(["taskset", "-apc", String(CORES.ends), String(process.pid)]);
  return `what is measured on core ${CORES.measured}, upstream and clients on core ${CORES.ends}`;
}

export const planDirect = (port: number): Target => ({
  name: "direct",
  address: { port, key: KEY },
  readCpu: () => null,
  stop: async () => {},
});

function start(command: readonly string[]) {
  const pinned = CORES === null ? [] : ["taskset", "-c", String(CORES.measured)];
  const child = Bun.spawn([...pinned, ...command], { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
  running.add(child);
  return child;
}

async function end(child: Subprocess): Promise<void> {
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
  await child.exited;
  clearTimeout(timer);
  running.delete(child);
}

/** Ends every process that the benchmark has started. */
export async function stopAll(): Promise<void> {
  await Promise.all(Array.from(running, end));
}

function makeTarget(name: string, port: number, child: Subprocess, folder: string): Target {
  return {
    name,
    address: { port, key: KEY },
    readCpu: () => readCpu(child.pid),
    stop: async () => {
      await end(child);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Linux gives every program its CPU times in hundredths of a second. */
const TICK_MICROS = 10_000;

/** Reads the CPU time of the process and of those that it started, ended ones included. */
function readCpu(pid: number): number | null {
  if (process.platform !== "linux") return null;
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const times = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 15);
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  const own = times.reduce((sum, time) => sum + Number(time), 0) * TICK_MICROS;
  return children.reduce((sum, child) => sum + (readCpu(Number(child)) ?? 0), own);
}

function findFreePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}

async function waitForPort(port: number, child: Subprocess): Promise<void> {
  for (let tries = 0; tries < 1000 && child.exitCode === null; tries += 1) {
    const open = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } }).catch(() => null);
    if (open !== null) return void open.end();
    await Bun.sleep(10);
  }
  throw new Error(`nobody listens on ${port}`);
}

/** nginx with one process, no buffering and reused connections: the least that a proxy can do. Null: it is not installed. */
export async function startNginx(upstream: number): Promise<Target | null> {
  const nginx = Bun.which("nginx", { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin:/usr/local/sbin` });
  if (nginx === null) return null;
  const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
  const port = findFreePort();
  const file = join(folder, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
  writeFileSync(
    file,
    `daemon off;
master_process off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr error;
events { worker_connections 8192; }
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(" ")}
  keepalive_requests 1000000000;
  client_max_body_size 64m;
  upstream bench { server 127.0.0.1:${upstream}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`,
  );
  const child = start([nginx, "-p", folder, "-c", file, "-e", "stderr"]);
  await waitForPort(port, child);
  return makeTarget("nginx", port, child, folder);
}

export async function startFloor(upstream: number): Promise<Target> {
  const port = findFreePort();
  const child = start([process.execPath, FLOOR, String(port), String(upstream)]);
  await waitForPort(port, child);
  return makeTarget("floor", port, child, mkdtempSync(join(tmpdir(), "gateway-bench-")));
}

/** The command of each gateway, by the gateway's name in the table of results. */
export type Gateways = ReadonlyMap<string, readonly string[]>;

/** Lists these executables, and the gateway as it runs from its source. */
export function listGateways(executables: readonly string[]): Gateways {
  const others = executables.map((file) => [basename(file), [file]] as const);
  return new Map<string, readonly string[]>([["gateway", [process.execPath, MAIN]], ...others]);
}

/** The gateway as users run it: keys, two channels, meters, prices and the ledger are on. The log is off. */
function startServe(command: readonly string[], upstream: number, port: number) {
  const folder = mkdtempSync(join(tmpdir(), "gateway-bench-"));
  const channel = {
    platform: "messages",
    base_url: `http://127.0.0.1:${upstream}`,
    credential: "credential",
  };
  const config = {
    listen: { port },
    channels: { first: { ...channel, priority: 1 }, second: { ...channel, priority: 2 } },
    groups: { messages: { platform: "messages", multiplier: "0.8", channels: ["first", "second"] } },
    keys: [{ name: "bench", group: "messages", secret: KEY }],
  };
  const file = join(folder, "gateway.yaml");
  writeFileSync(file, JSON.stringify(config, null, 2), { mode: 0o600 });
  return { child: start([...command, "serve", "--config", file, "--log", "off"]), folder };
}

export async function startGateway(
  name: string,
  command: readonly string[],
  upstream: number,
): Promise<Target> {
  const port = findFreePort();
  const { child, folder } = startServe(command, upstream, port);
  await waitForPort(port, child);
  return makeTarget(name, port, child, folder);
}

/** Measures the milliseconds from the start of the process to the first answer of an upstream. */
export async function measureStart(command: readonly string[], upstream: number): Promise<number> {
  const port = findFreePort();
  const began = performance.now();
  const { child, folder } = startServe(command, upstream, port);
  const target = makeTarget("", port, child, folder);
  await waitForPort(port, child);
  await runLoad({ address: target.address, kind: "json", clients: 1, ms: 0.001 });
  const took = performance.now() - began;
  await target.stop();
  return took;
}
