// Carries out the events of a plan that happen to the gateway and its surroundings while clients send requests.

import type { Happening } from "./plan/plan.ts";
import type { World } from "./run.ts";
import { LEDGER } from "./world/config.ts";
import { NATURE } from "./world/scheduler.ts";

export function happen(world: World, happening: Happening): void {
  const { disk, network, scheduler } = world;
  const later = (ms: number, label: string, run: () => void): void =>
    void scheduler.after(ms * 1000, NATURE, label, run);
  const heal = (): void => disk.heal();
  switch (happening.kind) {
    case "kill":
      return world.dieSoon("killed", happening.afterSteps, happening.downMs);
    case "cut power":
      return world.dieSoon("without power", happening.afterSteps, happening.downMs);
    case "stop":
      return world.stopGateway(happening.graceMs, happening.downMs);
    case "clock":
      world.wallOffset += happening.byMs;
      world.bends.push({ at: scheduler.now, byMs: happening.byMs });
      return;
    case "standstill":
      world.stoodStill = true;
      world.process?.standStill(happening.ms * 1000);
      return;
    case "disk full":
      disk.trouble.room = happening.room;
      return later(happening.ms, "the disk is well again", heal);
    case "disk fails":
      disk.trouble.failingWrites = happening.writes;
      disk.trouble.failingSyncs = happening.syncs;
      disk.trouble.shortWrites = happening.short;
      return later(happening.ms, "the disk is well again", heal);
    case "slow disk":
      disk.trouble.slowSync = happening.syncMs * 1000;
      return later(happening.ms, "the disk is well again", heal);
    case "index removed":
      return disk.remove(`${LEDGER}.index`);
    case "upstream down": {
      const host = `${happening.channel}.test`;
      network.lost.set(host, happening.how);
      return later(happening.ms, `${happening.channel} is up again`, () => void network.lost.delete(host));
    }
  }
}
