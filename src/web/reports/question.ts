// What goes between the gateway and the thread that owns the index of its ledger.

import type { Tallies } from "../../billing/ledger/sums/sums.ts";
import type { SeenModel } from "../../billing/report/seen-models.ts";
import type { Overview, SessionReply, SessionsReply } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { SessionsQuery } from "./sessions.ts";

export interface WorkerSettings {
  readonly ledgerPath: string;
  readonly timezone: string;
}

/** What `gateway serve` reports about the ledger after its start. */
export interface LedgerUse {
  readonly damaged: number;
  readonly models: readonly SeenModel[];
}

export type Question = WorkerSettings & { readonly id: number } & (
    | { readonly kind: "overview"; readonly query: OverviewQuery }
    /** Brings the index up to date. */
    | { readonly kind: "follow" }
    | { readonly kind: "survey" }
    /** Adds up the first lines of the ledger itself. */
    | { readonly kind: "tally"; readonly lines: number }
    | { readonly kind: "explain"; readonly request: string }
    | { readonly kind: "sessions"; readonly query: SessionsQuery }
    | { readonly kind: "session"; readonly session: string }
  );

export type Result =
  | { readonly kind: "overview"; readonly overview: Overview }
  | { readonly kind: "followed" }
  | { readonly kind: "survey"; readonly use: LedgerUse }
  | { readonly kind: "tally"; readonly tallies: Tallies }
  | { readonly kind: "explain"; readonly lines: readonly string[] | null }
  | { readonly kind: "sessions"; readonly sessions: SessionsReply }
  | { readonly kind: "session"; readonly session: SessionReply }
  | { readonly kind: "failed"; readonly error: string };

/** `id` null: a line for the log. */
export type Answer =
  | { readonly id: number; readonly result: Result }
  | { readonly id: null; readonly note: string };
