// A ledger line as a span of OpenTelemetry, in the JSON form of OTLP. No prompt, answer or secret is in a line. Names of
// keys and labels are. Pure.

import { numberOf } from "../../lib/exact.ts";
import { VERSION } from "../../lib/version.ts";
import type { Line } from "../../billing/ledger/line.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, type Usage } from "../../billing/usage.ts";

/** The names below are those of this state of the conventions for generative models, which are still in development. */
const CONVENTIONS = "https://opentelemetry.io/schemas/1.38.0";

/** What a span says of a channel; null: the config has no such channel. */
type Place = { readonly provider: string | null; readonly host: string; readonly port: number } | null;

/** A line as it is written, or as it was read. */
type ExportedLine = Omit<Line, "v" | "prev">;

const [KIND_CLIENT, STATUS_UNSET, STATUS_ERROR] = [3, 0, 2];

export function describeSpan(line: ExportedLine, place: Place) {
  const start = BigInt(Date.parse(line.time)) * 1_000_000n;
  const operation = nameOperation(line);
  const hasFailed = line.outcome !== "complete" || (line.status ?? 0) >= 400;
  const error = line.outcome === "complete" ? String(line.status) : line.outcome;
  return {
    ...identify(line),
    name: `${operation} ${line.model}`.trim(),
    kind: KIND_CLIENT,
    startTimeUnixNano: String(start),
    endTimeUnixNano: String(start + BigInt(line.duration_ms ?? 0) * 1_000_000n),
    attributes: listAttributes({
      ...describeModel(line, operation, place),
      ...describeUsage(line),
      ...describeOwn(line),
      ...(hasFailed && { "error.type": error }),
    }),
    status: hasFailed ? { code: STATUS_ERROR, message: line.outcome } : { code: STATUS_UNSET },
  };
}

export type Span = ReturnType<typeof describeSpan>;

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** The same line has the same ids whenever it is sent, so that a receiver can tell a second time. */
function identify(line: ExportedLine) {
  const hash = new Bun.CryptoHasher("sha256").update(line.id).digest("hex");
  const spanId = hash.slice(32, 48);
  const [, traceId, parentSpanId] = TRACEPARENT.exec(line.traceparent ?? "") ?? [];
  return traceId === undefined || parentSpanId === undefined
    ? { traceId: hash.slice(0, 32), spanId }
    : { traceId, spanId, parentSpanId };
}

function nameOperation({ endpoint }: ExportedLine): string {
  if (/embed/i.test(endpoint)) return "embeddings";
  return /generateContent$/i.test(endpoint) ? "generate_content" : "chat";
}

/** Who serves a platform, where the config does not name the channel's provider. */
const PROVIDERS: Readonly<Record<string, string>> = {
  messages: "anthropic",
  responses: "openai",
  chat: "openai",
  content: "gcp.gemini",
  google: "gcp.gemini",
  aws: "aws.bedrock",
  "x-ai": "x_ai",
  mistral: "mistral_ai",
  moonshotai: "moonshot_ai",
};

function describeModel(line: ExportedLine, operation: string, place: Place) {
  const provider = place?.provider ?? line.converted ?? line.platform;
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.provider.name": PROVIDERS[provider] ?? provider,
    "gen_ai.request.model": line.model,
    "gen_ai.response.model": line.upstream_model,
    "gen_ai.conversation.id": line.client?.session,
    "gen_ai.agent.id": line.client?.agent,
    "server.address": place?.host,
    "server.port": place?.port,
    "http.response.status_code": line.status,
  };
}

/** Its input includes what was read from a cache or written to one. */
function describeUsage({ usage, official_usd: official, price_source: source }: ExportedLine) {
  const counts: Usage = usage;
  const written = PROMPT_KINDS.filter((kind) => kind.startsWith("cache_write"));
  const read = PROMPT_KINDS.filter((kind) => kind.startsWith("cache_read"));
  const hasTokens = Object.keys(usage).length > 0;
  return {
    ...(hasTokens && {
      "gen_ai.usage.input_tokens": countTokens(counts, PROMPT_KINDS),
      "gen_ai.usage.cache_read.input_tokens": countTokens(counts, read),
      "gen_ai.usage.cache_write.input_tokens": countTokens(counts, written),
      "gen_ai.usage.output_tokens": countTokens(counts, OUTPUT_KINDS),
      "gen_ai.usage.reasoning.output_tokens": counts.reasoning ?? 0,
    }),
    ...(official !== null && {
      // As the ledger has it, without a float between.
      "gen_ai.usage.cost.amount": numberOf(official),
      "gen_ai.usage.cost.currency": "USD",
      "gen_ai.usage.cost.source": source === "reported" ? "provider" : "local",
    }),
  };
}

function describeOwn(line: ExportedLine) {
  return {
    "gateway.request.id": line.id,
    "gateway.key": line.key,
    "gateway.group": line.group,
    "gateway.channel": line.channel,
    "gateway.endpoint": line.endpoint,
    "gateway.tool": line.client?.tool,
    "gateway.label": line.client?.label,
    "gateway.stream": line.stream,
    "gateway.outcome": line.outcome,
    "gateway.basis": line.basis,
    "gateway.official_usd": line.official_usd,
    "gateway.charge_usd": line.charge_usd,
    "gateway.provider_usd": line.provider_usd,
    "gateway.paid_by": line.paid_by,
    "gateway.attempts": line.attempts.length,
    "gateway.first_byte_ms": line.first_byte_ms,
    "gateway.converted": line.converted,
    "gateway.cache.missed_tokens": line.cache?.missed,
    "gateway.cache.because": line.cache?.because,
    "gateway.suspect": line.suspect,
    "gateway.upstream_request_id": line.upstream_request_id,
  };
}

/** Absent fields are left out. */
function listAttributes(fields: Readonly<Record<string, unknown>>) {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return known.map(([key, value]) => ({ key, value: describeValue(value) }));
}

function describeValue(value: unknown): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  // Whole numbers of 64 bits are text in this form. An object is a number, as its text is.
  return typeof value === "number" ? { intValue: String(value) } : { doubleValue: value };
}

/** The body of a request to the receiver. */
export function encodeSpans(spans: readonly Span[]): string {
  const attributes = listAttributes({ "service.name": "gateway", "service.version": VERSION });
  const scopeSpans = [{ scope: { name: "gateway", version: VERSION }, spans, schemaUrl: CONVENTIONS }];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans }] });
}
