// Checks the operator's commands to the running gateway, and what its probes find.

import type { World } from "../run.ts";

/** A request that was sent before the command may still be in the network. */
const ON_ITS_WAY_US = 5_000_000;

/** A channel that was disabled by a command gets no requests from clients. */
export function checkCommands(world: World): void {
  if (world.stoodStill) return;
  for (const { channel, from, until, process } of world.operator.pauses) {
    const end = Math.min(until, process.diedAt);
    const strays = world.arrivals.filter(
      ({ channel: name, send, at }) =>
        name === channel && send !== "" && at > from + ON_ITS_WAY_US && at < end,
    );
    if (strays[0] !== undefined)
      world.accuse(
        "control",
        `The channel ${channel} was disabled at ${from / 1000} ms, but received ${strays[0].send} at ${strays[0].at / 1000} ms.`,
      );
  }
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
