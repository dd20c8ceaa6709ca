// Config → Catalog: names resolved to objects, ready to serve. A Catalog never
// changes: a reload makes a new one and replaces the old one as a whole.

import { sha256Hex } from "../lib/secret.ts";
import { createZoneLater, nameSystemZone, type Zone } from "../lib/text/zone.ts";
import type { Environment } from "./yaml/expand.ts";
import { findProxy } from "./proxy.ts";
import type { Config, Platform } from "./schema.ts";

/** Amounts are decimal strings: money is computed in billing/ only. */
export interface Limits {
  readonly usdPerDay: string | null;
  readonly usdPerMonth: string | null;
  readonly usdTotal: string | null;
  readonly usdPerSession: string | null;
  readonly requestsPerMinute: number | null;
  readonly requestsPerMinutePerSession: number | null;
  readonly concurrentRequests: number | null;
  /** A conversation that ends with this number of equal tool calls and results is refused. */
  readonly sameCall: number | null;
  /** How many agents of a session may be open at once. */
  readonly agents: number | null;
  /** A request reserves the most that it can cost, and has to fit. */
  readonly strict: boolean;
  /** Requests to models without a price are let in, in spite of a limit in USD. */
  readonly allowUnpriced: boolean;
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
  /** Disabled by the user: no group lists it among its channels. */
  readonly disabled?: boolean;
  /** Allow-list of globs; null: the models of the upstream's own list. */
  readonly models: readonly string[] | null;
  /** A client's name → the upstream's name. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
  /** The channel's own, or the environment's. */
  readonly proxy: URL | null;
  /** PEM text, read from the file that `ca` names. */
  readonly ca: string | null;
  readonly timeouts: Timeouts;
  /** Milliseconds between active probes; null: none. */
  readonly probeMs: number | null;
  /** The provider in the price book whose prices it pays; null: the address decides. */
  readonly priceProvider?: string | null;
  /** It costs nothing. */
  readonly free?: boolean;
  /** False: its upstream is never asked for a WebSocket. */
  readonly websocket?: boolean;
  /** Whether connections are opened before they are needed; undefined: if it is in use. */
  readonly warm?: boolean | undefined;
  /** Groups that this channel serves. */
  readonly groups: readonly string[];
}

export interface Plan {
  readonly name: string;
  readonly groups: readonly string[];
  readonly active: boolean;
  /** The plan ends at this moment; null: it does not end. */
  readonly until: Date | null;
}

export interface Group {
  readonly name: string;
  readonly platform: Platform;
  /** Canonical decimal: "1", "0.8". */
  readonly multiplier: string;
  readonly description: string;
  /** By priority, then as written; without disabled ones. */
  readonly channels: readonly Channel[];
  /** The names of all its channels, in the order of the file. */
  readonly listed: readonly string[];
  readonly exclusive: boolean;
  /** The plans that include this group. Only an exclusive group needs an active one. */
  readonly plans: readonly Plan[];
  readonly limits: Limits;
}

export interface Key {
  readonly name: string;
  readonly group: Group;
  /** Lower-case hex of the secret's SHA-256, in whichever form the file has the secret. */
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
  readonly zone: Zone;
  /** `gateway run claude` shows spending in Claude Code's status line. */
  readonly statusline: boolean;
  readonly vendor: string;
  /** On which listeners the console's page is served. */
  readonly console: "loopback" | "always" | "never";
  readonly maxBodyBytes: number;
  /** Origins that browsers may call from; empty: none. */
  readonly corsOrigins: readonly string[];
  /** Accepted `Host` headers besides loopback names. */
  readonly allowedHosts: readonly string[];
  /** Whether prompts are analysed for why their caches are missed. */
  readonly cacheAnalysis: boolean;
  readonly onDisconnect: { readonly drainMs: number };
  /** Connections to upstreams are opened before they are needed. */
  readonly warm: boolean;
  readonly failover: { readonly attempts: number; readonly totalMs: number };
  readonly ledger: {
    readonly path: string;
    readonly sync: "batch" | "always" | "never";
    readonly rotate: { readonly bytes: number | null; readonly monthly: boolean };
  };
  readonly alerts: {
    /** Percentages of a USD limit, rising. */
    readonly at: readonly number[];
    /** A program and its arguments, without a shell; null: none. */
    readonly command: readonly string[] | null;
  };
  readonly channels: ReadonlyMap<string, Channel>;
  readonly groups: ReadonlyMap<string, Group>;
  readonly plans: ReadonlyMap<string, Plan>;
  readonly keys: ReadonlyMap<string, Key>;
  readonly keysBySha256: ReadonlyMap<string, Key>;
  /** Price overrides from the file, validated: model id → price kind → decimal string. */
  readonly prices: ReadonlyMap<string, Readonly<Record<string, string>>>;
}

/** Whether a plan is active at `now`. */
export function isPlanInForce(plan: Plan, now: Date): boolean {
  return plan.active && (plan.until === null || now < plan.until);
}

/** Whether a group may be listed, bound and used at `now`: it is open to all, or an active plan includes it. */
export function isGroupOpen(group: Group, now: Date): boolean {
  return !group.exclusive || group.plans.some((plan) => isPlanInForce(plan, now));
}

/** Whether a key works, as lists of keys show it. */
export function judgeKey(key: Key, now: Date): "active" | "disabled" | "expired" | "plan inactive" {
  if (key.disabled) return "disabled";
  if (key.expires !== null && now >= key.expires) return "expired";
  return isGroupOpen(key.group, now) ? "active" : "plan inactive";
}

/** What a catalog needs and the config file does not contain. */
export interface CatalogContext {
  /** `ledger.path`, made absolute and with links resolved, so that the files beside it, above all its lock, are the same
   *  for every process. */
  readonly ledgerPath: string;
  /** PEM text by channel, for channels with a `ca`. */
  readonly authorities: ReadonlyMap<string, string>;
  readonly env: Environment;
}

/** Expects a checked config, in which every name refers to something. */
export function buildCatalog(config: Config, around: CatalogContext): Catalog {
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
  const keys = buildKeys(config.keys, groups);
  return {
    listen: config.listen,
    relayPrefix: config.relay_prefix,
    statusline: config.statusline,
    zone: createZoneLater(() => (config.timezone === "system" ? nameSystemZone() : config.timezone)),
    vendor: config.vendor,
    console: config.console,
    maxBodyBytes: config.max_body,
    corsOrigins: config.cors_origins,
    allowedHosts: config.allowed_hosts,
    cacheAnalysis: config.cache_analysis === "on",
    onDisconnect: { drainMs: config.on_disconnect.drain },
    warm: config.warm,
    failover: { attempts: config.failover.attempts, totalMs: config.failover.total },
    ledger: {
      path: around.ledgerPath,
      sync: config.ledger.sync,
      rotate: { bytes: config.ledger.rotate.size ?? null, monthly: config.ledger.rotate.monthly },
    },
    alerts: { at: config.alerts.at.toSorted((a, b) => a - b), command: config.alerts.command ?? null },
    channels,
    groups,
    plans,
    ...indexKeys(keys),
    prices: new Map(Object.entries(config.prices).map(([model, prices]) => [model, dropAbsent(prices)])),
  };
}

function buildChannel(name: string, config: Config, around: CatalogContext): Channel {
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
    priceProvider: channel.price_provider ?? null,
    free: channel.free,
    websocket: channel.websocket,
    warm: channel.warm,
    groups: Object.entries(config.groups).flatMap(([group, { channels }]) =>
      channels.includes(name) ? [group] : [],
    ),
  };
}

interface ResolvedNames {
  readonly channels: ReadonlyMap<string, Channel>;
  readonly plans: ReadonlyMap<string, Plan>;
}

function buildGroup(name: string, config: Config, known: ResolvedNames): Group {
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
    listed: group.channels,
    exclusive: group.exclusive,
    plans: [...known.plans.values()].filter((plan) => plan.groups.includes(name)),
    limits: buildLimits(group.limits),
  };
}

export function indexKeys(keys: readonly Key[]): Pick<Catalog, "keys" | "keysBySha256"> {
  return {
    keys: new Map(keys.map((key) => [key.name, key])),
    keysBySha256: new Map(keys.map((key) => [key.secretSha256, key])),
  };
}

export function buildKeys(keys: Config["keys"], groups: ReadonlyMap<string, Group>): Key[] {
  return keys.map((key) => ({
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
    usdPerSession: limits.usd_per_session ?? null,
    requestsPerMinute: limits.requests_per_minute ?? null,
    requestsPerMinutePerSession: limits.requests_per_minute_per_session ?? null,
    concurrentRequests: limits.concurrent_requests ?? null,
    sameCall: limits.same_call ?? null,
    agents: limits.agents ?? null,
    strict: limits.strict,
    allowUnpriced: limits.unpriced === "allow",
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
