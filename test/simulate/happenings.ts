// What happens to the gateway and its surroundings while clients send requests: one function for each kind.

import type { Happening } from "./plan/plan.ts";
import type { World } from "./run.ts";
import { BROKEN_CONFIG, LEDGER } from "./world/config.ts";
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
  "channel off": (world) => {
    const { channels } = world.plan;
    world.change({ channelsOff: new Set([channels[world.scheduler.random.int(channels.length)]!.name]) });
  },
  "channel on": (world) => world.change({ channelsOff: new Set() }),
  "broken config": (world) => {
    world.writeConfig(BROKEN_CONFIG);
    later(world, 3000, "the config is put right", () => world.change({}));
  },
  "config touched": (world) => world.changeMultipliers(),
  "key off": (world, { client, ms }) => {
    // Some changes come right before the gateway looks at the file.
    const waitMs =
      ms % 2 === 0 ? 0 : Math.max(0, (world.nextLook() - world.scheduler.now) / 1000 - (ms % 50));
    later(world, waitMs, "the key is disabled", () => world.change({ keysOff: new Set([client]) }));
    later(world, waitMs + ms, "keys are on again", () => world.change({ keysOff: new Set() }));
  },
  "limits changed": (world, { client, limits }) => world.changeLimits(client, limits),
  "upstream down": (world, { channel, how, ms }) => {
    const { lost } = world.network;
    lost.set(`${channel}.test`, how);
    later(world, ms, `${channel} is up again`, () => void lost.delete(`${channel}.test`));
  },
};
