// One line of the ledger. Its fields define the types, verify's checks,
// the JSON Schema and the table's columns.

import { z } from "zod";
import { isObject, parseJson } from "../../lib/json/json.ts";

/** The `prev` of the first line. */
export const GENESIS = "0".repeat(64);

const OUTCOMES = ["complete", "client_closed", "upstream_cut", "upstream_error", "interrupted"] as const;
export const FAILED_OUTCOMES: ReadonlySet<string> = new Set<Outcome>([
  "upstream_cut",
  "upstream_error",
  "interrupted",
]);
const BASES = ["exact", "partial", "unpriced", "unknown"] as const;
/** `plan_overage`: the plan is used up, so its account pays. */
const PAYERS = ["plan", "plan_overage"] as const;
export type Outcome = (typeof OUTCOMES)[number];
export type Basis = (typeof BASES)[number];
export type Payer = (typeof PAYERS)[number];

export interface Column {
  readonly name: string;
  /** `time` in milliseconds, `usd` in pico-dollars, `json` as text. */
  readonly as: "text" | "count" | "time" | "usd" | "json";
}

declare module "zod" {
  interface GlobalMeta {
    readonly column?: Column;
  }
}

function about<T extends z.ZodType>(
  schema: T,
  description: string,
  name?: string,
  as: Column["as"] = "text",
): T {
  return schema.meta({ description, ...(name !== undefined && { column: { name, as } }) });
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

const windows = z.record(text, z.number().nonnegative());
const replaced = z.object({ id: text, time, limit_usd: decimal });

const part = z.looseObject({
  model: text,
  pass: text,
  usage,
  prices,
  tier: text.nullable(),
  official_usd: amount,
});

const attempt = z.looseObject({ channel: text, status: z.int().optional(), error: text.optional() });

export const clientSchema = z.object({
  tool: about(text.optional(), "the tool", "tool"),
  version: about(text.optional(), "the tool's version", "version"),
  session: about(text.optional(), "the session", "session"),
  agent: about(text.optional(), "the agent; absent for the main agent of a session", "agent"),
  parent: about(text.optional(), "the agent that started this one; absent if the main agent did", "parent"),
  label: about(text.optional(), "the text of the header x-gateway-label", "label"),
  inferred: about(z.literal(true).optional(), "the gateway inferred the session", "inferred", "count"),
});

/** What should have come from the cache and did not. */
export const cacheSchema = z.looseObject({
  missed: about(count, "tokens", "missed_tokens", "count"),
  usd: about(amount, "what the missed tokens cost above cache reads; null without a price", "missed", "usd"),
  because: about(text, "the cause", "cause"),
  at: about(
    z.int().positive().optional(),
    "the number of the tool, system part or message that changed",
    "changed_at",
    "count",
  ),
  part: about(text.optional(), "the setting that changed", "part"),
  detail: about(text.optional(), "how it changed: `order`, `digits` …, or `perhaps` if unsure", "detail"),
  from: about(text.optional(), "the channel whose cache had the prompt", "from_channel"),
  reported: about(z.literal(true).optional(), "the upstream named the reason"),
});

/** The line of an ended request has its fields in this order. */
const line = z.object({
  v: about(z.literal(1), "the version of the format"),
  id: about(text.min(1), "the request", "id"),
  time: about(time, "when the request came", "at", "time"),
  key: about(text, "the name of the key", "key"),
  group: about(text, "the group of the key", "group_name"),
  platform: about(text, "the platform of the group"),
  channel: about(text, "the channel that answered, or was tried last", "channel"),
  endpoint: about(text, "the path that the client called"),
  model: about(text, "the model that the client named", "model"),
  upstream_model: about(text.nullable(), "the model that the answer names", "answered"),
  stream: about(z.boolean(), "the answer is a stream"),
  status: about(z.int().nullable(), "the status of the answer", "status", "count"),
  outcome: about(z.enum(OUTCOMES), "how the request ended", "outcome"),
  basis: about(z.enum(BASES), "how well the amounts are known", "basis"),
  usage: about(usage, "tokens and calls by kind"),
  parts: about(z.array(part).optional(), "each pass of a model, if there are several; usage is their sum"),
  raw_usage: about(z.unknown(), "the usage as the upstream reported it"),
  prices: about(prices, "USD per million tokens, and per thousand calls"),
  price_source: about(text.nullable(), "where the prices are from"),
  tier: about(text.nullable(), "the tier of the prices"),
  official_usd: about(amount, "usage times prices", "official", "usd"),
  multiplier: about(decimal, "the multiplier of the group"),
  charge_usd: about(amount, "official_usd times multiplier", "charge", "usd"),
  provider_usd: about(decimal.optional(), "what the answer says the request cost", "named", "usd"),
  paid_by: about(z.enum(PAYERS).optional(), "the payer, if it is a plan or a plan's account", "paid_by"),
  first_byte_ms: about(count.nullable(), "time until the answer's first byte", "first_byte", "count"),
  duration_ms: about(count.nullable(), "time until the answer's end", "duration", "count"),
  attempts: about(z.array(attempt), "the channels that were tried"),
  client: about(clientSchema.optional(), "who sent the request; absent parts are not known"),
  upstream_request_id: about(text.optional(), "the upstream's own id of the request"),
  converted: about(text.optional(), "the dialect that the channel spoke, if it was not the client's"),
  suspect: about(text.optional(), "why a person should check the amounts"),
  limit_usd: about(decimal.optional(), "the amount that limits count, if not the charge", "counted", "usd"),
  cache: about(cacheSchema.optional(), "what the prompt missed in the upstream's cache"),
  windows: about(windows.optional(), "how full the plan's windows were, in %", "windows", "json"),
  replaces: about(replaced.optional(), "the earlier line whose usage was missing and is here"),
  transport: about(text.optional(), "websocket"),
  path: about(text.optional(), "the path, if `endpoint` is `other`"),
  requested_model: about(text.optional(), "the model requested upstream, if no other field names it"),
  estimated: about(z.array(text).optional(), "the kinds of usage that were estimated"),
  priced_as: about(text.optional(), "the model whose price was used, if the answer's model has none"),
  unpriced_because: about(text.optional(), "why there is no price"),
  unpriced_usage: about(usage.optional(), "the usage without a price"),
  at_least_usd: about(decimal.optional(), "the charge for the usage that has a price"),
  tariff: about(z.record(text, z.unknown()).optional(), "how the answer was served, if it has no price"),
  recording: about(text.optional(), "the recording that has the request and its answer"),
  traceparent: about(text.optional(), "the client's trace"),
  prev: about(z.hex().length(64), "the SHA-256 of the line before"),
});

const { shape } = line;

/** The journal notes this before the request goes out. */
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

const amounts = line.pick({ official_usd: true, charge_usd: true, limit_usd: true });

/** Other amounts for a request, which replace those in `was`. */
const correction = z.object({
  v: shape.v,
  id: shape.id,
  time: shape.time,
  corrects: about(text.min(1), "the request"),
  request_time: about(time, "the time of the request, so that its amount stays in the same day"),
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
  was: about(amounts, "the amounts that it replaces"),
  prev: shape.prev,
});

const mark = z.object({
  v: shape.v,
  id: shape.id,
  time: shape.time,
  mark: about(text, "what was found, for people"),
  accepts: about(text.optional(), "the mark that the owner accepts with this line"),
  request_time: about(time, "limits count the amount in the day of this time"),
  key: shape.key,
  group: shape.group,
  client: shape.client,
  limit_usd: about(decimal.optional(), "the amount that limits count for lines that may be lost"),
  replaces: shape.replaces,
  prev: shape.prev,
});

/** A newer gateway may write more fields. */
export const lineSchema = line.loose();
export const correctionSchema = correction.loose();
export const markSchema = mark.loose();
export const repricingSchema = correction.omit({ v: true, prev: true, time: true });

export type Line = z.infer<typeof line>;
export type Correction = z.infer<typeof correction>;
export type Repricing = Readonly<z.infer<typeof repricingSchema>>;
export type Intent = Readonly<z.infer<typeof intentSchema>>;
export type Identity = Readonly<z.infer<typeof clientSchema>>;
export type CacheMiss = Readonly<z.infer<typeof cacheSchema>>;

export type LineDraft = Readonly<Omit<Line, "v" | "prev">>;
export type CorrectionDraft = Readonly<Omit<Correction, "v" | "prev">>;
export type MarkDraft = Readonly<Omit<z.infer<typeof mark>, "v" | "prev">>;
export type Draft = LineDraft | CorrectionDraft | MarkDraft;
export type Mark = Readonly<z.infer<typeof mark>>;
export type AnyLine = Omit<LineDraft, "raw_usage"> | CorrectionDraft | MarkDraft;

type Fields = Readonly<Record<string, unknown>>;

export function encodeLine(draft: Draft, prev: string): string {
  return `{"v":1,${JSON.stringify(draft).slice(1, -1)},"prev":"${prev}"}`;
}

export function hashLine(line: string | Uint8Array): string {
  return Bun.SHA256.hash(line, "hex");
}

export function parseLine(bytes: Buffer): Fields | null {
  const value = parseJson(bytes.toString());
  return isObject(value) ? value : null;
}
