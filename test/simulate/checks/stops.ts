// Checks the limits that stop an agent, in both directions: too many equal calls of a tool, and too many agents at once.

import { agentOf, sessionOf } from "../plan/plan.ts";
import type { World } from "../run.ts";
import { textOf } from "./refused.ts";

export function checkStops(world: World): void {
  checkCalls(world);
  checkAgents(world);
}

function checkCalls(world: World): void {
  for (const send of world.sends) {
    const { client, request, fetches, name } = send;
    const { pairs = 0 } = request;
    const limits = world.limitsOf(client.key).map(({ sameCall = Number.POSITIVE_INFINITY }) => sameCall);
    const isStopped = textOf(send).includes("(same_call)");
    const mayPass = fetches !== null || pairs < Math.max(...limits);
    if (isStopped ? pairs >= Math.min(...limits) : mayPass || !world.bySend.has(name)) continue;
    world.accuse(
      "stops",
      `${name} ends with ${pairs} equal calls, its key allows less than ${limits.join(" or ")}, and it was ${isStopped ? "refused" : "let through"}.`,
    );
  }
}

/** An agent is open for five minutes after its last request. */
const OPEN_US = 290_000_000;

function checkAgents(world: World): void {
  // Who only fetches a response does not work.
  const own = world.sends.filter(({ client, fetches }) => client.agents !== undefined && fetches === null);
  const families = Map.groupBy(own, ({ client, request }) => sessionOf(client, request.number));
  for (const [session, sends] of families) {
    const limits = world
      .limitsOf(sends[0]!.client.key)
      .map(({ agents = Number.POSITIVE_INFINITY }) => agents);
    const agentsOf = (names: typeof sends): number =>
      new Set([null, ...names.map(({ client, request }) => agentOf(client, request.number))]).size;
    const stopped = sends.find((send) => textOf(send).includes("(agents, of"));
    if (stopped !== undefined && agentsOf(sends) <= Math.min(...limits))
      world.accuse(
        "stops",
        `${stopped.name} was refused, but ${session} never had more than ${agentsOf(sends)} agents.`,
      );
    if (world.timeWasBent) continue;
    for (const send of sends) {
      const first = world.bySend.get(send.name)?.[0];
      if (first === undefined) continue;
      const open = sends.filter(({ name }) =>
        world.bySend
          .get(name)
          ?.some(({ at, sender }) => sender === first.sender && at <= first.at && at > first.at - OPEN_US),
      );
      if (agentsOf(open) <= Math.max(...limits)) continue;
      world.accuse(
        "stops",
        `${session} may have ${limits.join(" or ")} agents, but ${send.name} is of number ${agentsOf(open)}.`,
      );
      return;
    }
  }
}
