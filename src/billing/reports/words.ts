// What the values of a line mean, for the terminal and the page.

import type { Line, Payer } from "../ledger/line.ts";

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
