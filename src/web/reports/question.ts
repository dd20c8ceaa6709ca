// What goes between the gateway and the thread that reads the ledger for it.

import type { Overview } from "../api.ts";
import type { OverviewQuery } from "./overview.ts";

export interface WorkerSettings {
  readonly ledgerPath: string;
  readonly timezone: string;
}

export type Question = WorkerSettings & { readonly id: number } & (
    | { readonly kind: "overview"; readonly query: OverviewQuery }
    | { readonly kind: "explain"; readonly request: string }
  );

export interface Answer {
  readonly id: number;
  readonly result:
    | { readonly kind: "overview"; readonly overview: Overview }
    | { readonly kind: "explain"; readonly lines: readonly string[] | null }
    | { readonly kind: "failed"; readonly error: string };
}
