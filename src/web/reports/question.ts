// What the gateway asks the thread that owns the index of its ledger.

import type { Tallies } from "../../billing/ledger/sums/sums.ts";
import type {
  MissesReply,
  NamesReply,
  Overview,
  RequestsReply,
  SessionParts,
  SessionsReply,
} from "../api.ts";
import type { OverviewQuery } from "./overview.ts";
import type { RequestsQuery } from "./requests.ts";
import type { Scope } from "./scope.ts";
import type { SessionsQuery } from "./sessions.ts";

/** By the name of a question: what it is asked with, and what answers it. */
export interface Questions {
  readonly overview: { readonly by: OverviewQuery; readonly answer: Overview };
  /** The document of a request; null: no line has this id. */
  readonly explain: { readonly by: string; readonly answer: unknown };
  readonly sessions: { readonly by: SessionsQuery; readonly answer: SessionsReply };
  readonly session: { readonly by: string; readonly answer: SessionParts };
  readonly requests: { readonly by: RequestsQuery; readonly answer: RequestsReply };
  readonly names: { readonly by: Scope; readonly answer: NamesReply };
  readonly misses: { readonly by: Scope; readonly answer: MissesReply };
  /** Brings the index up to date. */
  readonly follow: { readonly by: null; readonly answer: null };
  /** What the first lines of the ledger add up to, without the index. Takes a tenth of a core for a while. */
  readonly tally: { readonly by: number; readonly answer: Tallies };
}

export type QuestionName = keyof Questions;

export interface Question<Name extends QuestionName> {
  readonly id: number;
  readonly name: Name;
  readonly by: Questions[Name]["by"];
  readonly ledgerPath: string;
  readonly timezone: string;
}

export type Answer =
  | { readonly id: number; readonly answer: Questions[QuestionName]["answer"] }
  /** `isRefusal`: what was asked is wrong. */
  | { readonly id: number; readonly error: string; readonly isRefusal?: boolean }
  /** A line for the log. */
  | { readonly note: string };
