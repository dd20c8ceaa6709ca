// What the page costs the gateway: the delay of events while reports run, an open page, and the overview after a start.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";
import type { Bench, Sample } from "../bench.ts";
import { type Folder, makeFolder, readCpu, start } from "../machine.ts";
import { followFeed, OVERVIEW, type Page, readAll, REPORT, signIn } from "./page.ts";
import { findScenario } from "./scenarios.ts";
import { hold, PLAIN, readReadyPort, SECRET, type Target, writeGatewayConfig } from "../targets/targets.ts";

const DAYS_MS = 28 * 86_400_000;
const POLL_MS = 50;
/** After the streams and reports before, memory is collected and code compiled for a while. */
const SETTLE_MS = 5000;
/** How long an open page is watched. */
const OPEN_MS = 10_000;
/** As often as the page loads the overview while requests come. */
const REFRESH_MS = 3000;

interface OpenPage extends Page {
  readonly target: Target;
}

export async function measureConsole(
  command: readonly string[],
  bench: Bench,
  lines: number,
): Promise<Sample[]> {
  // The benchmark requests the reports itself: its threads must not share the gateway's core.
  if (bench.cores !== null) Bun.spawnSync(["taskset", "-acp", String(bench.cores.load), String(process.pid)]);
  const folder = makeFolder();
  const ledger = join(folder.path, "ledger.jsonl");
  makeLedger(ledger, lines, { start: Date.now() - DAYS_MS, stepMs: DAYS_MS / lines });
  const first = await openPage(command, folder, bench);
  await readAll(first);
  while (!existsSync(`${ledger}.index`)) await Bun.sleep(POLL_MS);
  // Code that has not run yet is slower than any report makes it.
  await measureDelays(first, bench, ledger);
  const samples: Sample[] = [];
  for (let round = 0; round < bench.rounds; round += 1)
    samples.push(await measureDelays(first, bench, ledger));
  samples.push({ "ms for the sessions of all lines, no streams": await time(first, REPORT) });
  samples.push(await measureOpenPage(first));
  await first.target.stop();
  const second = await openPage(command, folder, bench);
  const began = performance.now();
  await readAll(second);
  samples.push({ [`ms to the overview of ${lines} lines, after a start`]: performance.now() - began });
  await second.target.stop();
  folder.remove();
  return samples;
}

async function openPage(
  command: readonly string[],
  folder: Folder,
  { upstream, cores }: Bench,
): Promise<OpenPage> {
  const file = writeGatewayConfig(folder, upstream.port);
  const child = start([...command, "serve", "--config", file, "--log", "off"], {
    core: cores?.proxy ?? null,
  });
  const port = await readReadyPort(child);
  const kept = { ...folder, remove: () => {} };
  const target = { ...PLAIN, ...hold("console", child, kept), port, fields: { "x-api-key": SECRET } };
  return { target, ...(await signIn(command, file)) };
}

/** Streams alone, then with one report after the other, then while the index of `ledger` is made again. */
async function measureDelays(page: OpenPage, bench: Bench, ledger: string): Promise<Sample> {
  const streams = findScenario("paced-streams");
  const quiet = await streams.run(page.target, bench);
  const ended = new AbortController();
  const reports = [REPORT, OVERVIEW].map((name) => repeat(page, name, ended.signal));
  const busy = await streams.run(page.target, bench);
  ended.abort();
  const [took = []] = await Promise.all(reports);
  for (const tail of ["", "-wal", "-shm"]) rmSync(`${ledger}.index${tail}`, { force: true });
  await time(page, OVERVIEW);
  const made = await streams.run(page.target, bench);
  await readAll(page);
  const [before = 0, during = 0, making = 0] = [quiet, busy, made].map(
    (sample) => sample["event delay µs, p99"],
  );
  return {
    "event delay µs, no report, p50": quiet["event delay µs, p50"] ?? 0,
    "event delay µs, while reports run, p50": busy["event delay µs, p50"] ?? 0,
    "event delay µs, no report, p99": before,
    "event delay µs, while reports run, p99": during,
    "event delay µs, while the index is made, p99": making,
    "event delay while reports run": during / before,
    "event delay while the index is made": making / before,
    "ms for the sessions of all lines, beside streams": took.reduce((sum, ms) => sum + ms, 0) / took.length,
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
