// Config → Catalog: names resolved to objects, ready to serve. A Catalog never
// changes: a reload makes a new one and swaps it in whole.

import { sha256Hex } from "../lib/secret.ts";
import type { Environment } from "./expand.ts";
import { findProxy } from "./proxy.ts";
import type { Config, Platform } from "./schema.ts";

/** Amounts are decimal strings: money is computed in billing/ only. */
export interface Limits {
  readonly usdPerDay: string | null;
  readonly usdPerMonth: string | null;
  readonly usdTotal: string | null;
  readonly requestsPerMinute: number | null;
  readonly concurrentRequests: number | null;
}

export interface Timeouts {
  readonly connectMs: number;
  readonly firstByteMs: number;
  readonly idleMs: number;
}

export interface Channel {
  readonly name: string;
  readonly platform: Platform;
  /** Without a trailing slash. */
  readonly baseUrl: URL;
  readonly credential: string;
  readonly priority: number;
  readonly weight: number;
  /** Switched off by the user: no group lists it among its channels. */
  readonly disabled?: boolean;
  /** Allow-list of globs; null: whatever the upstream's own list says. */
  readonly models: readonly string[] | null;
  /** A client's name → the upstream's name. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** The channel's own, else the environment's. */
  readonly proxy: URL | null;
  /** PEM text, read from the file that `ca` names. */
  readonly ca: string | null;
  readonly timeouts: Timeouts;
  /** Milliseconds between active probes; null: none. */
  readonly probeMs: number | null;
  /** Groups that this channel serves. */
  readonly groups: readonly string[];
}

export interface Plan {
  readonly name: string;
  readonly groups: readonly string[];
  readonly active: boolean;
  /** The first moment at which the plan is over; null: open-ended. */
  readonly until: Date | null;
}

export interface Group {
  readonly name: string;
  readonly platform: Platform;
  /** Canonical decimal: "1", "0.8". */
  readonly multiplier: string;
  readonly description: string;
  /** By priority, then as written. */
  readonly channels: readonly Channel[];
  readonly exclusive: boolean;
  /** The plans that bind this group; only for exclusive groups does it matter whether one is active. */
  readonly plans: readonly Plan[];
  readonly limits: Limits;
}

export interface Key {
  readonly name: string;
  readonly group: Group;
  /** Lower-case hex of the secret's SHA-256, whichever way the file gives the secret. */
  readonly secretSha256: string;
  readonly created: Date | null;
  readonly disabled: boolean;
  readonly expires: Date | null;
  readonly limits: Limits;
}

export interface Catalog {
  readonly listen: { readonly host: string; readonly port: number };
  readonly relayPrefix: string;
  /** Days and months of reports and limits are those of this zone. */
  readonly timezone: string;
  readonly vendor: string;
  readonly maxBodyBytes: number;
  /** Origins that browsers may call from; empty: none. */
  readonly corsOrigins: readonly string[];
  /** Host names, besides loopback's, that requests may bear. */
  readonly allowedHosts: readonly string[];
  readonly onDisconnect: { readonly drainMs: number };
  readonly failover: { readonly attempts: number; readonly totalMs: number };
  readonly ledger: {
    readonly path: string;
    readonly sync: "batch" | "always" | "never";
    readonly rotate: { readonly bytes: number | null; readonly monthly: boolean };
  };
  readonly channels: ReadonlyMap<string, Channel>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly keys: ReadonlyMap<string, Key>;
  readonly keysBySha256: ReadonlyMap<string, Key>;
  /** Price overrides as the file gives them, validated: model id → price kinds → decimal string. */
  readonly prices: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/** A plan is in force at `now`. */
export function isPlanInForce(plan: Plan, now: Date): boolean {
  return plan.active && (plan.until === null || now < plan.until);
}

/** A group may be listed, bound and used at `now`: open to all, or unlocked by a plan in force. */
export function isGroupOpen(group: Group, now: Date): boolean {
  return !group.exclusive || group.plans.some((plan) => isPlanInForce(plan, now));
}

/** What a config file alone does not hold. */
export interface Surroundings {
  /** `ledger.path`, made absolute, and the file itself where that is a link: all that stands beside it, its lock above
   *  all, is then the same for everyone. */
  readonly ledgerPath: string;
  /** PEM text of each channel that names a `ca`. */
  readonly authorities: ReadonlyMap<string, string>;
  readonly env: Environment;
}

/** The config has been checked: every name refers to something. */
export function buildCatalog(config: Config, around: Surroundings): Catalog {
  const plans = new Map(
    Object.entries(config.plans).map(([name, plan]): [string, Plan] => [
      name,
      { name, groups: plan.groups, active: plan.active, until: plan.until ?? null },
    ]),
  );
  const channels = new Map(
    Object.keys(config.channels).map((name): [string, Channel] => [name, buildChannel(name, config, around)]),
  );
  const groups = new Map(
    Object.keys(config.groups).map((name): [string, Group] => [
      name,
      buildGroup(name, config, { channels, plans }),
    ]),
  );
  const keys = buildKeys(config, groups);
  return {
    listen: config.listen,
    relayPrefix: config.relay_prefix,
    timezone: config.timezone,
    vendor: config.vendor,
    maxBodyBytes: config.max_body,
    corsOrigins: config.cors_origins,
    allowedHosts: config.allowed_hosts,
    onDisconnect: { drainMs: config.on_disconnect.drain },
    failover: { attempts: config.failover.attempts, totalMs: config.failover.total },
    ledger: {
      path: around.ledgerPath,
      sync: config.ledger.sync,
      rotate: { bytes: config.ledger.rotate.size ?? null, monthly: config.ledger.rotate.monthly },
    },
    channels,
    groups,
    plans,
    keys: new Map(keys.map((key) => [key.name, key])),
    keysBySha256: new Map(keys.map((key) => [key.secretSha256, key])),
    prices: new Map(Object.entries(config.prices).map(([model, prices]) => [model, dropAbsent(prices)])),
  };
}

function buildChannel(name: string, config: Config, around: Surroundings): Channel {
  const channel = required(config.channels[name], name);
  return {
    name,
    platform: channel.platform,
    baseUrl: channel.base_url,
    credential: channel.credential,
    priority: channel.priority,
    weight: channel.weight,
    disabled: channel.disabled,
    models: channel.models ?? null,
    aliases: new Map(Object.entries(channel.aliases)),
    headers: Object.entries(channel.headers),
    proxy: channel.proxy ?? findProxy(channel.base_url, around.env),
    ca: around.authorities.get(name) ?? null,
    timeouts: {
      connectMs: channel.timeouts.connect,
      firstByteMs: channel.timeouts.first_byte,
      idleMs: channel.timeouts.idle,
    },
    probeMs: channel.probe ?? null,
    groups: Object.entries(config.groups).flatMap(([group, { channels }]) =>
      channels.includes(name) ? [group] : [],
    ),
  };
}

interface Known {
  readonly channels: ReadonlyMap<string, Channel>;
  readonly plans: ReadonlyMap<string, Plan>;
}

function buildGroup(name: string, config: Config, known: Known): Group {
  const group = required(config.groups[name], name);
  return {
    name,
    platform: group.platform,
    multiplier: group.multiplier,
    description: group.description,
    channels: group.channels
      .map((channel) => required(known.channels.get(channel), channel))
      .filter((channel) => channel.disabled !== true)
      .sort((a, b) => a.priority - b.priority),
    exclusive: group.exclusive,
    plans: [...known.plans.values()].filter((plan) => plan.groups.includes(name)),
    limits: buildLimits(group.limits),
  };
}

function buildKeys(config: Config, groups: ReadonlyMap<string, Group>): Key[] {
  return config.keys.map((key) => ({
    name: key.name,
    group: required(groups.get(key.group), key.group),
    secretSha256: key.secret_sha256 ?? sha256Hex(key.secret ?? ""),
    created: key.created ?? null,
    disabled: key.disabled,
    expires: key.expires ?? null,
    limits: buildLimits(key.limits),
  }));
}

function buildLimits(limits: Config["keys"][number]["limits"]): Limits {
  return {
    usdPerDay: limits.usd_per_day ?? null,
    usdPerMonth: limits.usd_per_month ?? null,
    usdTotal: limits.usd_total ?? null,
    requestsPerMinute: limits.requests_per_minute ?? null,
    concurrentRequests: limits.concurrent_requests ?? null,
  };
}

function dropAbsent(prices: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(prices).flatMap(([kind, price]) => (price === undefined ? [] : [[kind, price]])),
  );
}

function required<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the config was not checked: nothing is named ${name}`);
  return value;
}
