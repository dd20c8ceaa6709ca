// One line of the ledger: the only definition of its fields. From it come the types, the order of fields in the file,
// what verify checks, the JSON Schema, what the journal notes, and the columns of the table.

import { z } from "zod";

import { isObject, parseJson } from "../../lib/json/json.ts";

/** The `prev` of the first line. */
export const GENESIS = "0".repeat(64);

const OUTCOMES = ["complete", "client_closed", "upstream_cut", "upstream_error", "interrupted"] as const;
/** It failed at an upstream. */
export const FAILED_OUTCOMES: ReadonlySet<string> = new Set<Outcome>([
  "upstream_cut",
  "upstream_error",
  "interrupted",
]);
const BASES = ["exact", "partial", "unpriced", "unknown"] as const;
/** Who pays instead of this line's charge: a plan, or, when the plan is used up, the account that has it. */
const PAYERS = ["plan", "plan_overage"] as const;
export type Outcome = (typeof OUTCOMES)[number];
export type Basis = (typeof BASES)[number];
export type Payer = (typeof PAYERS)[number];

/** The column of the table that has a field. */
export interface Column {
  readonly name: string;
  /** How its value is stored: `time` in milliseconds, `usd` in pico-dollars, `json` as text. */
  readonly as: "text" | "count" | "time" | "usd" | "json";
}

declare module "zod" {
  interface GlobalMeta {
    readonly column?: Column;
  }
}

const text = z.string();
const count = z.int().nonnegative();
const time = z.iso.datetime();
const decimal = z
  .string()
  .max(64)
  .regex(/^\d{1,40}(?:\.\d{1,40})?$/, "a decimal without sign or exponent");
const amount = decimal.nullable();
const usage = z.record(text, count);
const prices = z.record(text, decimal).nullable();

const part = z.looseObject({
  model: text,
  pass: text,
  usage,
  prices,
  tier: text.nullable(),
  official_usd: amount,
});

const attempt = z.looseObject({ channel: text, status: z.int().optional(), error: text.optional() });

/** Who sent a request. A part that it does not show is absent. */
export const clientSchema = z.object({
  tool: text.optional().meta({ description: "the tool", column: { name: "tool", as: "text" } }),
  version: text
    .optional()
    .meta({ description: "the tool's version", column: { name: "version", as: "text" } }),
  session: text.optional().meta({ description: "the session", column: { name: "session", as: "text" } }),
  agent: text.optional().meta({
    description: "the agent; absent for the main agent of a session",
    column: { name: "agent", as: "text" },
  }),
  parent: text.optional().meta({
    description: "the agent that started this one; absent if the main agent did",
    column: { name: "parent", as: "text" },
  }),
  label: text.optional().meta({
    description: "the text of the header x-gateway-label",
    column: { name: "label", as: "text" },
  }),
  inferred: z
    .literal(true)
    .optional()
    .meta({
      description: "the tool names no session: it was inferred from key, tool, label and time",
      column: { name: "inferred", as: "count" },
    }),
});

/** What a prompt should have read from its upstream's cache and did not. */
const cacheSchema = z.looseObject({
  missed: count.meta({ description: "tokens" }),
  usd: amount.meta({ description: "what they cost more than if they had been read; null without a price" }),
  because: text.meta({ description: "the cause" }),
  at: z.int().positive().optional().meta({
    description: "the tool, the part of the system prompt or the message that changed, counted from 1",
  }),
  part: text.optional().meta({ description: "the setting that changed" }),
  detail: text.optional().meta({ description: "how it changed: order, digits or attribution" }),
  from: text.optional().meta({ description: "the channel whose cache had the prompt" }),
  reported: z.literal(true).optional().meta({ description: "the upstream named the reason" }),
});

/** All fields in the order in which they are written. Optional ones are absent where they do not apply. */
const line = z.object({
  v: z.literal(1).meta({ description: "the version of the format" }),
  id: text.min(1).meta({ description: "the request", column: { name: "id", as: "text" } }),
  time: time.meta({ description: "when the request came", column: { name: "at", as: "time" } }),
  key: text.meta({ description: "the name of the key", column: { name: "key", as: "text" } }),
  group: text.meta({ description: "the group of the key", column: { name: "group_name", as: "text" } }),
  platform: text.meta({ description: "the platform of the group" }),
  channel: text.meta({
    description: "the channel that answered, or was tried last",
    column: { name: "channel", as: "text" },
  }),
  endpoint: text.meta({ description: "the path that the client called" }),
  model: text.meta({ description: "the model that the client named", column: { name: "model", as: "text" } }),
  upstream_model: text
    .nullable()
    .meta({ description: "the model that the answer names", column: { name: "answered", as: "text" } }),
  stream: z.boolean().meta({ description: "the answer is a stream" }),
  status: z
    .int()
    .nullable()
    .meta({ description: "the status of the answer", column: { name: "status", as: "count" } }),
  outcome: z
    .enum(OUTCOMES)
    .meta({ description: "how the request ended", column: { name: "outcome", as: "text" } }),
  basis: z
    .enum(BASES)
    .meta({ description: "how well the amounts are known", column: { name: "basis", as: "text" } }),
  usage: usage.meta({ description: "tokens and calls by kind" }),
  parts: z.array(part).optional().meta({ description: "the passes whose usage adds up to usage" }),
  raw_usage: z.unknown().meta({ description: "the usage as the upstream reported it" }),
  prices: prices.meta({ description: "USD per million tokens, and per thousand calls" }),
  price_source: text.nullable().meta({ description: "where the prices are from" }),
  tier: text.nullable().meta({ description: "the tier of the prices" }),
  official_usd: amount.meta({ description: "usage times prices", column: { name: "official", as: "usd" } }),
  multiplier: decimal.meta({ description: "the multiplier of the group" }),
  charge_usd: amount.meta({
    description: "official_usd times multiplier",
    column: { name: "charge", as: "usd" },
  }),
  provider_usd: decimal
    .optional()
    .meta({ description: "what the answer says that it cost", column: { name: "named", as: "usd" } }),
  paid_by: z
    .enum(PAYERS)
    .optional()
    .meta({ description: "who pays instead of the charge", column: { name: "paid_by", as: "text" } }),
  first_byte_ms: count
    .nullable()
    .meta({ description: "until the first byte of the answer", column: { name: "first_byte", as: "count" } }),
  duration_ms: count
    .nullable()
    .meta({ description: "until its end", column: { name: "duration", as: "count" } }),
  attempts: z.array(attempt).meta({ description: "the channels that were tried" }),
  client: clientSchema.optional().meta({ description: "who sent the request; absent parts are not known" }),
  upstream_request_id: text.optional().meta({ description: "the upstream's own id of the request" }),
  converted: text
    .optional()
    .meta({ description: "the dialect that the channel spoke, if it was not the client's" }),
  suspect: text.optional().meta({ description: "why a person should check the amounts" }),
  limit_usd: decimal.optional().meta({
    description:
      "what limits count instead of the charge: an estimate, or what a plan pays for; never billed",
    column: { name: "counted", as: "usd" },
  }),
  cache: cacheSchema.optional().meta({
    description: "what the prompt should have read from the upstream's cache and did not",
    column: { name: "miss", as: "json" },
  }),
  windows: z
    .record(text, z.number().nonnegative())
    .optional()
    .meta({
      description: "how full the windows of the plan were after it, in percent",
      column: { name: "windows", as: "json" },
    }),
  replaces: z.object({ id: text, time, limit_usd: decimal }).optional().meta({
    description: "an earlier line whose real usage this one has, and whose limit_usd counts no longer",
  }),
  transport: text.optional().meta({ description: "websocket" }),
  path: text.optional().meta({ description: "the path, if endpoint is other" }),
  requested_model: text
    .optional()
    .meta({ description: "the channel's name of the model, if neither client nor answer used it" }),
  estimated: z.array(text).optional().meta({ description: "the kinds of usage that were estimated" }),
  priced_as: text
    .optional()
    .meta({ description: "the model whose price was used, if the answer's name has none" }),
  unpriced_because: text.optional().meta({ description: "why there is no price" }),
  unpriced_usage: usage.optional().meta({ description: "the usage without a price" }),
  at_least_usd: decimal.optional().meta({ description: "what the rest of the usage costs" }),
  tariff: z.record(text, z.unknown()).optional().meta({ description: "what else decides a price" }),
  recording: text.optional().meta({ description: "the recording that has the request and its answer" }),
  traceparent: text.optional().meta({ description: "the client's trace" }),
  prev: z.hex().length(64).meta({ description: "the SHA-256 of the line before" }),
});

const { shape } = line;

/** What a request is going to do. The journal notes it before it goes to an upstream. */
export const intentSchema = line.pick({
  id: true,
  time: true,
  key: true,
  group: true,
  platform: true,
  channel: true,
  endpoint: true,
  model: true,
  upstream_model: true,
  stream: true,
  transport: true,
  multiplier: true,
  paid_by: true,
  client: true,
  limit_usd: true,
});

/** A later line that gives a request other amounts. They replace those in `was`. */
const correction = z.object({
  v: shape.v,
  id: shape.id,
  time: shape.time,
  corrects: text.min(1).meta({ description: "the request" }),
  request_time: time.meta({
    description: "the time of the request, so that its amount stays in the same day",
  }),
  key: shape.key,
  group: shape.group,
  platform: shape.platform,
  channel: shape.channel,
  model: shape.model,
  client: shape.client,
  usage: shape.usage,
  parts: shape.parts,
  prices: shape.prices,
  price_source: shape.price_source,
  tier: shape.tier,
  official_usd: shape.official_usd,
  multiplier: shape.multiplier,
  charge_usd: shape.charge_usd,
  paid_by: shape.paid_by,
  limit_usd: shape.limit_usd,
  was: line
    .pick({ official_usd: true, charge_usd: true, limit_usd: true })
    .meta({ description: "the amounts that it replaces" }),
  prev: shape.prev,
});

/** A line that is not a request: what a start found that no gateway wrote, or lost, and nothing explains. */
const mark = z.object({
  v: shape.v,
  id: shape.id,
  time: shape.time,
  mark: text.meta({ description: "what was found, for people" }),
  accepts: text.optional().meta({ description: "the mark that the owner accepts with this line" }),
  request_time: time.meta({ description: "the day in which limits count it" }),
  key: shape.key,
  group: shape.group,
  client: shape.client,
  limit_usd: decimal.optional().meta({ description: "by how much it may have lowered what limits count" }),
  replaces: shape.replaces,
  prev: shape.prev,
});

/** Unknown fields are allowed: a newer gateway may have written them. */
export const lineSchema = line.loose();
export const correctionSchema = correction.loose();
export const markSchema = mark.loose();
/** A correction as it comes to the gateway that writes it. */
export const repricingSchema = correction.omit({ v: true, prev: true, time: true });

export type Line = z.infer<typeof line>;
export type Correction = z.infer<typeof correction>;
export type Repricing = Readonly<z.infer<typeof repricingSchema>>;
export type Intent = Readonly<z.infer<typeof intentSchema>>;
export type ClientIdentity = Readonly<z.infer<typeof clientSchema>>;
export type CacheMiss = Readonly<z.infer<typeof cacheSchema>>;

/** What is known about a request when its bill is closed. `raw_usage` is JSON, which the line has as it is. */
export type LineDraft = Readonly<Omit<Line, "v" | "prev" | "raw_usage">> & {
  readonly raw_usage: string | null;
};
export type CorrectionDraft = Readonly<Omit<Correction, "v" | "prev">>;
export type MarkDraft = Readonly<Omit<z.infer<typeof mark>, "v" | "prev">>;
export type Draft = LineDraft | CorrectionDraft | MarkDraft;
export type Mark = Readonly<z.infer<typeof mark>>;
/** Written or not. */
export type AnyLine = Omit<LineDraft, "raw_usage"> | CorrectionDraft | MarkDraft;

type Fields = Readonly<Record<string, unknown>>;

const LINE_FIELDS = Object.keys(line.shape);
const CORRECTION_FIELDS = Object.keys(correction.shape);
const MARK_FIELDS = Object.keys(mark.shape);

/** In the order in which they are written. */
function fieldsOf(draft: Draft): readonly string[] {
  if ("mark" in draft) return MARK_FIELDS;
  return "corrects" in draft ? CORRECTION_FIELDS : LINE_FIELDS;
}

/** The line's text without its newline. `check` may refuse it: it throws. */
export function encodeLine(draft: Draft, prev: string, check?: (fields: Fields) => void): string {
  const fields: Fields = draft;
  const ordered: Record<string, unknown> = {};
  for (const name of fieldsOf(draft)) {
    const value = name === "v" ? 1 : name === "prev" ? prev : fields[name];
    if (value !== undefined) ordered[name] = value;
  }
  check?.(ordered);
  const raw = ordered["raw_usage"];
  if (typeof raw !== "string") return JSON.stringify(ordered);
  ordered["raw_usage"] = null;
  // A quote inside of a text is escaped, so this is found where the member is, and nowhere before.
  return JSON.stringify(ordered).replace('"raw_usage":null', () => `"raw_usage":${raw}`);
}

/** The `prev` of the next line. */
export function hashLine(line: string | Uint8Array): string {
  return Bun.SHA256.hash(line, "hex");
}

/** The object in a line's bytes; null if there is none. */
export function parseLine(bytes: Buffer): Fields | null {
  const value = parseJson(bytes.toString());
  return isObject(value) ? value : null;
}
