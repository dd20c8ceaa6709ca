// Which agents of a session are open. An agent is open while one of its requests runs, for five minutes after its last
// one ended, and while an agent that it started is open. The main agent always counts: it waits for the others.

import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientIdentity } from "../ledger/line.ts";

/** Between two of its requests, an agent runs a tool. */
const OPEN_MS = 5 * 60_000;
/** Sessions come and go. */
const MAX_FAMILIES = 10_000;

interface Agent {
  running: number;
  lastAt: number;
  readonly parent: string;
}

/** The agents of one session that one key or group limits, without the main agent. */
type Family = Map<string, Agent>;

export type AgentIds = Pick<ClientIdentity, "session" | "agent" | "parent">;

/** The main agent has no name. */
const MAIN = "";

export class OpenAgents {
  /** By limit and session; the least recently used come first. */
  readonly #families = new BoundedMap<string, Family>(MAX_FAMILIES);

  /** How many agents are open once this one is. */
  countWith(owner: string, ids: AgentIds, now: number): number {
    const family = this.#find(owner, ids);
    const name = nameAgent(ids);
    closeIdle(family, now);
    return family.size + 1 + (name === MAIN || family.has(name) ? 0 : 1);
  }

  /** The agent sends a request. Returns what to call when it has ended; null: nothing. */
  enter(owner: string, ids: AgentIds, now: number): ((now: number) => void) | null {
    const name = nameAgent(ids);
    if (name === MAIN) return null;
    const family = this.#find(owner, ids);
    const parent = ids.agent === undefined ? MAIN : (ids.parent ?? MAIN);
    const agent = family.get(name) ?? { running: 0, lastAt: now, parent };
    agent.running += 1;
    family.set(name, agent);
    return (end) => {
      agent.running -= 1;
      agent.lastAt = end;
    };
  }

  /** opencode gives each agent a session of its own and names the session that started it. */
  #find(owner: string, ids: AgentIds): Family {
    const own = `${owner} ${ids.session ?? ""}`;
    const of = ids.agent === undefined && ids.parent !== undefined ? `${owner} ${ids.parent}` : own;
    const family = this.#families.get(of) ?? this.#families.get(own) ?? new Map<string, Agent>();
    for (const id of [of, own]) this.#families.set(id, family);
    return family;
  }
}

function nameAgent({ session, agent, parent }: AgentIds): string {
  if (agent !== undefined) return agent;
  return parent === undefined ? MAIN : (session ?? MAIN);
}

/** Children come after their parents, so that they are looked at first. */
function closeIdle(family: Family, now: number): void {
  const parents = new Set<string>();
  for (const [name, { running, lastAt, parent }] of [...family].toReversed()) {
    // A time to come is from before the clock was set back.
    const isOpen = running > 0 || Math.abs(now - lastAt) < OPEN_MS || parents.has(name);
    if (isOpen) parents.add(parent);
    else family.delete(name);
  }
}
