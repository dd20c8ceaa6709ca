// Checks the limit that stops a loop, in both directions: equal calls of a tool.

import type { World } from "../run.ts";
import { textOf } from "./refused.ts";

export function checkCalls(world: World): void {
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
