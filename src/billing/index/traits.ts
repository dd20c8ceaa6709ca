// What many requests of a ledger share: the index keeps it once.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import type { Row } from "../ledger/row.ts";

/** A correction that gives a price to a request without one is `priced`. An `estimate` is counted by limits only. A `mark`
 *  has no amounts. */
export type RowType = "request" | "correction" | "priced" | "estimate" | "mark";

export interface Traits {
  readonly type: RowType;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  /** The model that the answer names; empty: none. */
  readonly answeredBy: string;
  readonly tool: string | null;
  readonly label: string | null;
  readonly inferred: boolean;
  /** The line names a session. */
  readonly isNamed: boolean;
  readonly basis: string;
  readonly outcome: string;
  /** Of the usage, in the order of the line. */
  readonly kinds: readonly string[];
  /** `paid_by` of the line; undefined: the charge pays. */
  readonly paidBy?: string | undefined;
}

/** Traits that say nothing. */
export const NO_TRAITS: Traits = {
  type: "request",
  key: "",
  group: "",
  channel: "",
  model: "",
  answeredBy: "",
  tool: null,
  label: null,
  inferred: false,
  isNamed: false,
  basis: "",
  outcome: "",
  kinds: [],
  paidBy: undefined,
};

/** A session and its agent; empty: none. */
export interface Sender {
  readonly session: string;
  readonly agent: string;
  readonly parent: string | null;
}

/** Whether requests with these traits can be of a session. Its name is not among the traits; empty: of none. */
export function canBeOf({ isNamed }: Traits, session: string | undefined): boolean {
  return session !== "" || !isNamed;
}

export const NO_SENDER: Sender = { session: "", agent: "", parent: null };

export function readSender(session: unknown, agent: unknown, parent: unknown): Sender {
  return {
    session: String(session),
    agent: String(agent),
    parent: typeof parent === "string" ? parent : null,
  };
}

const traitsSchema = z.lazy(() =>
  z.tuple([
    z.enum(["request", "correction", "priced", "estimate", "mark"]),
    z.string(),
    z.string(),
    z.string(),
    z.string(),
    z.string(),
    z.string().nullable(),
    z.string().nullable(),
    z.boolean(),
    z.boolean(),
    z.string(),
    z.string(),
    z.array(z.string()),
    z.string().optional(),
  ]),
);

type EncodedTraits = z.infer<typeof traitsSchema>;

export function encodeTraits(row: Row, type: RowType): string {
  const { key, group, channel, model, answeredBy, client, basis, line, usage } = row;
  const isCounted = type === "request";
  const { outcome, paid_by: payer } = line;
  const paidBy: [string?] = typeof payer === "string" ? [payer] : [];
  return JSON.stringify([
    type,
    key,
    group,
    channel,
    model,
    answeredBy,
    client?.tool ?? null,
    client?.label ?? null,
    client?.inferred === true,
    (client?.session ?? "") !== "",
    basis,
    typeof outcome === "string" ? outcome : "",
    isCounted ? Object.keys(usage) : [],
    ...paidBy,
  ] satisfies EncodedTraits);
}

export function decodeTraits(text: string): Traits {
  const [type, key, group, channel, model, answeredBy, tool, label, inferred, isNamed, ...more] =
    traitsSchema.parse(parseJson(text));
  const [basis, outcome, kinds, paidBy] = more;
  return {
    type,
    key,
    group,
    channel,
    model,
    answeredBy,
    tool,
    label,
    inferred,
    isNamed,
    basis,
    outcome,
    kinds,
    paidBy,
  };
}
