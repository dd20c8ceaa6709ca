// Looks for lines that are gone. A power cut may take a line until a sync of the line has ended. The gateway
// has to begin each sync in time, but the disk decides when the sync ends.

import { hasBadDisk } from "../plan/plan.ts";
import type { Death, World, Written } from "../run.ts";

/** The longest time for which lines wait for a sync. */
const BATCH_US = 100_000;
/** The longest time by which timers are late. */
const MARGIN_US = 10_000;

/** Checks that lines which a sync has covered are still there. `there`: the ids of the lines in the ledger. */
export function checkDurable(world: World, there: ReadonlySet<string>): void {
  // The last writing counts: after a failed write, the gateway removes the bytes and writes the lines again.
  const last = new Map(world.written.map((each) => [each.id, each]));
  for (const written of last.values()) {
    const { id, at } = written;
    if (there.has(id) || isAtRisk(world, written)) continue;
    world.accuse("lost line", `The line ${id} was written at ${at / 1000} ms and is not in the ledger.`);
  }
}

/** Whether a power cut may take the line. */
function isAtRisk(world: World, written: Written): boolean {
  const { at, inode, made } = written;
  const cut = world.deaths.find((death) => death.how === "without power" && death.at >= at);
  if (cut === undefined) return false;
  const covering = world.syncs.filter((sync) => sync.inode === inode && sync.made >= made);
  // A failing disk guarantees nothing: after a sync that failed, one that succeeds proves nothing.
  if (hasBadDisk(world.plan)) return true;
  if (covering.some(({ to }) => to <= cut.at)) return false;
  if (world.stoodStill) return true;
  const begun = covering.find(({ process }) => process === cut.process)?.from ?? cut.at;
  return begun <= findLatestBegin(world, written, cut);
}

/** Finds the moment by which the gateway had to begin a sync of the line. Only one sync runs at a time. */
function findLatestBegin(world: World, { at, process }: Written, cut: Death): number {
  if (process !== cut.process) {
    // Another gateway was killed before it could sync the line. The next gateway syncs the line when it starts.
    const boot = world.boots.findLast((each) => each <= cut.at) ?? cut.at;
    return boot + MARGIN_US;
  }
  const running = world.syncs.filter((sync) => sync.process === process && sync.from <= at && sync.to > at);
  return Math.max(at, ...running.map(({ to }) => to)) + BATCH_US + MARGIN_US;
}
