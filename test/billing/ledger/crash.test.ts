import { expect, test } from "bun:test";
import { join } from "node:path";

import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { newLedgerPath, optionsFor, readWholeLedger } from "./ledger-samples.ts";

/** The simulator kills a ledger far more often. Here the kernel and the disk are real. */
const ROUNDS = 10;

/** Numbers from 0 to 1, the same in every run. */
function openDice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What a killed load had reported: ids that may have reached an upstream, and ids that were about to be discarded. */
interface LoadReport {
  readonly opened: string[];
  readonly discarded: Set<string>;
}

async function runAndKill(
  path: string,
  options: string[],
  killAt: { bytes: number } | { ms: number },
): Promise<LoadReport> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "ledger-load.ts"), path, ...options], {
    stdout: "pipe",
    stderr: "inherit",
  });
  if ("ms" in killAt) setTimeout(() => child.kill("SIGKILL"), killAt.ms);
  let text = "";
  for await (const bytes of child.stdout) {
    text += Buffer.from(bytes).toString();
    if ("bytes" in killAt && text.length > killAt.bytes) child.kill("SIGKILL");
  }
  await child.exited;
  const reported: LoadReport = { opened: [], discarded: new Set() };
  for (const line of text.slice(0, text.lastIndexOf("\n") + 1).split("\n")) {
    if (line.startsWith("o ")) reported.opened.push(line.slice(2));
    if (line.startsWith("d ")) reported.discarded.add(line.slice(2));
  }
  return reported;
}

test(`killed at ${ROUNDS} random instants under load, every request that reached an upstream has exactly one line`, async () => {
  const roll = openDice(20261120);
  const path = newLedgerPath();
  const opened: string[] = [];
  const discarded = new Set<string>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const sync = ["never", "batch", "always"][Math.floor(roll() * 3)]!;
    const rotate = roll() < 0.5 ? [] : ["60000"];
    // One in four dies while it starts, which is while it recovers from the one before.
    const killAt = roll() < 0.25 ? { ms: 15 + roll() * 60 } : { bytes: roll() ** 2 * 150_000 };
    const reported = await runAndKill(path, [sync, ...rotate], killAt);
    opened.push(...reported.opened);
    for (const id of reported.discarded) discarded.add(id);
  }
  await openLedger(optionsFor(path)).close();

  const { lines, count } = readWholeLedger(path);
  const wrong = opened.filter((id) => (count.get(id) ?? 0) !== 1 && !discarded.has(id));
  expect(wrong).toEqual([]);
  expect([...count.values()].filter((times) => times !== 1)).toEqual([]);
  expect(opened.length).toBeGreaterThan(ROUNDS);
  expect(lines.some((line) => line.outcome === "interrupted")).toBe(true);
});
