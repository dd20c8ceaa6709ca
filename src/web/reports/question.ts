// What goes between the gateway and the thread that reads the ledger for it.

import type { Overview, SessionReply, SessionsReply } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { SessionsQuery } from "./sessions.ts";

export interface WorkerSettings {
  readonly ledgerPath: string;
  readonly timezone: string;
  /** How many streams are open, in memory that the threads share. */
  readonly streams: Int32Array;
}

export type Question = WorkerSettings & { readonly id: number } & (
    | { readonly kind: "overview"; readonly query: OverviewQuery }
    /** Reads all of the ledger and saves the sums of the overview. */
    | { readonly kind: "update" }
    | { readonly kind: "explain"; readonly request: string }
    | { readonly kind: "sessions"; readonly query: SessionsQuery }
    | { readonly kind: "session"; readonly session: string }
  );

export interface Answer {
  readonly id: number;
  readonly result:
    | { readonly kind: "overview"; readonly overview: Overview }
    | { readonly kind: "updated" }
    | { readonly kind: "explain"; readonly lines: readonly string[] | null }
    | { readonly kind: "sessions"; readonly sessions: SessionsReply }
    | { readonly kind: "session"; readonly session: SessionReply }
    | { readonly kind: "failed"; readonly error: string };
}
