// Stops an agent that runs while nobody watches: a loop (`same_call`), or too many agents at once (`agents`). Waiting does
// not help, so clients are not invited to try again.

import type { Key, Limits } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Holder } from "../ledger/sums/sums.ts";
import { type AgentIds, OpenAgents } from "./agents.ts";
import type { CountWarning } from "./stops.ts";
import { NEVER_RESETS_RETRY_SECONDS } from "./limits.ts";

export interface GuardedRequest {
  readonly client: AgentIds;
  /** How many equal pairs of tool call and result end its conversation. Read only if a limit needs it. */
  readonly sameCalls: () => number;
}

export interface Guard {
  /** Throws `limit_spent`. Returns what to call when the request has ended; null: nothing. */
  enter(key: Key, request: GuardedRequest, now: number): (() => void) | null;
}

export interface GuardOptions {
  /** Called for each refusal. */
  readonly report: (warning: CountWarning) => void;
  readonly now: () => number;
}

interface Owner {
  readonly holder: Holder;
  readonly limits: Limits;
}

export function createGuard({ report, now: readClock }: GuardOptions): Guard {
  const open = new OpenAgents();
  const refuse = (holder: Holder, limit: CountWarning["limit"], count: number, text: string): never => {
    report({ holder, limit, count, percent: 100, resets: null });
    throw new GatewayError("limit_spent", text, { retryAfterSeconds: NEVER_RESETS_RETRY_SECONDS });
  };
  const checkCalls = ({ holder, limits: { sameCall } }: Owner, count: number, session: Holder): void => {
    if (sameCall === null || count < sameCall) return;
    refuse(
      session,
      "same_call",
      sameCall,
      `${describe(session)} has made the same tool call ${count} times in a row, with the same result each time, and the ${nameOf(holder)} allows less than ${sameCall} (same_call). Give the agent a new instruction, or raise same_call.`,
    );
  };
  const checkAgents = (owner: Owner, client: AgentIds, session: Holder, now: number): void => {
    const { holder, limits } = owner;
    if (limits.agents === null) return;
    const count = open.countWith(nameOf(holder), client, now);
    if (count <= limits.agents) return;
    refuse(
      session,
      "agents",
      limits.agents,
      `${describe(session)} may have ${countAgents(limits.agents)} open at once, and this would be number ${count} (agents, of the ${nameOf(holder)}). Wait until some have ended, or raise agents.`,
    );
  };
  return {
    enter(key, { client, sameCalls }, now) {
      const owners = listOwners(key);
      if (owners.length === 0) return null;
      const session: Holder =
        client.session === undefined
          ? { kind: "key", name: key.name }
          : { kind: "session", name: client.session };
      const count = limitsCalls(key) ? sameCalls() : 0;
      for (const owner of owners) checkCalls(owner, count, session);
      for (const owner of owners) checkAgents(owner, client, session, now);
      const counted = owners.filter(({ limits }) => limits.agents !== null);
      const leaves = counted.flatMap(({ holder }) => open.enter(nameOf(holder), client, now) ?? []);
      return leaves.length === 0 ? null : leaveOnce(leaves, readClock);
    },
  };
}

function listOwners({ name, limits, group }: Key): Owner[] {
  const owners: Owner[] = [];
  if (isGuarded(limits)) owners.push({ holder: { kind: "key", name }, limits });
  if (isGuarded(group.limits))
    owners.push({ holder: { kind: "group", name: group.name }, limits: group.limits });
  return owners;
}

/** Whether a limit needs to know the tool calls of the key's requests. */
export function limitsCalls({ limits, group }: Key): boolean {
  return limits.sameCall !== null || group.limits.sameCall !== null;
}

function isGuarded({ sameCall, agents }: Limits): boolean {
  return sameCall !== null || agents !== null;
}

function leaveOnce(leaves: ReadonlyArray<(now: number) => void>, now: () => number): () => void {
  let left = false;
  return () => {
    if (left) return;
    left = true;
    for (const leave of leaves) leave(now());
  };
}

function nameOf({ kind, name }: Holder): string {
  return `${kind} "${name}"`;
}

function describe(holder: Holder): string {
  return `The ${nameOf(holder)}`;
}

function countAgents(count: number): string {
  return count === 1 ? "1 agent" : `${count} agents`;
}
