// Whether a key may call an endpoint, and which channels can serve the model.

import {
  adviseActivation,
  type Catalog,
  type Channel,
  type Group,
  isGroupOpen,
  type Key,
} from "../../config/catalog.ts";
import { type Endpoint, LISTS } from "../../dialects/dialect.ts";
import { describeAnswerPaths, describeList } from "../../dialects/platforms.ts";
import { GatewayError } from "../../lib/errors.ts";
import { hasUsdLimit } from "../../billing/limits/limits.ts";
import { isAllAt } from "../../billing/prices.ts";

export interface Candidate {
  readonly channel: Channel;
  readonly model: string | null;
  readonly isListed?: boolean;
  /** A `*` alias or a default model replaces the client's model. */
  readonly isReplaced?: boolean;
  readonly isConverted?: true;
}

export function requireAccess(key: Key, endpoint: Endpoint, catalog: Catalog, now: number): void {
  const { group } = key;
  if (endpoint.onlyAt !== undefined && !isAllAt(group, endpoint.onlyAt)) {
    const text = `Unknown path: for this key, this gateway has no endpoint POST ${endpoint.label}. Only groups whose channels are all at ${endpoint.onlyAt}'s own address have it.`;
    throw new GatewayError("unknown_path", text);
  }
  if (!endpoint.platforms.includes(group.platform)) {
    throw new GatewayError("wrong_platform", describeMismatch(key, endpoint, catalog, now));
  }
  const unbillable = endpoint.purpose === "other" ? explainUnbillable(key) : null;
  if (unbillable !== null) {
    const text = `The gateway has no such endpoint. The request would go upstream uncounted, but ${unbillable}.`;
    throw new GatewayError("limit_unenforceable", text);
  }
  if (group.exclusive && !isGroupOpen(group, new Date(now))) {
    const [plan] = group.plans;
    const plans = group.plans.map((plan) => `"${plan.name}"`).join(" or ");
    const remedy =
      plan === undefined
        ? "no plan in the config file includes it"
        : `\`${adviseActivation(plan, new Date(now))}\` activates it`;
    throw new GatewayError(
      "plan_inactive",
      `The key "${key.name}" belongs to the group "${group.name}", which is open only while the plan ${plans || "that includes it"} is active: ${remedy}.`,
      { wireCode: "plan_inactive" },
    );
  }
}

/** A request to an unknown path has no known price or model. */
function explainUnbillable({ name, limits, group }: Key): string | null {
  const hasLimit = hasUsdLimit(limits) || hasUsdLimit(group.limits);
  if (hasLimit) return `the key "${name}" or its group "${group.name}" has a limit in USD`;
  const listed = group.channels.find(({ models }) => models !== null);
  return listed === undefined ? null : `the channel "${listed.name}" has a list of models`;
}

export function findMatch(group: Group, model: string | null): readonly Candidate[] {
  // The config refuses groups without channels, so all are disabled.
  if (group.channels.length === 0) {
    const text = `All channels of the group "${group.name}" are disabled in the config file, or have no credential. \`gateway channels\` says why.`;
    throw new GatewayError("unavailable", text, { retrySeconds: 60 });
  }
  const own = findCandidates(group, model);
  const candidates = own.length > 0 ? own : findDefault(group);
  if (candidates.length > 0) return candidates;
  throw new GatewayError(
    "unknown_model",
    `No channel of the group "${group.name}" serves the model "${model}". \`gateway models --group ${group.name}\` lists what it serves. If the model belongs to another platform, check that the key's group is of that platform.`,
    { param: "model" },
  );
}

function findCandidates(group: Group, model: string | null): Candidate[] {
  const candidates: Candidate[] = [];
  for (const channel of group.channels) {
    const upstream = model === null ? null : resolveModel(channel, model);
    if (upstream === undefined) continue;
    const isReplaced = upstream !== model && model !== null && !channel.aliases.has(model);
    candidates.push({ channel, model: upstream, isReplaced });
  }
  return candidates;
}

export function isNamed(model: string, candidates: readonly Candidate[]): boolean {
  return candidates.some(
    ({ channel, model: upstream }) =>
      upstream !== model || channel.aliases.has(upstream ?? "") || channel.models?.includes(upstream ?? ""),
  );
}

export function findDefault(group: Group): Candidate[] {
  if (group.defaultModel === null) return [];
  return findCandidates(group, group.defaultModel).map((each) => ({ ...each, isReplaced: true }));
}

export function resolveModel(channel: Channel, model: string): string | undefined {
  const { aliases, aliasGlobs, models } = channel;
  const alias = aliases.get(model) ?? aliasGlobs.find(([glob]) => matchesGlob(glob, model))?.[1];
  if (alias !== undefined) return alias;
  const isServed = models === null || models.some((glob) => matchesGlob(glob, model));
  return isServed ? model : undefined;
}

function describeMismatch(key: Key, endpoint: Endpoint, catalog: Catalog, now: number): string {
  const { group } = key;
  const needed = endpoint.platforms.join(" or ");
  const describeFitting = LISTS.has(endpoint.purpose) ? describeList : describeAnswerPaths;
  const fitting = [...catalog.groups.values()]
    .filter((other) => endpoint.platforms.includes(other.platform) && isGroupOpen(other, new Date(now)))
    .map((other) => `"${other.name}"`);
  const groups =
    fitting.length === 0
      ? "No group that is open now fits it."
      : `Groups that fit it: ${fitting.join(", ")}.`;
  return (
    `The key "${key.name}" belongs to the group "${group.name}", whose platform is ${group.platform}, but ${endpoint.label} needs a key of a ${needed} group. ` +
    `${groups} With this key, call ${describeFitting(group.platform, catalog.relayPrefix)}.`
  );
}

function matchesGlob(glob: string, text: string): boolean {
  const parts = glob.split("*");
  const first = parts[0] ?? "";
  if (parts.length === 1) return glob === text;
  const last = parts.at(-1) ?? "";
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last))
    return false;
  let from = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, from);
    if (found < 0 || found + part.length > end) return false;
    from = found + part.length;
  }
  return true;
}
