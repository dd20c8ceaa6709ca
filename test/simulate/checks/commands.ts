// Checks the operator's commands to the running gateway, and what its probes find.

import type { Pause } from "../operator.ts";
import { hasBadDisk } from "../plan/plan.ts";
import type { World } from "../run.ts";

/** A request that was sent before the command may still be in the network, also that of a gateway that has died. */
const ON_ITS_WAY_US = 5_000_000;

/** A channel that was disabled by a command gets no requests from clients. */
export function checkCommands(world: World): void {
  if (world.stoodStill) return;
  for (const pause of world.operator.pauses) {
    const { channel, from, until, process } = pause;
    const end = Math.min(until, findEnd(world, pause));
    const strays = world.arrivals.filter(
      ({ channel: name, send, at, sender }) =>
        name === channel &&
        send !== "" &&
        sender.diedAt > from &&
        at > from + (sender === process ? ON_ITS_WAY_US : 0) &&
        at < end,
    );
    if (strays[0] !== undefined)
      world.accuse(
        "control",
        `The channel ${channel} was disabled at ${from / 1000} ms, but received ${strays[0].send} at ${strays[0].at / 1000} ms.`,
      );
  }
}

/** A command that was answered survives a kill. A power cut and a failing disk may lose it. */
function findEnd(world: World, { from, process }: Pause): number {
  if (hasBadDisk(world.plan)) return process.diedAt;
  const cut = world.deaths.find(({ at, how }) => at >= from && how === "without power");
  return cut?.at ?? Number.POSITIVE_INFINITY;
}

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
  if (gateway === undefined || world.plan.maxFiles < 1024) return;
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
