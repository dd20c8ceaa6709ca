// Words of reports. The page imports this file, so it must not import the database.

import type { CacheMiss, Line, Payer } from "../ledger/line.ts";
import type { VersionChange } from "./versions.ts";

export const FILTERS = ["key", "group", "model", "channel", "tool", "label", "session", "outcome"] as const;
export type FilterName = (typeof FILTERS)[number];

export const STACKS = ["model", "tool", "key", "group", "channel", "label", "outcome"] as const;
export type Stack = (typeof STACKS)[number];
export const MEASURES = ["cost", "tokens", "requests", "errors"] as const;
export type Measure = (typeof MEASURES)[number];
export const OTHERS = "others";

export const ORDERS = ["newest", "charge", "missed"] as const;
export type Order = (typeof ORDERS)[number];

export const FAILED = "failed";

export const OUTCOMES: Readonly<Record<Line["outcome"], string>> = {
  complete: "answered completely",
  client_closed: "the client left before the end",
  upstream_cut: "the upstream broke off",
  upstream_error: "the upstream answered with an error",
  interrupted: "the gateway ended while the request was with the upstream",
};

export const BASES: Readonly<Record<Line["basis"], string>> = {
  exact: "usage as the upstream reported it",
  partial: "the response broke off: reported usage, and the missing part estimated",
  unpriced: "usage as the upstream reported it, but there is no price for it",
  unknown: "the usage could not be obtained",
};

export const PAYERS: Readonly<Record<Payer, string>> = {
  plan: "paid by a plan",
  plan_overage: "the plan was used up, and its account is billed",
};

export type Cause = Pick<CacheMiss, "because" | "at" | "part" | "detail" | "from">;

const PLAIN: Readonly<Record<string, string>> = {
  "tools_changed order": "tools in another order",
  "system_changed attribution": "the attribution line changed",
  model_changed: "another model",
  tier_changed: "another service tier",
  lifetime_passed: "its lifetime had passed",
  messages_changed: "earlier messages changed",
  marks_changed: "no cache mark near what was cached",
  upstream_lost: "no cause found: the upstream may have lost the cache",
  "upstream_lost perhaps": "the upstream may have lost a part that did not change",
};

const NAMED: Readonly<Record<string, (cause: Cause, place: string) => string>> = {
  tools_changed: ({ detail = "changed" }, place) =>
    place === "" ? "tools changed" : `tool${place} ${detail}`,
  system_changed: ({ detail }, place) =>
    detail === "digits" ? `a time or number in system part${place}` : `system part${place} changed`,
  settings_changed: ({ part = "a setting", detail }) =>
    `${part} changed${detail === "perhaps" ? ", which may be the cause" : ""}`,
  channel_changed: ({ from = "before" }) => `another channel than ${from}`,
};

export function describeCause(cause: Cause): string {
  const { because, at, detail } = cause;
  const words = NAMED[because]?.(cause, at === undefined ? "" : ` ${at}`);
  return PLAIN[`${because} ${detail}`] ?? PLAIN[because] ?? words ?? because.replaceAll("_", " ");
}

const HELP: Readonly<Record<string, string>> = {
  "system_changed attribution":
    "set CLAUDE_CODE_ATTRIBUTION_HEADER=0 for the tool: this upstream caches the line too",
  "system_changed digits": "move the time or counter out of the system prompt, into the last message",
  "tools_changed order": "send the tools in a fixed order, for example sorted by name",
  tools_changed: "keep the same tools for the whole session: load MCP servers and skills at its beginning",
  system_changed: "keep the system prompt the same for the whole session",
  settings_changed: "keep the setting the same for the whole session",
  messages_changed:
    "check what rewrites earlier messages: a hook, a plugin, or a limit that drops the oldest ones",
  lifetime_passed:
    "if pauses are usual, ask for the longer lifetime (Claude Code: ENABLE_PROMPT_CACHING_1H=1, Anthropic: ttl 1h, OpenAI: prompt_cache_retention 24h)",
  channel_changed:
    "find out why the first channel failed (`gateway channels`), or use the second only in emergencies (priority)",
  model_changed: "use one model for a conversation: each has a cache of its own",
  tier_changed: "use one service tier for a conversation",
  marks_changed: "set cache_control at the end of each request, fewer than 20 blocks after the previous mark",
};

export function adviseOn({ because, detail }: Cause): string | null {
  return HELP[`${because} ${detail ?? ""}`] ?? HELP[because] ?? null;
}

export function describeChange({ tool, version, before, percent, turns }: VersionChange): string {
  return `${tool} ${version} sends ${percent} % more input a turn than ${before} (${turns} turns of each)`;
}

/** Clients can make a tree of any depth. */
const MAX_DEPTH = 16;

interface Agent {
  /** Null: the main agent. */
  readonly agent: string | null;
  readonly parent: string | null;
}

/** Lists the main agent first, even without requests, and each agent before those that it started.
 *  An agent with an unknown parent is below the main agent, and so is the first agent of a circle. */
export function listTree<Row extends Agent>(rows: readonly Row[]) {
  const known = new Set(rows.map(({ agent }) => agent));
  const others = rows.filter(({ agent }) => agent !== null);
  const children = Map.groupBy(others, ({ parent }) => (known.has(parent) ? parent : null));
  const below = (list: readonly Row[] = [], depth = 1) => list.map((row) => ({ row, depth })).toReversed();
  const places: { readonly row: Row | null; readonly depth: number }[] = [
    { row: rows.find(({ agent }) => agent === null) ?? null, depth: 0 },
  ];
  const placed = new Set<Row>();
  const waiting = [...below(others), ...below(children.get(null))];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (placed.has(next.row)) continue;
    placed.add(next.row);
    places.push(next);
    waiting.push(...below(children.get(next.row.agent), Math.min(MAX_DEPTH, next.depth + 1)));
  }
  return places;
}

export function describeRise(windows: Readonly<Record<string, number>>): string {
  const rises = Object.entries(windows).map(([name, rise]) => `${name} rose by ${rise} %`);
  return `While the session ran, the plan's window of ${rises.join(", that of ")} (an estimate: other sessions and devices use the same account)`;
}
