// What reports are asked with, and what the values of a line mean, for the terminal and the page. The page cannot load what
// imports the database.

import type { Line, Payer } from "../ledger/line.ts";

/** What a view of the page may be narrowed by. */
export const FILTERS = ["key", "group", "model", "channel", "tool", "label", "session", "outcome"] as const;
export type FilterName = (typeof FILTERS)[number];

/** The names by which an overview divides, and what it measures. */
export const STACKS = ["model", "tool", "key", "group", "channel", "label", "outcome"] as const;
export type Stack = (typeof STACKS)[number];
export const MEASURES = ["cost", "tokens", "requests", "errors"] as const;
export type Measure = (typeof MEASURES)[number];
/** The series of all names that are too small for one of their own. */
export const OTHERS = "others";

/** Of sessions. `missed`: by the tokens that were not read from the cache. */
export const ORDERS = ["newest", "charge", "missed"] as const;
export type Order = (typeof ORDERS)[number];

/** An outcome that stands for several. */
export const FAILED = "failed";

export const OUTCOMES: Readonly<Record<Line["outcome"], string>> = {
  complete: "answered completely",
  client_closed: "the client left before the end",
  upstream_cut: "the upstream broke off",
  upstream_error: "the upstream answered with an error",
  interrupted: "the gateway ended while the request was with the upstream",
};

export const BASES: Readonly<Record<Line["basis"], string>> = {
  exact: "usage as the upstream reported it",
  partial: "the response broke off: reported usage, and the missing part estimated",
  unpriced: "usage as the upstream reported it, but there is no price for it",
  unknown: "the usage could not be obtained",
};

export const PAYERS: Readonly<Record<Payer, string>> = {
  plan: "paid by a plan",
  plan_overage: "the plan was used up, and its account is billed",
};
