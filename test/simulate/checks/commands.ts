// Checks that a key that was disabled lets nothing in, and what the gateway's probes find.

import type { World } from "../run.ts";

/** The gateway looks at the file once a second, and a change counts when it is complete. */
const APPLIED_US = 1_500_000;

/** A key that is disabled in the config file lets no request in. */
export function checkKeysOff(world: World): void {
  if (world.stoodStill || world.configs.every(({ keysOff }) => keysOff?.size === 0)) return;
  const arrivals = Map.groupBy(world.arrivals, ({ send }) => send);
  for (const { name, at, client } of world.sends) {
    const [first] = arrivals.get(name) ?? [];
    if (first === undefined || !isOff(world, client.key, { from: at - APPLIED_US, until: first.at }))
      continue;
    world.accuse(
      "keys",
      `The key ${client.key} was disabled, but ${name} reached the upstream ${first.channel}.`,
    );
    return;
  }
}

/** In every text that the file had from one moment to the other. */
function isOff({ configs }: World, key: string, { from, until }: { from: number; until: number }): boolean {
  const before = configs.findLastIndex(({ at }) => at <= from);
  const during = configs.filter(({ at }, index) => index >= before && at <= until);
  return before >= 0 && during.every(({ keysOff }) => keysOff?.has(key) === true);
}

/** A probe that is answered ends a cooldown that was only guessed. */
export function checkProbed(world: World): void {
  const { gateway } = world.served?.running ?? {};
  if (gateway === undefined) return;
  const views = gateway.channels.view(gateway.catalog, gateway.now());
  for (const { name, probeSeconds = 0 } of world.plan.channels) {
    const view = views.find((each) => each.name === name);
    if (probeSeconds > 0 && view?.reason?.includes("tried again with the next request"))
      world.accuse(
        "recovery",
        `The channel ${name} works and is probed every ${probeSeconds} s, but is still ${view.state}: ${view.reason}`,
      );
  }
}
