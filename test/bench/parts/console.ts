// What the page costs the gateway: the delay of events while reports run, an open page, and the overview after a start.

import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";
import type { Bench, Sample } from "../bench.ts";
import { type Child, type Folder, makeFolder, readCpu, start } from "../machine.ts";
import { followFeed, OVERVIEW, type Page, readAll, REPORT, signIn } from "./page.ts";
import { findScenario } from "./scenarios.ts";
import { hold, PLAIN, readReadyPort, SECRET, type Target, writeGatewayConfig } from "../targets/targets.ts";

const DAYS_MS = 28 * 86_400_000;
/** As users run it: the system chooses. */
const ALL_CORES = `0-${availableParallelism() - 1}`;
const POLL_MS = 50;
/** After the streams and reports before, memory is collected and code compiled for a while. */
const SETTLE_MS = 5000;
/** How long an open page is watched. */
const OPEN_MS = 10_000;
/** As often as the page loads the overview while requests come. */
const REFRESH_MS = 3000;

interface OpenPage extends Page {
  readonly target: Target;
  /** Where the gateway may run, as `taskset` reads it; null: anywhere. */
  readonly cores: string | null;
}

export async function measureConsole(
  command: readonly string[],
  bench: Bench,
  lines: number,
): Promise<Sample[]> {
  // The benchmark requests the reports itself: its threads must not share the gateway's core.
  if (bench.cores !== null) moveTo(String(bench.cores.load), process.pid);
  const folder = makeFolder();
  const ledger = join(folder.path, "ledger.jsonl");
  makeLedger(ledger, lines, { start: Date.now() - DAYS_MS, stepMs: DAYS_MS / lines });
  const own = bench.cores === null ? null : String(bench.cores.proxy);
  const first = await openPage(command, folder, bench, own);
  await readAll(first);
  while (!existsSync(`${ledger}.index`)) await Bun.sleep(POLL_MS);
  const samples = await measureRounds(first, bench);
  samples.push({ "ms for the sessions of all lines, no streams": await time(first, REPORT) });
  samples.push(await measureOpenPage(first));
  await first.target.stop();
  if (own !== null) {
    // A gateway that is started on one core behaves differently.
    const free = await openPage(command, folder, bench, ALL_CORES);
    await readAll(free);
    for (const sample of await measureRounds(free, bench)) samples.push(addToNames(sample, ", all cores"));
    await free.target.stop();
  }
  const second = await openPage(command, folder, bench, own);
  const began = performance.now();
  await readAll(second);
  samples.push({ [`ms to the overview of ${lines} lines, after a start`]: performance.now() - began });
  await second.target.stop();
  folder.remove();
  return samples;
}

function moveTo(cores: string, pid: number): void {
  Bun.spawnSync(["taskset", "--all-tasks", "--cpu-list", "--pid", cores, String(pid)]);
}

function addToNames(sample: Sample, end: string): Sample {
  return Object.fromEntries(Object.entries(sample).map(([name, value]) => [name + end, value]));
}

async function openPage(
  command: readonly string[],
  folder: Folder,
  { upstream }: Bench,
  cores: string | null,
): Promise<OpenPage> {
  const file = writeGatewayConfig(folder, upstream.port);
  const serve = [...command, "serve", "--config", file, "--log", "off"];
  const child = startOn(cores, serve);
  const port = await readReadyPort(child);
  const target = {
    ...PLAIN,
    ...hold("console", child, { ...folder, remove: () => {} }),
    port,
    fields: { "x-api-key": SECRET },
  };
  return { target, cores, ...(await signIn(command, file)) };
}

async function measureRounds(page: OpenPage, bench: Bench): Promise<Sample[]> {
  // Code that has not run yet is slower than any report makes it.
  await measureDelays(page, bench);
  const samples: Sample[] = [];
  for (let round = 0; round < bench.rounds; round += 1) samples.push(await measureDelays(page, bench));
  return samples;
}

function startOn(cores: string | null, command: readonly string[]): Child {
  return start(cores === null ? command : ["taskset", "-c", cores, ...command], { core: null });
}

/** Streams alone, then with one report after the other, then beside a loop that does nothing. */
async function measureDelays(page: OpenPage, bench: Bench): Promise<Sample> {
  const streams = findScenario("paced-streams");
  const quiet = await streams.run(page.target, bench);
  const ended = new AbortController();
  const reports = [REPORT, OVERVIEW].map((name) => repeat(page, name, ended.signal));
  const busy = await streams.run(page.target, bench);
  ended.abort();
  const [took = []] = await Promise.all(reports);
  const [before = 0, during = 0] = [quiet, busy].map((sample) => sample["event delay µs, p99"]);
  return {
    ...(await measureBesideLoop(page, bench, before)),
    "event delay µs, no report, p50": quiet["event delay µs, p50"] ?? 0,
    "event delay µs, while reports run, p50": busy["event delay µs, p50"] ?? 0,
    "event delay µs, no report, p99": before,
    "event delay µs, while reports run, p99": during,
    "event delay while reports run": during / before,
    "ms for the sessions of all lines, beside streams": took.reduce((sum, ms) => sum + ms, 0) / took.length,
  };
}

/** The loop has the lowest priority that Linux knows, needs no memory and calls nothing. What it adds to a delay is the
 *  price of a core that is not idle, and no report can add less. */
async function measureBesideLoop(page: OpenPage, bench: Bench, before: number): Promise<Sample> {
  if (Bun.which("chrt") === null) return {};
  const loop = startOn(page.cores, ["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]);
  const sample = await findScenario("paced-streams").run(page.target, bench);
  await loop.stop();
  const after = sample["event delay µs, p99"] ?? 0;
  return {
    "event delay µs, beside an empty loop, p50": sample["event delay µs, p50"] ?? 0,
    "event delay µs, beside an empty loop, p99": after,
    "event delay beside an empty loop": after / before,
  };
}

/** How long each took. A report that has begun is read to its end: the thread would finish it anyway. */
async function repeat(page: Page, name: string, signal: AbortSignal): Promise<number[]> {
  const took: number[] = [];
  while (!signal.aborted) took.push(await time(page, name));
  return took;
}

async function time({ load }: Page, name: string): Promise<number> {
  const began = performance.now();
  await (await load(name)).text();
  return performance.now() - began;
}

/** What the live feed takes, and the overview as often as the page loads it at most. */
async function measureOpenPage(page: OpenPage): Promise<Sample> {
  await Bun.sleep(SETTLE_MS);
  const before = await watch(page, async () => {});
  const ended = new AbortController();
  const feed = followFeed(page, ended.signal);
  const during = await watch(page, async () => void (await (await page.load(OVERVIEW)).text()));
  ended.abort();
  await feed;
  return before === null || during === null ? {} : { "open page, % of a core": during - before };
}

/** How much of a core the gateway takes, in %; null except on Linux. */
async function watch({ target }: OpenPage, act: () => Promise<void>): Promise<number | null> {
  const pid = target.pid ?? 0;
  const before = readCpu(pid);
  const began = performance.now();
  while (performance.now() - began < OPEN_MS) {
    await act();
    await Bun.sleep(REFRESH_MS);
  }
  const after = readCpu(pid);
  return before === null || after === null ? null : (after - before) / 10 / (performance.now() - began);
}
