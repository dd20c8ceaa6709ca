// What the page's requests get, for both sides. Amounts are exact decimals in USD, times are ISO or milliseconds.
// All text comes from clients, upstreams or the config: the page shows it as text and never as markup.

import type { DescribedTotals } from "../billing/report/report.ts";
import type { DescribedSession, Miss } from "../billing/report/sessions.ts";
import type { Group } from "../config/catalog.ts";
import type { ChannelView } from "../gateway/channels/view.ts";
import type { OpenStream, RequestRecord } from "../gateway/observe/observer.ts";

export type { DescribedTotals } from "../billing/report/report.ts";
export type { Miss } from "../billing/report/sessions.ts";
export type { ChannelState, ChannelView } from "../gateway/channels/view.ts";
export type { RequestRecord } from "../gateway/observe/observer.ts";

/** The header that every request of the page carries, beside the cookie. */
export const TOKEN_HEADER = "x-gateway-console";

export interface SignedIn {
  readonly token: string;
}

export interface ErrorReply {
  /** A sentence. */
  readonly error: string;
}

// ── Live ────────────────────────────────────────────────────────────────────

export interface StreamRow extends Omit<OpenStream, "tokens"> {
  readonly tokens: number;
}

/** About this run of the gateway. */
export interface About {
  readonly version: string;
  /** ISO. */
  readonly since: string;
  readonly address: string;
  /** Null for a demo, which has no file that could be changed. */
  readonly config: string | null;
  readonly ledger: string;
  readonly timezone: string;
}

/** One event of the live feed. The first has everything; later ones only what has changed. */
export interface LiveEvent {
  readonly about?: About;
  readonly streams?: readonly StreamRow[];
  /** Oldest first. In the first event the last ones, later the new ones. */
  readonly requests?: readonly RequestRecord[];
  readonly channels?: readonly ChannelView[];
  /** WebSockets of clients that are open now. */
  readonly websockets?: number;
  readonly spend?: Spend;
  readonly notices?: readonly Notice[];
  /** Why lines cannot be written; null: they can. */
  readonly ledgerProblem?: string | null;
  /** Counts the changes of the config since the start. */
  readonly revision?: number;
}

export interface Spend {
  readonly today_usd: string;
  readonly month_usd: string;
}

export interface Notice {
  readonly time: number;
  readonly level: "note" | "warning" | "error";
  readonly text: string;
}

// ── Overview ────────────────────────────────────────────────────────────────

export const PERIODS = ["today", "7d", "30d"] as const;
export type PeriodName = (typeof PERIODS)[number];

export const STACKS = ["model", "tool", "key", "group", "channel", "label"] as const;
export type Stack = (typeof STACKS)[number];

export interface Series {
  readonly name: string;
  readonly charge_usd: string;
  readonly requests: number;
  /** For each span. */
  readonly charges: readonly string[];
  /** A model without a price: its amounts of 0 say nothing. */
  readonly unpriced: boolean;
}

export interface Overview {
  readonly period: PeriodName;
  readonly by: Stack;
  /** Local hours (`2026-11-20 14:00`) or days (`2026-11-20`). */
  readonly spans: readonly string[];
  /** The largest first. What is too small for a series of its own is in the last, `others`. */
  readonly series: readonly Series[];
  readonly total: DescribedTotals;
  /** The charges of each period. */
  readonly spent: Readonly<Record<PeriodName, string>>;
  /** Models without a price, and how many of their requests no amount includes. */
  readonly unpriced: readonly { readonly name: string; readonly requests: number }[];
  readonly unreadable: number;
  /** The share of the ledger that is read, from 0 to 1. What is newer than that part is complete. */
  readonly read: number;
}

export interface OverviewReply extends Overview {
  readonly limits: readonly LimitRow[];
}

export interface LimitRow {
  readonly holder: { readonly kind: "key" | "group" | "session"; readonly name: string };
  /** As the config names it. */
  readonly limit: string;
  readonly usd: string;
  readonly spent_usd: string;
  readonly left_usd: string;
  /** ISO; null: never. */
  readonly resets: string | null;
  /** The highest percentage of `alerts.at` that is reached; null: none. */
  readonly warning: number | null;
}

// ── Keys ────────────────────────────────────────────────────────────────────

export type GroupChoice = Pick<Group, "name" | "platform" | "multiplier" | "description">;

export interface KeyRow {
  readonly name: string;
  readonly group: string;
  readonly platform: string;
  readonly multiplier: string;
  readonly state: "active" | "disabled" | "expired" | "plan inactive";
  readonly created: string | null;
  readonly expires: string | null;
  readonly last_used: string | null;
  readonly spent_today_usd: string;
  readonly spent_total_usd: string;
  /** As the config names them. */
  readonly limits: Readonly<Record<string, string>>;
  readonly limits_used: readonly LimitRow[];
}

export interface KeysReply {
  readonly keys: readonly KeyRow[];
  readonly groups: readonly GroupChoice[];
  /** Why keys cannot be changed here; null: they can. */
  readonly fixed: string | null;
}

export interface NewKey {
  readonly name: string;
  readonly group: string;
  /** `30d`, a date, or `never`. */
  readonly expires: string;
  readonly limits: Readonly<Record<string, string>>;
}

export interface KeyChange {
  readonly name: string;
  readonly action: "disable" | "enable" | "rotate" | "move" | "limit" | "remove";
  /** For `move`. */
  readonly group?: string;
  /** For `limit`: null removes one. */
  readonly limits?: Readonly<Record<string, string | null>>;
}

export interface KeysChanged extends KeysReply {
  /** Why the gateway does not use the changed file; null: it does. */
  readonly problem: string | null;
  /** The only reply that ever has a secret. */
  readonly secret?: { readonly name: string; readonly text: string; readonly connect: Connect };
}

/** How a new key is used. */
export interface Connect {
  /** For an SDK. */
  readonly url: string;
  /** Which tools can use it. */
  readonly tools: readonly string[];
  /** Starts the first of the tools, and asks for the secret, so that no shell's history has it. Null: there is none. */
  readonly line: string | null;
}

// ── Sessions ────────────────────────────────────────────────────────────────

export interface SessionRow extends DescribedSession {
  /** Of its prompts, tokens that should have been read from the cache and were not. */
  readonly missed: number;
}

export const ORDERS = ["newest", "charge"] as const;
export type Order = (typeof ORDERS)[number];

export interface SessionsReply {
  readonly period: PeriodName;
  readonly sessions: readonly SessionRow[];
  /** How many more there are. */
  readonly more: number;
}

export interface AgentRow extends DescribedTotals {
  /** Empty: the main agent. */
  readonly name: string;
  /** 0: the main agent. */
  readonly depth: number;
  readonly model: string;
  readonly misses: readonly Miss[];
}

export interface SessionReply {
  /** Null: the last thirty days have no such session. */
  readonly session: SessionRow | null;
  /** Each before those that it started. */
  readonly agents: readonly AgentRow[];
  /** What it took of a plan, as a sentence; absent: no plan paid, or nothing is known. */
  readonly rise?: string;
}

// ── One request ─────────────────────────────────────────────────────────────

export interface Derivation {
  /** What `gateway ledger show` prints; null: no line has this id (yet). */
  readonly lines: readonly string[] | null;
}
