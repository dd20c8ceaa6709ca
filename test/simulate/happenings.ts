// What happens to the gateway and its surroundings while clients send requests: one function for each kind.

import type { Happening } from "./plan/plan.ts";
import type { World } from "./run.ts";
import { LEDGER } from "./world/config.ts";
import type { DiskTrouble } from "./world/disk.ts";
import { NATURE } from "./world/scheduler.ts";

type Handlers = {
  readonly [Kind in Happening["kind"]]: (world: World, happening: Extract<Happening, { kind: Kind }>) => void;
};

export function happen(world: World, happening: Happening): void {
  const handler: (world: World, happening: never) => void = HANDLERS[happening.kind];
  // The table has a handler under the name of each kind.
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  handler(world, happening as never);
}

function later(world: World, ms: number, label: string, run: () => void): void {
  world.scheduler.after(ms * 1000, NATURE, label, run);
}

function trouble(world: World, troubles: Partial<DiskTrouble>, ms: number): void {
  Object.assign(world.disk.trouble, troubles);
  later(world, ms, "the disk is well again", () => world.disk.heal());
}

const HANDLERS: Handlers = {
  kill: (world, { afterSteps, downMs }) => world.dieSoon("killed", afterSteps, downMs),
  "cut power": (world, { afterSteps, downMs }) => world.dieSoon("without power", afterSteps, downMs),
  stop: (world, { graceMs, downMs }) => world.stopGateway(graceMs, downMs),
  clock: (world, { byMs }) => {
    world.wallOffset += byMs;
    world.bends.push({ at: world.scheduler.now, byMs });
    world.timeWasBent = true;
  },
  standstill: (world, { ms }) => {
    world.timeWasBent = true;
    world.stoodStill = true;
    world.process?.standStill(ms * 1000);
  },
  "disk full": (world, { room, ms }) => trouble(world, { room }, ms),
  "disk fails": (world, { writes, syncs, short, ms }) =>
    trouble(world, { failingWrites: writes, failingSyncs: syncs, shortWrites: short }, ms),
  "slow disk": (world, { syncMs, ms }) => trouble(world, { slowSync: syncMs * 1000 }, ms),
  "index removed": (world) => world.disk.remove(`${LEDGER}.index`),
  "upstream down": (world, { channel, how, ms }) => {
    const { lost } = world.network;
    lost.set(`${channel}.test`, how);
    later(world, ms, `${channel} is up again`, () => void lost.delete(`${channel}.test`));
  },
};
