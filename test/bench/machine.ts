// Processes, their cores, and what the system reports about them.

import { type Subprocess } from "bun";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, cpus, tmpdir } from "node:os";
import { join } from "node:path";

/** The core of each part; null where processes cannot be pinned. */
export interface Cores {
  readonly proxy: number;
  readonly load: number;
  readonly upstream: number;
}

export function planCores(): Cores | null {
  if (Bun.which("taskset") === null || availableParallelism() < 2) return null;
  return { proxy: 0, load: 1, upstream: availableParallelism() > 2 ? 2 : 1 };
}

export function describeMachine(cores: Cores | null): string {
  const pinned =
    cores === null
      ? "nothing is pinned: taskset or a second core is missing"
      : `what is measured on core ${cores.proxy}, load on core ${cores.load}, upstream on core ${cores.upstream}`;
  return `${cpus()[0]?.model.trim() ?? "unknown processor"}, ${availableParallelism()} cores, ${process.platform} ${process.arch}, Bun ${Bun.version}; ${pinned}`;
}

export interface Child {
  readonly pid: number;
  readonly process: Subprocess<"pipe", "pipe", "pipe">;
  /** Its stderr so far. */
  complaints(): string;
  /** The next line of the output; null at its end. */
  readLine(): Promise<string | null>;
  stop(): Promise<void>;
}

export interface SpawnOptions {
  readonly core: number | null;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
}

const alive = new Set<Child>();

function pin(command: readonly string[], core: number | null): string[] {
  return core === null ? [...command] : ["taskset", "-c", String(core), ...command];
}

export function start(command: readonly string[], { core, cwd, env }: SpawnOptions): Child {
  const child = Bun.spawn(pin(command, core), {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...env },
    ...(cwd === undefined ? {} : { cwd }),
  });
  let complaints = "";
  void child.stderr.pipeTo(
    new WritableStream({
      write: (bytes: Uint8Array) => {
        complaints = (complaints + Buffer.from(bytes).toString()).slice(-4000);
      },
    }),
  );
  const started: Child = {
    pid: child.pid,
    complaints: () => complaints,
    process: child,
    readLine: readLines(child.stdout),
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      await child.exited;
      clearTimeout(timer);
      alive.delete(started);
    },
  };
  alive.add(started);
  return started;
}

/** Ends every process, however the benchmark ends. */
export async function stopAll(): Promise<void> {
  await Promise.all(Array.from(alive, (child) => child.stop()));
}

function readLines(stream: ReadableStream<Uint8Array>): () => Promise<string | null> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return async () => {
    for (;;) {
      const end = text.indexOf("\n");
      if (end >= 0) {
        const line = text.slice(0, end);
        text = text.slice(end + 1);
        return line;
      }
      const { done, value } = await reader.read();
      if (done) return null;
      text += decoder.decode(value, { stream: true });
    }
  };
}

/** Linux counts in hundredths of a second here, for every program. */
const TICK_MICROS = 10_000;

/** CPU time of a process and of those that it started, in microseconds, ended ones included; null except on Linux. */
export function readCpu(pid: number): number | null {
  if (process.platform !== "linux") return null;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);
  return (
    readTicks(pid) * TICK_MICROS + children.reduce((sum, child) => sum + (readCpu(Number(child)) ?? 0), 0)
  );
}

/** Of the process, and of those it started that have ended. */
function readTicks(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  const times = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .slice(11, 15);
  return times.reduce((sum, time) => sum + Number(time), 0);
}

export interface Folder {
  readonly path: string;
  remove(): void;
}

/** It ends with the benchmark at the latest. */
export function makeFolder(): Folder {
  const path = mkdtempSync(join(tmpdir(), "gateway-bench-"));
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  process.once("exit", remove);
  return { path, remove };
}

export function findFreePort(): number {
  const listener = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = listener;
  listener.stop(true);
  return port;
}
