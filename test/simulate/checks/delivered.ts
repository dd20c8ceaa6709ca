// Checks that an answer that its upstream has sent completely reaches a client that waits for it, where nothing that
// happens in the run explains why it does not.

import type { Send } from "../clients/line.ts";
import type { World } from "../run.ts";

/** These end requests that are in flight, or connections with bytes on their way. */
const BREAKING = new Set([
  "kill",
  "cut power",
  "stop",
  "standstill",
  "ledger removed",
  "ledger moved",
  "reprice",
  "upstream down",
  "idle connections closed",
]);

export function checkDelivered(world: World): void {
  const { plan } = world;
  if (world.unasked || plan.maxFiles < 1024) return;
  if (plan.happenings.some(({ kind }) => BREAKING.has(kind))) return;
  const resetting = new Set(
    plan.channels
      .filter(({ idleCloseMs, idleClose }) => idleCloseMs > 0 && idleClose === "rst")
      .map(({ name }) => name),
  );
  for (const send of world.sends) {
    const last = world.bySend.get(send.name)?.at(-1);
    if (last === undefined || isDelivered(send) || !waits(send) || resetting.has(last.channel)) continue;
    const { plan: answer, sent, status, tainted, recorded } = last;
    const isWhole = answer?.kind === "answer" && answer.cut === null && answer.missing === 0 && sent;
    if (!isWhole || status !== 200 || tainted || recorded !== null) continue;
    world.accuse(
      "delivered",
      `The upstream ${last.channel} answered ${send.name} completely, but its client got ${send.reply?.status ?? "nothing"} (${send.end}, ${send.reply?.body.length ?? 0} bytes).`,
    );
    return;
  }
}

/** On a WebSocket, the last message may come before the upstream's own work on the response is over. */
function isDelivered({ whole, events }: Send): boolean {
  return whole !== null || events?.at(-1)?.includes('"type":"response.completed"') === true;
}

/** On a WebSocket, the end of one response may end others that run at the same time. */
function waits({ client, request, end }: Send): boolean {
  if (end === "left" || end === "open" || (end === "gave up" && request.slow !== null)) return false;
  return request.bad === null && request.leave === null && !client.pipelined;
}
