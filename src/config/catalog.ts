// Config → Catalog: names become objects. A Catalog never changes.

import { createZone, type Zone } from "../lib/text/zone.ts";
import type { Environment } from "./yaml/expand.ts";
import { findProxy } from "./proxy.ts";
import type { Config } from "./schema.ts";

export type { Limits } from "./schema.ts";

type ChannelSettings = Readonly<Config["channels"][string]>;

export interface Channel extends Omit<ChannelSettings, "ca" | "headers"> {
  readonly name: string;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  readonly proxy: URL | null;
  readonly ca: string | null;
  readonly lack: string | null;
  readonly groups: readonly string[];
}

export type TraceSettings = NonNullable<Config["otlp"]>;

export interface Plan extends Readonly<Config["plans"][string]> {
  readonly name: string;
}

export interface Group extends Omit<Readonly<Config["groups"][string]>, "channels" | "multiplier"> {
  readonly name: string;
  readonly multiplier: string;
  readonly usesLogin: boolean;
  readonly mixesDialects: boolean;
  readonly channels: readonly Channel[];
  readonly listed: readonly string[];
  /** Only an exclusive group needs an active plan. */
  readonly plans: readonly Plan[];
}

export interface Key extends Omit<Readonly<Config["keys"][number]>, "group"> {
  readonly group: Group;
}

type Names = "channels" | "groups" | "plans" | "keys" | "timezone";

export interface Catalog extends Omit<Readonly<Config>, Names> {
  readonly zone: Zone;
  readonly channels: ReadonlyMap<string, Channel>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly keys: ReadonlyMap<string, Key>;
  readonly keysBySha256: ReadonlyMap<string, Key>;
}

export function isPlanInForce(plan: Plan, now: Date): boolean {
  return plan.active && (plan.until === null || now < plan.until);
}

/** A limit counts official amount × this factor,
 *  and the full amount if a plan pays. */
export function limitMultiplier({ usesLogin, multiplier }: Pick<Group, "usesLogin" | "multiplier">): string {
  return usesLogin ? "1" : multiplier;
}

export function isGroupOpen(group: Group, now: Date): boolean {
  return !group.exclusive || group.plans.some((plan) => isPlanInForce(plan, now));
}

export function judgeKey(key: Key, now: Date): "active" | "disabled" | "expired" | "plan inactive" {
  if (key.disabled) return "disabled";
  if (key.expires !== null && now >= key.expires) return "expired";
  return isGroupOpen(key.group, now) ? "active" : "plan inactive";
}

export interface CatalogContext {
  /** Absolute, and not a link, so that all processes use one lock next to it. */
  readonly ledgerPath: string;
  readonly authorities: ReadonlyMap<string, string>;
  readonly lacking: ReadonlyMap<string, string>;
  readonly env: Environment;
}

/** Expects a checked config: every name in it exists. */
export function buildCatalog(config: Config, around: CatalogContext): Catalog {
  const { timezone, keys, ...settings } = config;
  const plans = mapEntries(config.plans, (plan, name): Plan => ({ name, ...plan }));
  const channels = mapEntries(config.channels, (channel, name): Channel => ({
    ...channel,
    name,
    proxy: channel.proxy ?? findProxy(channel.baseUrl, around.env),
    ca: around.authorities.get(name) ?? null,
    lack: around.lacking.get(name) ?? null,
    credential: around.lacking.has(name) ? "" : channel.credential,
    disabled: channel.disabled || around.lacking.has(name),
    groups: Object.entries(config.groups).flatMap(([group, each]) =>
      each.channels.includes(name) ? [group] : [],
    ),
  }));
  const groups = mapEntries(config.groups, (group, name): Group => {
    const usesLogin = group.channels.some((channel) => channels.get(channel)?.usesLogin);
    const usable = group.channels
      .flatMap((channel) => channels.get(channel) ?? [])
      .filter(({ disabled }) => !disabled);
    return {
      ...group,
      name,
      usesLogin,
      mixesDialects: group.convert || usable.some(({ platform }) => platform !== group.platform),
      // A client's own login costs nothing more: its plan pays.
      multiplier: group.multiplier ?? (usesLogin ? "0" : "1"),
      channels: usable.sort((a, b) => a.priority - b.priority),
      listed: group.channels,
      plans: [...plans.values()].filter((plan) => plan.groups.includes(name)),
    };
  });
  const bound = keys.flatMap((key): Key[] => {
    const group = groups.get(key.group);
    return group === undefined ? [] : [{ ...key, group }];
  });
  return {
    ...settings,
    zone: createZone(timezone),
    ledger: { ...config.ledger, path: around.ledgerPath },
    channels,
    groups,
    plans,
    keys: new Map(bound.map((key) => [key.name, key])),
    keysBySha256: new Map([
      ...bound.flatMap((key) => (key.previous === null ? [] : [[key.previous.secret_sha256, key] as const])),
      ...bound.map((key) => [key.secretSha256, key] as const),
    ]),
  };
}

function mapEntries<From, To>(
  entries: Readonly<Record<string, From>>,
  build: (entry: From, name: string) => To,
): Map<string, To> {
  return new Map(Object.entries(entries).map(([name, entry]) => [name, build(entry, name)]));
}

export function adviseActivation({ name, until }: Plan, now: Date): string {
  return `gateway plans activate ${name}${until !== null && until <= now ? " --until DATE" : ""}`;
}

export function adviseRotation({ name }: Key): string {
  return `gateway keys rotate ${name} --expires 30d`;
}
