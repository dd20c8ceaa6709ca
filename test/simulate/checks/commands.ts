// What an operator said to the running gateway, and what its probes found.

import type { World } from "../run.ts";

/** A request that had been given to the channel may still be on its way. */
const ON_ITS_WAY_US = 5_000_000;

/** A channel that was disabled by command gets no requests of clients. */
export function checkCommands(world: World): void {
  if (world.timeWasBent) return;
  for (const { channel, from, until, process } of world.operator.pauses) {
    const end = Math.min(until, process.diedAt);
    const strays = world.arrivals.filter(
      ({ channel: name, send, at }) =>
        name === channel && send !== "" && at > from + ON_ITS_WAY_US && at < end,
    );
    if (strays[0] !== undefined)
      world.accuse(
        "control",
        `The channel ${channel} was disabled at ${from / 1000} ms, and got ${strays[0].send} at ${strays[0].at / 1000} ms.`,
      );
  }
}

/** A probe that gets an answer ends what is only a guess: that the channel does not work. */
export function checkProbed(world: World): void {
  const { gateway } = world.served?.running ?? {};
  if (gateway === undefined || world.plan.maxFiles < 1024) return;
  const views = gateway.channels.view(gateway.catalog, gateway.now());
  for (const { name, probeSeconds = 0 } of world.plan.channels) {
    const view = views.find((each) => each.name === name);
    if (probeSeconds > 0 && view?.reason?.includes("tried again with the next request"))
      world.accuse(
        "recovery",
        `The channel ${name} works and is probed every ${probeSeconds} s, and is still ${view.state}: ${view.reason}`,
      );
  }
}
