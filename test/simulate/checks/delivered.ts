// Checks that a completely sent answer reaches the client that waits for it, unless an event of the run explains why not.

import type { Send } from "../clients/send.ts";
import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import { FIRST_BYTE_SECONDS, TOTAL_SECONDS } from "../world/config.ts";

/** Events that end requests in flight, or connections with bytes on their way. */
const BREAKING = new Set(["kill", "cut power", "stop", "standstill", "upstream down"]);

const SECOND = 1_000_000;
/** If an answer comes in small pieces, its beginning may take this long to reach the gateway. */
const MAY_TRAVEL_US = 2 * SECOND;

export function checkDelivered(world: World): void {
  const { plan } = world;
  if (plan.happenings.some(({ kind }) => BREAKING.has(kind))) return;
  const lost = world.sends.find((send) => {
    const last = lastOf(world, send);
    return last !== undefined && isWhole(last) && isInTime(world, last) && waits(send) && send.whole === null;
  });
  if (lost === undefined) return;
  const { name, reply, end } = lost;
  world.accuse(
    "delivered",
    `The upstream ${lastOf(world, lost)?.channel} answered ${name} completely, but its client got ${reply?.status ?? "nothing"} (${end}, ${reply?.body.length ?? 0} bytes).`,
  );
}

function lastOf({ bySend }: World, { name }: Send): Arrival | undefined {
  return bySend.get(name)?.at(-1);
}

/** Whether the upstream has sent a complete answer. */
function isWhole({ plan, sent, status }: Arrival): boolean {
  return plan.kind === "answer" && plan.cut === null && sent && status === 200;
}

/** Whether the answer could reach the gateway in time. `waited` begins when the request is sent. */
function isInTime({ bySend }: World, { send, at, waited }: Arrival): boolean {
  const first = bySend.get(send)?.[0]?.at ?? at;
  const limit = Math.min(FIRST_BYTE_SECONDS * SECOND, TOTAL_SECONDS * SECOND - (at - first));
  return waited + MAY_TRAVEL_US < limit;
}

function waits({ request, end }: Send): boolean {
  if (end === "left" || end === "open" || (end === "gave up" && request.slow !== null)) return false;
  return request.bad === null && request.leave === null;
}
