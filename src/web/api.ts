// What the page's requests get, for both sides. Amounts are exact decimals in USD, times are ISO or milliseconds.
// All text comes from clients, upstreams or the config: the page shows it as text and never as markup.

import type {
  MEASURES as ALL_MEASURES,
  Overview,
  STACKS as ALL_STACKS,
} from "../billing/reports/overview.ts";
import type { RequestDocument } from "../billing/reports/request.ts";
import type { RequestsReport } from "../billing/reports/requests.ts";
import type { ORDERS as ALL_ORDERS, Miss as SessionMiss, SessionRow } from "../billing/reports/sessions.ts";
import type { FAILED as ALL_FAILED, Totals } from "../billing/reports/sums.ts";
import type { Group } from "../config/catalog.ts";
import type { ChannelView } from "../gateway/channels/view.ts";
import type { OpenStream, RequestRecord } from "../gateway/observe/observer.ts";

export type { Measure, Overview, PeriodSums, Series, Stack } from "../billing/reports/overview.ts";
export type { RequestDocument } from "../billing/reports/request.ts";
export type { RequestRow } from "../billing/reports/requests.ts";
export type { Order, SessionRow } from "../billing/reports/sessions.ts";
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
  readonly timezone: string;
}

/** One event of the live feed. The first has everything; later ones only what has changed. */
export interface LiveEvent {
  readonly about?: About;
  readonly streams?: readonly StreamRow[];
  /** Oldest first. In the first event the last ones, later the new ones. */
  readonly requests?: readonly RequestRecord[];
  readonly channels?: readonly ChannelView[];
  readonly spend?: Spend;
  readonly notices?: readonly Notice[];
  /** Why lines cannot be written; null: they can. */
  readonly ledgerProblem?: string | null;
  /** Counts the changes of the config since the start. */
  readonly revision?: number;
}

export interface Spend {
  readonly today_usd: string;
}

export interface Notice {
  readonly time: number;
  readonly level: "note" | "warning" | "error";
  readonly text: string;
}

// ── What a view is of ────────────────────────────────────────────────────────

export const FILTERS = ["key", "group", "model", "channel", "tool", "label", "session", "outcome"] as const;
export type FilterName = (typeof FILTERS)[number];
/** An empty name: the requests did not say. */
export type Filters = Readonly<Partial<Record<FilterName, string>>>;

export const DEFAULT_PERIOD = "7d";

// ── Overview ────────────────────────────────────────────────────────────────

/** The same as in billing/reports/, which the page cannot load: it has the database. */
export const STACKS = [
  "model",
  "tool",
  "key",
  "group",
  "channel",
  "label",
  "outcome",
] as const satisfies typeof ALL_STACKS;
export const MEASURES = ["cost", "tokens", "requests", "errors"] as const satisfies typeof ALL_MEASURES;
/** An outcome: of those that failed at an upstream. */
export const FAILED = "failed" satisfies typeof ALL_FAILED;
/** The series of all names that are too small for one of their own. */
export const OTHERS = "others";

export type DescribedTotals = Totals;

/** Of each filter: its names in the period, the largest charge first. */
export type NamesReply = Readonly<Partial<Record<FilterName, readonly string[]>>>;

export interface MissCause {
  readonly cause: string;
  /** What helps; null: nothing that the user could do. */
  readonly help: string | null;
  readonly misses: number;
  readonly tokens: number;
  readonly usd: string;
}

export interface MissesReply {
  /** The most expensive first. */
  readonly causes: readonly MissCause[];
  readonly misses: number;
  readonly usd: string;
  /** ISO. */
  readonly as_of: string;
}

// ── Requests ────────────────────────────────────────────────────────────────

export interface RequestsReply extends RequestsReport {
  /** ISO. */
  readonly as_of: string;
}

/** How many rows a list begins with, and has at most. */
export const ROWS = 100;
export const MAX_ROWS = 2000;

export interface OverviewReply extends Overview {
  readonly limits: readonly LimitRow[];
  /** The share of the ledger that is read, from 0 to 1. */
  readonly read: number;
  /** ISO: all sums are of this moment. */
  readonly as_of: string;
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
  readonly url: string;
  /** Starts a tool, and asks for the secret, so that no shell's history has it. */
  readonly tools: readonly { readonly name: string; readonly line: string }[];
  /** What an SDK is given beside the secret: lines of Python. */
  readonly sdk: readonly string[];
}

// ── Sessions ────────────────────────────────────────────────────────────────

/** `missed`: by the tokens that were not read from the cache. */
export const ORDERS = ["newest", "charge", "missed"] as const satisfies typeof ALL_ORDERS;

/** A prompt that should have been read from the cache and was not. */
export interface Miss extends Omit<SessionMiss, "agent" | "missed"> {
  readonly tokens: number;
}

export interface SessionsReply {
  readonly sessions: readonly SessionRow[];
  /** There are more sessions than these. */
  readonly isMore: boolean;
  /** Of all requests that fit, also of those without a session. */
  readonly total: DescribedTotals;
  readonly unnamed: DescribedTotals;
  /** ISO. */
  readonly as_of: string;
}

export interface AgentRow extends DescribedTotals {
  /** Empty: the main agent. */
  readonly name: string;
  /** 0: the main agent. */
  readonly depth: number;
  readonly model: string;
  readonly misses: readonly Miss[];
}

export interface SessionParts {
  /** Null: the ledger has no such session. */
  readonly session: SessionRow | null;
  /** Each before those that it started. */
  readonly agents: readonly AgentRow[];
  /** What it took of a plan, as a sentence; absent: no plan paid, or nothing is known. */
  readonly rise?: string;
}

export interface SessionReply extends SessionParts {
  /** What its key and their group may spend in one session. */
  readonly limits: readonly LimitRow[];
}

// ── One request ─────────────────────────────────────────────────────────────

export interface RequestReply {
  /** Null: no line has this id (yet). */
  readonly found: RequestDocument | null;
}
