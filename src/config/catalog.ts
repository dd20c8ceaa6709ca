// Config → Catalog: names resolved to objects, ready to serve. A Catalog never
// changes: a reload makes a new one and swaps it in whole.

import type { Platform } from "./schema.ts";

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
  /** Allow-list of globs; null: whatever the upstream's own list says. */
  readonly models: readonly string[] | null;
  /** A client's name → the upstream's name. */
  readonly aliases: ReadonlyMap<string, string>;
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>;
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
