// Checks decision 0012: a POST reaches a channel at most once. It reaches no other channel after the first byte of an answer,
// and no channel after `failover.total`.

import type { World } from "../run.ts";
import type { Arrival } from "../upstreams/upstream.ts";
import { TOTAL_SECONDS } from "../world/config.ts";

/** How late an attempt may come, because timers are late and connections take a while. */
const MARGIN_US = 2_000_000;

export function checkResent(world: World): void {
  for (const [send, posts] of world.bySend) {
    for (const [channel, there] of Map.groupBy(posts, (post) => post.channel))
      if (there.length > 1)
        world.accuse("resent", `${send} reached ${channel} ${there.length} times: at ${listTimes(there)}.`);
    const [first, late] = [posts[0], posts.at(-1)];
    if (first && late && late.sentAt > first.sentAt + TOTAL_SECONDS * 1e6 + MARGIN_US && !world.stoodStill)
      world.accuse(
        "resent",
        `${send} was sent to ${late.channel} when failover.total was over: at ${listTimes(posts)}.`,
      );
    const begun = posts.find(
      (post) => !isFailure(post) && post.bytesRead() > 0 && posts.some(({ sentAt }) => sentAt > post.sentAt),
    );
    if (begun !== undefined)
      world.accuse(
        "resent",
        `${send} reached another channel, although the gateway had read the beginning of the answer of ${begun.channel}: at ${listTimes(posts)}.`,
      );
  }
}

function listTimes(posts: readonly Arrival[]): string {
  return posts.map(({ at }) => `${(at / 1000).toFixed(1)} ms`).join(", ");
}

/** Whether another channel may be tried. A cut body may look empty if it has no length and no chunks. */
function isFailure({ plan, status }: Arrival): boolean {
  if (plan === null || plan.kind === "error event") return true;
  return status >= 300 || (plan.cut !== null && plan.framing === "close");
}
