// Stops an agent in a loop (`same_call`). Waiting does not help, so clients are not invited to try again.

import type { Key, Limits } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Holder } from "../ledger/sums.ts";
import { NEVER_RESETS_RETRY_SECONDS } from "./limits.ts";

/** Throws `limit_spent`. `sameCalls`: how many equal pairs of tool call and result end the conversation; it is read only if
 *  a limit needs it. */
export function stopLoop(
  { name, limits, group }: Key,
  session: string | undefined,
  sameCalls: () => number,
): void {
  const owners: readonly (readonly [Holder, Limits])[] = [
    [{ kind: "key", name }, limits],
    [{ kind: "group", name: group.name }, group.limits],
  ];
  const limited = owners.filter(([, { sameCall }]) => sameCall !== null);
  const count = limited.length === 0 ? 0 : sameCalls();
  for (const [owner, { sameCall }] of limited) {
    if (sameCall === null || count < sameCall) continue;
    const holder: Holder = session === undefined ? { kind: "key", name } : { kind: "session", name: session };
    throw new GatewayError(
      "limit_spent",
      `The ${holder.kind} "${holder.name}" has made the same tool call ${count} times in a row, with the same result each time, and the ${owner.kind} "${owner.name}" allows less than ${sameCall} (same_call). Give the agent a new instruction, or raise same_call.`,
      { retryAfterSeconds: NEVER_RESETS_RETRY_SECONDS },
    );
  }
}
