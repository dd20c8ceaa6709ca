// Sends a span for each line to `otlp:`, in batches.

import type { Line, LineDraft } from "../../billing/ledger/line.ts";
import { sellerOf } from "../../billing/prices.ts";
import { OUTPUT_KINDS, PROMPT_KINDS, countTokens, type Usage } from "../../billing/usage.ts";
import type { Catalog, TraceSettings } from "../../config/catalog.ts";
import { findProxy } from "../../config/proxy.ts";
import { addressOf } from "../../gateway/upstream/address.ts";
import { fetchWhole } from "../../gateway/upstream/fetch.ts";
import { messageOf } from "../../lib/errors.ts";
import { numberOf } from "../../lib/exact.ts";
import { createClient } from "../../lib/http/client.ts";
import { Fields } from "../../lib/http/fields.ts";
import { originOf, type Upstream } from "../../lib/http/upstream.ts";
import { VERSION } from "../../lib/version.ts";

const MAX_WAITING = 10_000;
/** Writing a batch blocks for less than a millisecond. */
const BATCH = 50;
const PAUSE_MS = 1000;
const LAST_MS = 2000;

export interface SpanOptions {
  readonly catalog: () => Pick<Catalog, "otlp" | "channels">;
  readonly warn: (text: string) => void;
}

export function createSpanExport({ catalog, warn }: SpanOptions) {
  const client = createClient();
  let waiting: TraceSpan[] = [];
  let isAway = false;
  let sending: Promise<void> | null = null;
  const sendBatches = async (): Promise<void> => {
    while (waiting.length > 0) {
      const { otlp } = catalog();
      const batch = new Set(waiting.slice(0, BATCH));
      const problem = otlp === null ? null : await sendSpans(client, otlp, [...batch]);
      if (problem?.isAway === true) {
        if (!isAway) warn(`otlp: the receiver is away (${problem.why}): ${waiting.length} spans wait`);
        isAway = true;
        return;
      }
      // Some spans may have been dropped meanwhile.
      waiting = waiting.filter((span) => !batch.has(span));
      if (problem !== null) warn(`otlp: spans were refused: ${problem.why}`);
      if (isAway) warn("otlp: spans wait no longer");
      isAway = false;
    }
  };
  const send = (): Promise<void> => (sending ??= sendBatches().finally(() => (sending = null)));
  const timer = setInterval(() => void send(), PAUSE_MS).unref();
  return {
    add: (line: LineDraft): void => {
      const channel = catalog().channels.get(line.channel);
      const place = channel && { ...addressOf(channel).origin, provider: sellerOf(channel).provider };
      waiting.push(describeSpan(line, place ?? null));
      if (waiting.length > MAX_WAITING) waiting.shift();
    },
    close: async (): Promise<void> => {
      await Promise.race([send(), Bun.sleep(LAST_MS)]);
      clearInterval(timer);
      if (waiting.length > 0) warn(`otlp: ${waiting.length} spans were not sent`);
      client.close();
    },
  };
}

const DEADLINES = {
  connectMs: 10_000,
  firstByteMs: 10_000,
  idleMs: 10_000,
};
const MAX_ANSWER_BYTES = 65_536;
/** OTLP lets clients try again after these. */
const BUSY = new Set([429, 502, 503, 504]);

/** Returns null if the spans were accepted. `isAway`: they may be sent again. */
async function sendSpans(
  client: Upstream,
  { url, headers }: TraceSettings,
  spans: readonly TraceSpan[],
): Promise<{ readonly isAway: boolean; readonly why: string } | null> {
  const proxy = findProxy(url, process.env);
  const request = {
    origin: { ...originOf(url), ...(proxy !== null && { proxy }) },
    method: "POST",
    target: url.pathname + url.search,
    fields: new Fields().addAll([
      ["content-type", "application/json"],
      ["user-agent", "gateway"],
      ...Object.entries(headers),
    ]),
    body: Buffer.from(encodeSpans(spans)),
    deadlines: DEADLINES,
  };
  try {
    const { status } = (await fetchWhole(client, request, MAX_ANSWER_BYTES)).response;
    // Redirects are not followed: the headers may hold a credential.
    return status < 300 ? null : { isAway: BUSY.has(status), why: `it answers ${status}` };
  } catch (error) {
    return { isAway: true, why: messageOf(error) };
  }
}

const CONVENTIONS = "https://opentelemetry.io/schemas/1.38.0";

type Place = { readonly provider: string | null; readonly host: string; readonly port: number } | null;

type ExportedLine = Omit<Line, "v" | "prev">;

const [KIND_CLIENT, STATUS_UNSET, STATUS_ERROR] = [3, 0, 2];

function describeSpan(line: ExportedLine, place: Place) {
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
      ...describeOwn(line),
      ...describeModel(line, operation, place),
      ...describeUsage(line),
      ...(hasFailed && { "error.type": error }),
    }),
    status: hasFailed ? { code: STATUS_ERROR, message: line.outcome } : { code: STATUS_UNSET },
  };
}

export type TraceSpan = ReturnType<typeof describeSpan>;

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$/;

/** A line gets the same ids if it is sent again. */
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
      // The ledger's digits, which a float could change.
      "gen_ai.usage.cost.amount": numberOf(official),
      "gen_ai.usage.cost.currency": "USD",
      "gen_ai.usage.cost.source": source === "reported" ? "provider" : "local",
    }),
  };
}

function describeOwn({ client, cache, ...line }: ExportedLine) {
  const more = {
    tool: client?.tool,
    label: client?.label,
    cache_missed: cache?.missed,
  };
  const plain = Object.entries({ ...line, ...more }).filter(([, value]) => typeof value !== "object");
  return Object.fromEntries(plain.map(([name, value]) => [`gateway.${name}`, value]));
}

function listAttributes(fields: Readonly<Record<string, unknown>>) {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return known.map(([key, value]) => ({ key, value: describeValue(value) }));
}

function describeValue(value: unknown): object {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  // In OTLP's JSON, 64-bit integers are text.
  return typeof value === "number" ? { intValue: String(value) } : { doubleValue: value };
}

function encodeSpans(spans: readonly TraceSpan[]): string {
  const attributes = listAttributes({ "service.name": "gateway", "service.version": VERSION });
  const scopeSpans = [
    {
      scope: { name: "gateway", version: VERSION },
      spans,
      schemaUrl: CONVENTIONS,
    },
  ];
  return JSON.stringify({ resourceSpans: [{ resource: { attributes }, scopeSpans }] });
}
