// One line of the ledger: its schema, its field order, its hash. The schema
// checks lines from the disk and gives the types of the lines that we write.
// Each schema is created when it is first needed: a start seldom needs one.

import { z } from "zod";

import { isObject, parseJson } from "../../lib/json/json.ts";

/** The `prev` of the first line. */
export const GENESIS = "0".repeat(64);

export const OUTCOMES = [
  "complete",
  "client_closed",
  "upstream_cut",
  "upstream_error",
  "interrupted",
] as const;
/** It failed at an upstream. */
export const FAILED_OUTCOMES: ReadonlySet<string> = new Set<Outcome>([
  "upstream_cut",
  "upstream_error",
  "interrupted",
]);
export const BASES = ["exact", "partial", "unpriced", "unknown"] as const;
export type Outcome = (typeof OUTCOMES)[number];
export type Basis = (typeof BASES)[number];

const decimal = z.string().regex(/^\d{1,40}(?:\.\d{1,40})?$/, "a decimal without sign or exponent");
const amount = decimal.nullable();
const count = z.int().nonnegative();
const usage = z.record(z.string(), count);
const prices = z.record(z.string(), decimal).nullable();

const partSchema = z.lazy(() =>
  z.looseObject({
    model: z.string(),
    pass: z.string(),
    usage,
    prices,
    tier: z.string().nullable(),
    official_usd: amount,
  }),
);

const attemptSchema = z.lazy(() =>
  z.looseObject({ channel: z.string(), status: z.int().optional(), error: z.string().optional() }),
);

/** Who sent a request, as far as the request shows it. A part that it does not show is absent. */
export const clientSchema = z.lazy(() =>
  z.object({
    tool: z.string().optional(),
    session: z.string().optional(),
    /** Absent for a session's main agent. */
    agent: z.string().optional(),
    /** The agent that started this one. Absent if the main agent did. */
    parent: z.string().optional(),
    /** The text of the header `x-gateway-label`. */
    label: z.string().optional(),
    /** The tool names no session: it was inferred from key, tool, label and time. */
    inferred: z.literal(true).optional(),
  }),
);

/** What a prompt should have read from its upstream's cache and did not. */
export const cacheSchema = z.lazy(() =>
  z.looseObject({
    missed: count,
    /** What the missed tokens cost more than if they had been read; null without a price. */
    usd: amount,
    because: z.string(),
    /** The tool, the part of the system prompt or the message that changed, counted from 1. */
    at: z.int().positive().optional(),
    /** The setting that changed. */
    part: z.string().optional(),
    /** How it changed: `order`, `digits` or `attribution`. */
    detail: z.string().optional(),
    /** The channel whose cache had the prompt. */
    from: z.string().optional(),
    /** The upstream named the reason. */
    reported: z.literal(true).optional(),
  }),
);

export type CacheMiss = Readonly<z.infer<typeof cacheSchema>>;

export type ClientIdentity = Readonly<z.infer<typeof clientSchema>>;

const defineChain = () => ({
  v: z.literal(1),
  id: z.string().min(1),
  time: z.iso.datetime(),
  prev: z.hex().length(64),
});

const defineOrigin = () => ({
  key: z.string(),
  group: z.string(),
  platform: z.string(),
  channel: z.string(),
  model: z.string(),
});

/** Who pays instead of this line's charge: a plan, or, when the plan is used up, the account that has it. */
export const PAYERS = ["plan", "plan_overage"] as const;
export type Payer = (typeof PAYERS)[number];

const defineMoney = () => ({
  usage,
  parts: z.array(partSchema).optional(),
  prices,
  price_source: z.string().nullable(),
  tier: z.string().nullable(),
  official_usd: amount,
  multiplier: decimal,
  charge_usd: amount,
  paid_by: z.enum(PAYERS).optional(),
  /** What limits count instead of the charge: an estimate while the real cost is not known, and what a plan pays for.
   *  Never billed. */
  limit_usd: decimal.optional(),
});

const defineLine = () =>
  z.object({
    ...defineChain(),
    ...defineOrigin(),
    ...defineMoney(),
    /** What the answer says that it cost. */
    provider_usd: decimal.optional(),
    endpoint: z.string(),
    upstream_model: z.string().nullable(),
    stream: z.boolean(),
    status: z.int().nullable(),
    outcome: z.enum(OUTCOMES),
    basis: z.enum(BASES),
    raw_usage: z.unknown(),
    first_byte_ms: count.nullable(),
    duration_ms: count.nullable(),
    attempts: z.array(attemptSchema),
    client: clientSchema.optional(),
    /** The upstream's own id of the request. */
    upstream_request_id: z.string().optional(),
    /** The dialect that the channel spoke, if it was not the client's. */
    converted: z.string().optional(),
    cache: cacheSchema.optional(),
    /** How full the windows of the plan were after it, in percent, as the upstream said. */
    windows: z.record(z.string(), z.number().nonnegative()).optional(),
    /** The recording that has the request and its answer. */
    recording: z.string().optional(),
    /** It was answered from that recording, and costs nothing. */
    replayed: z.literal(true).optional(),
    /** In an unpriced line: the usage without a price, and what the rest costs. */
    unpriced_usage: usage.optional(),
    at_least_usd: decimal.optional(),
    /** The requested model, whose price was used because the response's own name has none. */
    priced_as: z.string().optional(),
    /** Why a person should check the amounts: usage that cannot be right, or work that may have been paid for twice. */
    suspect: z.string().optional(),
    /** This line has the real usage of an earlier one, whose `limit_usd` counts no longer. */
    replaces: z.object({ id: z.string(), time: z.iso.datetime(), limit_usd: decimal }).optional(),
  });

/** A later line that gives a request other amounts. They replace those in `was`. */
const defineCorrection = () =>
  z.object({
    ...defineChain(),
    corrects: z.string().min(1),
    /** The `time` of the request, so that its amount stays in the same day and month. */
    request_time: z.iso.datetime(),
    ...defineOrigin(),
    client: clientSchema.optional(),
    ...defineMoney(),
    was: z.object({ official_usd: amount, charge_usd: amount, limit_usd: decimal.optional() }),
  });

/** A correction as it comes to the gateway that writes it. */
export const repricingSchema = z.lazy(() => defineCorrection().omit({ v: true, prev: true, time: true }));
export type Repricing = Readonly<z.infer<typeof repricingSchema>>;

/** Unknown fields are allowed: a newer gateway may have written them. */
export const lineSchema = z.lazy(() => defineLine().loose());
export const correctionSchema = z.lazy(() => defineCorrection().loose());

export type Line = z.infer<ReturnType<typeof defineLine>>;
export type Correction = z.infer<ReturnType<typeof defineCorrection>>;

/** What is known about a request when its bill is closed. The ledger adds the version and the hash. */
export type LineDraft = Readonly<Omit<Line, "v" | "prev" | "raw_usage">> & {
  /** JSON, which the line has as it is. */
  readonly raw_usage: string | null;
  /** Further fields, written after those of docs/contract.md. */
  readonly extra?: Readonly<Record<string, unknown>> | undefined;
};

export type CorrectionDraft = Readonly<Omit<Correction, "v" | "prev">>;

/** The line's text without its newline. Its fields are in the order of the draft. */
export function encodeLine(draft: LineDraft, prev: string): string {
  const { extra, raw_usage: raw } = draft;
  // A quote inside of a text is escaped, so this is found where the member is, and nowhere before.
  const own = JSON.stringify({ ...draft, raw_usage: null, extra: undefined }).replace(
    '"raw_usage":null',
    () => `"raw_usage":${raw}`,
  );
  const more = extra === undefined ? "" : JSON.stringify(extra).slice(1, -1);
  return `{"v":1,${own.slice(1, -1)}${more === "" ? "" : `,${more}`},"prev":"${prev}"}`;
}

export function encodeCorrection(draft: CorrectionDraft, prev: string): string {
  const { id, time, corrects, request_time, ...rest } = draft;
  return JSON.stringify({ v: 1, id, time, corrects, request_time, ...rest, prev });
}

/** The `prev` of the next line. */
export function hashLine(line: string | Uint8Array): string {
  return Bun.SHA256.hash(line, "hex");
}

/** The object in a line's bytes; null if there is none. */
export function parseLine(bytes: Buffer): Readonly<Record<string, unknown>> | null {
  const value = parseJson(bytes.toString());
  return isObject(value) ? value : null;
}
