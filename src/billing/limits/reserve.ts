// What a request may cost, read from its body before it goes out: for limits only, never for a bill. Two amounts:
// what it will probably cost, and for `strict` limits the most that it can cost. docs/decisions/0017-limits-bind.md

import { asBuffer } from "../../lib/memory/bytes.ts";
import { parseJson } from "../../lib/json/json.ts";
import { type Span, scanTopLevel } from "../../lib/json/json-spans.ts";
import { addUsd, formatUsd, parseUsd } from "../../lib/money.ts";

import type { Tariff, Usage, UsageKind } from "../usage.ts";

/** What a usage costs at one of the channels that may serve the request; null: it has no price there. */
export type Quote = (usage: Usage, tariff: Tariff) => string | null;

export interface ReservedRequest {
  /** Decompressed. */
  readonly body: Uint8Array;
  readonly estimatedInput: number;
  /** What the longest 1 % of the model's recent responses used; null: it has none. */
  readonly expectedOutput: number | null;
  /** False for embeddings, whose responses have no output tokens. */
  readonly hasOutput: boolean;
  /** One for each channel that may serve the request. */
  readonly quotes: readonly Quote[];
}

/** Why there is no upper bound of a request's cost, and what would help. */
export interface Unbounded {
  readonly unbounded: string;
}

/** If nothing is known about a model's responses. */
const UNKNOWN_OUTPUT_TOKENS = 32_000;

/** What it will probably cost: a decimal in USD. Null: the model has no price. */
export function expectCost(request: ReservedRequest): string | null {
  const { body, estimatedInput: input, expectedOutput, hasOutput, quotes } = request;
  if (!hasOutput) return quoteAll(quotes, { input }, {});
  const { cap, answers } = readFields(body);
  const output = Math.min(
    cap ?? Number.POSITIVE_INFINITY,
    (expectedOutput ?? UNKNOWN_OUTPUT_TOKENS) * answers,
  );
  return quoteAll(quotes, { input, output }, {});
}

const NO_CAP: Unbounded = {
  unbounded: "its output has no cap: set max_tokens (max_output_tokens, maxOutputTokens)",
};
const NO_PRICE: Unbounded = { unbounded: "it has no price" };

/** Each kind of input could be the one that counts: cache writes cost more than plain input. */
const INPUT_KINDS: readonly UsageKind[] = [
  "input",
  "cache_write_5m",
  "cache_write_1h",
  "cache_write",
  "cache_write_12h",
  "input_audio",
];
const OUTPUT_KINDS: readonly UsageKind[] = ["output", "output_audio", "output_image", "output_video"];

/** The most that it can cost: a decimal in USD. */
export function boundCost({ body, hasOutput, quotes }: ReservedRequest): string | Unbounded {
  const fields = readFields(body);
  const text = asBuffer(body).toString("latin1");
  const outside = fields.outside ?? findOutsideContent(text);
  if (outside !== null)
    return { unbounded: `the cost of "${outside}" cannot be known in advance: leave it out` };
  const cap = hasOutput ? fields.cap : 0;
  if (cap === null) return NO_CAP;
  const input = body.length + [...text.matchAll(ATTACHMENT)].length * MAX_ATTACHMENT_TOKENS;
  const prompt = quoteDearest(quotes, INPUT_KINDS, input, fields.tariff);
  const answer = cap === 0 ? "0" : quoteDearest(quotes, OUTPUT_KINDS, cap, fields.tariff);
  if (prompt === null || answer === null) return NO_PRICE;
  return formatUsd(addUsd(parseUsd(prompt), parseUsd(answer)));
}

/** Content that the provider fetches: nobody here knows its size. Inside a text, the quotes are escaped. */
const OUTSIDE_CONTENT =
  /(?<!\\)"(file_id|file_url|file_uri|fileUri)"|(?<!\\)"(?:image_url|url)"\s*:\s*(?:\{\s*)?"https?:/;

function findOutsideContent(text: string): string | null {
  const found = OUTSIDE_CONTENT.exec(text);
  return found === null ? null : (found[1] ?? "url");
}

/** No tokenizer makes more than one token of a byte. But a picture's tokens do not depend on its bytes: providers
 *  scale pictures down to less than 20,000 tokens. */
const ATTACHMENT = /;base64,|(?<!\\)"(?:media_type|mime_type|mimeType)"/g;
const MAX_ATTACHMENT_TOKENS = 20_000;

function quoteDearest(
  quotes: readonly Quote[],
  kinds: readonly UsageKind[],
  count: number,
  tariff: Tariff,
): string | null {
  const [plain = null, ...special] = kinds.map((kind) => quoteAll(quotes, { [kind]: count }, tariff));
  if (plain === null) return null;
  return special.reduce<string>((most, other) => pickDearer(most, other ?? most), plain);
}

/** At the dearest of the channels; null if it has no price at one of them. */
function quoteAll(quotes: readonly Quote[], usage: Usage, tariff: Tariff): string | null {
  let dearest = "0";
  for (const quote of quotes) {
    const amount = quote(usage, tariff);
    if (amount === null) return null;
    dearest = pickDearer(dearest, amount);
  }
  return dearest;
}

function pickDearer(one: string, other: string): string {
  return parseUsd(one) >= parseUsd(other) ? one : other;
}

interface Fields {
  /** The most output tokens of all answers; null: there is no cap, or not one that every reader understands alike. */
  readonly cap: number | null;
  /** How many answers it asks for: each costs output. */
  readonly answers: number;
  /** The service that the request asks for. */
  readonly tariff: Tariff;
  /** A field that brings in content or work that is not in the body. */
  readonly outside: string | null;
}

const CAPS = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;
const CONFIGS = ["generationConfig", "generation_config"] as const;
const CONFIG_CAPS = ["maxOutputTokens", "max_output_tokens"] as const;
const COUNTS = ["candidateCount", "candidate_count"] as const;
const OUTSIDE = [
  "previous_response_id",
  "conversation",
  "prompt",
  "container",
  "mcp_servers",
  "cachedContent",
  "cached_content",
] as const;
const OTHERS = ["n", "tools", "service_tier", "speed", "inference_geo"] as const;
const NOTHING: Fields = { cap: null, answers: 1, tariff: {}, outside: null };

function readFields(body: Uint8Array): Fields {
  // Of two caps, readers take the first or the last: then there is none.
  const members = readMembers(body, [...CAPS, ...CONFIGS, ...OUTSIDE, ...OTHERS]);
  if (members === null) return NOTHING;
  const caps: (number | null)[] = CAPS.filter((name) => members.has(name)).map((name) =>
    readCap(members.get(name)),
  );
  let answers = readCount(members.get("n"));
  for (const name of CONFIGS.filter((each) => members.has(each))) {
    const config = readMembers(Buffer.from(members.get(name) ?? ""), [...CONFIG_CAPS, ...COUNTS]);
    for (const own of CONFIG_CAPS) if (config?.has(own) !== false) caps.push(readCap(config?.get(own)));
    for (const own of COUNTS) answers *= readCount(config?.get(own));
  }
  const known = caps.filter((cap) => cap !== null);
  const isClear = known.length > 0 && known.length === caps.length;
  return {
    cap: isClear ? Math.max(...known) * answers : null,
    answers,
    tariff: readTariff(members),
    outside: findOutside(members),
  };
}

/** The texts of these members; null if the body is no object, or has one of them twice. */
function readMembers(body: Uint8Array, names: readonly string[]): ReadonlyMap<string, string> | null {
  const scan = scanTopLevel(body, names);
  if (scan.kind !== "object") return null;
  const bytes = asBuffer(body);
  const read = ({ start, end }: Span): string => bytes.toString("utf8", start, end);
  return new Map([...scan.spans].map(([name, span]) => [name, read(span)]));
}

/** Upstreams refuse or round a fraction: it is rounded up here. */
function readCap(text: string | undefined): number | null {
  const cap = text === undefined ? null : parseJson(text);
  return typeof cap === "number" && cap > 0 && cap <= Number.MAX_SAFE_INTEGER ? Math.ceil(cap) : null;
}

function readCount(text: string | undefined): number {
  const count = text === undefined ? 1 : parseJson(text);
  return typeof count === "number" && count >= 1 && count <= 1000 ? Math.ceil(count) : 1;
}

const USUAL_TIERS = new Set(["auto", "default", "standard", "standard_only", "flex"]);

function readTariff(members: ReadonlyMap<string, string>): Tariff {
  const read = (name: string): string | undefined => {
    const value = parseJson(members.get(name) ?? "null");
    return typeof value === "string" && !USUAL_TIERS.has(value) ? value : undefined;
  };
  const [tier, speed, place] = [read("service_tier"), read("speed"), read("inference_geo")];
  return {
    ...(tier !== undefined && { service_tier: tier }),
    ...(speed !== undefined && { speed }),
    ...(place !== undefined && { inference_geo: place }),
  };
}

/** Tools that run at the provider: they add input and fees that the body does not show. */
const HOSTED_TOOL =
  /"(?:type"\s*:\s*"(?:web_search|web_fetch|file_search|code_execution|code_interpreter|image_generation|tool_search|mcp)[^"]*|google_?[sS]earch\w*|google_?[mM]aps|code_?[eE]xecution|url_?[cC]ontext|file_?[sS]earch|retrieval)"/;

function findOutside(members: ReadonlyMap<string, string>): string | null {
  const named = OUTSIDE.find((name) => (members.get(name) ?? "null") !== "null");
  if (named !== undefined) return named;
  return HOSTED_TOOL.exec(members.get("tools") ?? "")?.[0] === undefined ? null : "tools";
}
