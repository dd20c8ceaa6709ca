// How people read a session: its agents as a tree, and what it took of a plan in words. The page uses it, too.

import type { Totals } from "./sums.ts";

export interface AgentRow extends Totals {
  /** Null: the main agent. */
  readonly agent: string | null;
  /** The agent that started it. Null: the main agent did, or it is the main agent. */
  readonly parent: string | null;
  /** Of its last request. */
  readonly model: string;
  readonly cache_misses: number;
}

/** What a session took of a plan. */
export interface SessionRise {
  /** Percent of each window: the difference between its first and its last answer. */
  readonly windows: Readonly<Record<string, number>>;
  /** Other sessions ran at the same time and had the plan pay, so a part of it is theirs. */
  readonly windows_shared: boolean;
}

export interface AgentPlace {
  /** Empty: the main agent. */
  readonly name: string;
  /** Null: it made no request. */
  readonly row: AgentRow | null;
  /** Of each ancestor below the main agent and of the agent itself: whether another agent of the same parent follows. */
  readonly branches: readonly boolean[];
}

/** Clients choose the ids. A deeper tree is drawn as if it ended here. */
const MAX_DEPTH = 16;

/** The agents as a tree below the main agent, each before those that it started. An agent of an unknown parent is below
 *  the main agent. So is the first of several agents that name each other as their parents. */
export function listTree(rows: readonly AgentRow[]): AgentPlace[] {
  const agents = new Map(rows.map((row) => [row.agent ?? "", row]));
  const names = [...agents.keys()].filter((name) => name !== "");
  const children = Map.groupBy(names, (name) => agents.get(name)?.parent ?? "");
  const isTop = (name: string): boolean => {
    const parent = agents.get(name)?.parent ?? "";
    return parent === "" || !agents.has(parent);
  };
  const places: AgentPlace[] = [];
  const placed = new Set<string>([""]);
  const place = (tops: readonly string[]): void => {
    const waiting = tops.map((name, index) => ({ name, branches: [index < tops.length - 1] })).toReversed();
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { name, branches } = next;
      if (placed.has(name)) continue;
      placed.add(name);
      places.push({ name, row: agents.get(name) ?? null, branches });
      const own = children.get(name) ?? [];
      const deeper = own.map((child, index) => ({
        name: child,
        branches: branches.length < MAX_DEPTH ? [...branches, index < own.length - 1] : branches,
      }));
      waiting.push(...deeper.toReversed());
    }
  };
  place(names.filter(isTop));
  for (const name of names) if (!placed.has(name)) place([name]);
  return [{ name: "", row: agents.get("") ?? null, branches: [] }, ...places];
}

/** A sentence, without a full stop. */
export function describeRise({ windows, windows_shared: isShared }: SessionRise): string {
  const rises = Object.entries(windows).map(([name, rise]) => `${name} rose by ${rise} %`);
  const why = isShared
    ? "other sessions ran at the same time, and a part of it is theirs"
    : "other devices use the same account";
  return `While it ran, the plan's window of ${rises.join(", that of ")} (an estimate: ${why})`;
}
