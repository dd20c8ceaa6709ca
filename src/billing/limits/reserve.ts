// What a request may cost, read from its body before it goes out: for limits only, never for a bill. Three amounts: what it
// will probably cost, what it may well cost, and for `strict` limits the most that it can cost.
// docs/decisions/0017-limits-bind.md

import { asBuffer } from "../../lib/memory/bytes.ts";
import { parseJson } from "../../lib/json/json.ts";
import { type Span } from "../../lib/json/scanner.ts";
import { type Scan, scanMembers } from "../../lib/scan.ts";
import { parseUsd } from "../../lib/money.ts";

import type { Tariff, Usage, UsageKind } from "../usage.ts";
import type { ExpectedAnswer } from "./answer-history.ts";
import type { ExpectedPrompt } from "./cached-prompts.ts";
import { type ClientTools, readTools } from "./client-tools.ts";

/** What a usage costs at one of the channels that may serve the request; null: it has no price there. */
export type Quote = (usage: Usage, tariff: Tariff) => string | null;

export interface ReservedRequest {
  /** Decompressed. */
  readonly body: Uint8Array;
  /** Where `LIMIT_MEMBERS` are in it. Null: nobody has looked. */
  readonly scan: Scan<unknown> | null;
  /** What its prompt will probably be like. */
  readonly prompt: ExpectedPrompt;
  /** What its answer will probably be like; null: nothing is known. */
  readonly answer: ExpectedAnswer | null;
  /** False for embeddings, whose responses have no output tokens. */
  readonly hasOutput: boolean;
  /** The members that cap the output in this dialect. Upstreams ignore those of another. None: nothing caps it. */
  readonly capNames: readonly string[];
  /** The tools that run at the client in this dialect. */
  readonly clientTools: ClientTools;
  /** One for each channel that may serve the request. */
  readonly quotes: readonly Quote[];
  /** How a channel may serve it at a price of its own, as the book names it: `service_tier=priority`. */
  readonly ways: readonly string[];
}

/** Why there is no upper bound of a request's cost, and what would help. */
export interface UnboundedCost {
  readonly unbounded: string;
}

/** If nothing is known about a model's answers. */
const UNKNOWN_OUTPUT_TOKENS = 4000;
/** What an answer may well have if the request allows more, or has no cap. */
const UNCAPPED_OUTPUT_TOKENS = 32_000;
/** An answer may be this much longer than the longest ones of a model before. */
const SURPRISE = 10;

/** What a request may cost. Amounts are decimals in USD. */
export interface Forecast {
  /** What it will probably cost. */
  readonly expected: string;
  /** What it may well cost. `isProven`: its model's answers before say so; else its cap does. */
  readonly most: (isProven: boolean) => string;
}

/** Null: the model has no price. */
export function forecastCost(request: ReservedRequest): Forecast | null {
  const { prompt, answer, hasOutput, quotes, capNames } = request;
  const { tokens, cached } = prompt;
  const input = tokens - cached;
  const read = cached === 0 ? { input } : { input, cache_read: cached };
  const { cap, answers } = hasOutput ? readFields(request, capNames) : NO_OUTPUT;
  const count = answers ?? 1;
  const most = cap ?? Number.POSITIVE_INFINITY;
  const output = Math.min(most, (answer?.output ?? UNKNOWN_OUTPUT_TOKENS) * count);
  const expected = quoteAll(quotes, hasOutput ? { ...read, output } : read, {});
  if (expected === null) return null;
  if (!hasOutput) return { expected, most: () => expected };
  const few = UNKNOWN_OUTPUT_TOKENS * count;
  const proven = answer?.isOwn === true ? Math.max(answer.longest * SURPRISE * count, few) : most;
  // Until answers show it, nobody knows whether the upstream obeys a small cap.
  const unproven = Math.max(Math.min(most, UNCAPPED_OUTPUT_TOKENS * count), few);
  return {
    expected,
    most: (isProven) => {
      const produced = isProven ? Math.min(most, proven, unproven) : unproven;
      return quoteAll(quotes, { ...read, output: produced }, {}) ?? expected;
    },
  };
}

const NO_OUTPUT = { cap: null, answers: 1 } as const;

const NO_CAPS: UnboundedCost = { unbounded: "its output has no cap, and this endpoint accepts none" };
const NO_PRICE: UnboundedCost = { unbounded: "it has no price" };
const UNCLEAR_COUNT: UnboundedCost = {
  unbounded: "the number of its answers (n or candidateCount) is no number from 1 to 1000",
};
const AMBIGUOUS: UnboundedCost = {
  unbounded: "it has a field in more than one spelling, and parsers disagree on which one counts",
};

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
export function boundCost(request: ReservedRequest): string | UnboundedCost {
  const { body, hasOutput, quotes, ways, capNames, clientTools } = request;
  const fields = readFields(request, capNames);
  const tools = readTools(body, clientTools);
  const text = resolveEscapes(readWithout(tools.parts, body));
  const outside = findOutside(fields.members) ?? tools.hosted ?? findOutsideContent(text) ?? tools.stored;
  if (outside !== null)
    return { unbounded: `the cost of ${outside} cannot be known in advance: leave it out` };
  const cap = hasOutput ? fields.cap : 0;
  if (cap === null) return explainNoCap(fields, capNames);
  if (isAmbiguous(body, LIMIT_MEMBERS)) return AMBIGUOUS;
  const added = tools.hasTools ? MAX_TOOL_TEXT_TOKENS : hasOutput ? MAX_OWN_TEXT_TOKENS : 0;
  const attachments = [...text.matchAll(ATTACHMENT)].length * MAX_ATTACHMENT_TOKENS;
  const input = body.length + attachments + added;
  const tariffs = listTariffs(readService(fields.members), ways);
  const dearest = quotes.map((quote) => quoteAtAny(quote, tariffs));
  // Together: a long prompt makes the output dearer, too.
  return quoteDearest(dearest, input, cap) ?? NO_PRICE;
}

function explainNoCap({ answers }: Fields, capNames: readonly string[]): UnboundedCost {
  if (answers === null) return UNCLEAR_COUNT;
  return capNames.length === 0
    ? NO_CAPS
    : { unbounded: `its output has no cap: set ${describeCaps(capNames)}` };
}

/** Some parsers match names without regard to case: Go's does, and many relays are written in Go. */
function isAmbiguous(body: Uint8Array, names: readonly string[]): boolean {
  const scan = scanMembers(
    body,
    names,
    names.map((name) => name.toLowerCase()),
  );
  // Without them there is no cap either.
  if (scan === null || names.some((name) => scan.repeated.has(name))) return false;
  if (scan.spellings !== names.filter((name) => scan.get(name) !== undefined).length) return true;
  return CONFIGS.some((name) => {
    const { start, end } = scan.get(name) ?? { start: 0, end: 0 };
    return isAmbiguous(body.subarray(start, end), CONFIG_FIELDS);
  });
}

/** The patterns below do not know names with escapes (`\u0075rl`). Escaped quotes and backslashes stay as they are. */
function resolveEscapes(text: string): string {
  if (!text.includes("\\u00")) return text;
  return text.replace(/\\(?:u00([2-7][0-9a-f])|.)/gis, (escape: string, code: string | undefined) => {
    const character = code === undefined ? "\\" : String.fromCharCode(Number.parseInt(code, 16));
    return character === "\\" || character === '"' ? escape : character;
  });
}

/** The body without these parts: the patterns below find nothing in them. */
function readWithout(parts: readonly Span[], body: Uint8Array): string {
  const bytes = asBuffer(body);
  const starts = [0, ...parts.map(({ end }) => end)];
  return starts.map((start, index) => bytes.toString("latin1", start, parts[index]?.start)).join("0");
}

/** Content that the provider fetches or has stored: nobody here knows its size. Inside a text, the quotes are escaped. A
 *  schema has such names with an object as their value. An item of nothing but an id is a reference, too, and so are calls
 *  of the provider's tools: https://platform.openai.com/docs/api-reference/responses/create. So is an earlier answer's
 *  sound: https://platform.openai.com/docs/guides/audio. Mistral has a `document_url`, OpenRouter takes an address as
 *  `file_data`, Qwen a list of pictures as `video`, and Vertex `gs:` for `https:`. Items that bring in tools were left out
 *  if all of those run at the client. Without regard to case, because some parsers match names so. */
const OUTSIDE_CONTENT = new RegExp(
  [
    /(?<!\\)"(file_id|file_url|file_?uri)"\s*:\s*"/,
    /(?<!\\)"(?:\w{0,40}ur[il]|\w{0,40}data|image|video|audio)"\s*:\s*(?:\{\s*)?"(?:\s|\\[nrt])*[a-z][a-z0-9+.-]*:\\?\/\\?\//,
    /(?<!\\)"(video|images|frames)"\s*:\s*\[\s*"/,
    /(?<!\\)"(audio)"\s*:\s*\{[^{}]*"id"\s*:/,
    /(?<!\\)"type"\s*:\s*"(item_reference|additional_tools|tool_search_output|tool_definition)"/,
    // A small file may have many pages, or hours. Only pictures and texts have bounds.
    /(?<!\\)"(?:media_type|mime_?type)"\s*:\s*"(?!image\/|text\/)([^"]{1,99})/,
    /(?<!\\)"data:(?!image\/|text\/)([^",;]{1,99})[^",]{0,99};base64,/,
    /(?<!\\)"(file_data)"\s*:\s*"(?!data:)/,
    /(?<!\\)"type"\s*:\s*"(input_audio)"/,
    /(?<!\\)"type"\s*:\s*"((?:image_generation|file_search|web_search|code_interpreter)_call)"/,
    /[[,]\s*\{\s*(?:"type"\s*:\s*null\s*,\s*)?"(id)"\s*:\s*"[^"]*"\s*(?:,\s*"type"\s*:\s*null\s*)?\}/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "i",
);

function findOutsideContent(text: string): string | null {
  const found = OUTSIDE_CONTENT.exec(text);
  return found === null ? null : `"${found.slice(1).find((name) => name !== undefined) ?? "url"}"`;
}

/** No tokenizer makes more than one token of a byte. But a picture's tokens do not depend on its bytes: providers
 *  scale pictures down to less than 50,000 tokens. The most is that of gpt-4o-mini, which has 2,833 for a picture and 5,667
 *  for each of up to eight tiles: https://platform.openai.com/docs/guides/images-vision */
const ATTACHMENT = /;base64,|(?<!\\)"(?:media_type|mime_?type)"/gi;
const MAX_ATTACHMENT_TOKENS = 50_000;

/** Anthropic adds a text of its own to a request with tools, and describes there its own tools, such as `bash`:
 *  https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview#pricing. All of them together take less. */
const MAX_TOOL_TEXT_TOKENS = 5000;
/** Some providers have a prompt of their own in every request for an answer. xAI's has less than 200 tokens. */
const MAX_OWN_TEXT_TOKENS = 500;

/** At the dearest of these tariffs that the channel has. */
function quoteAtAny(quote: Quote, tariffs: readonly Tariff[]): Quote {
  return (usage) =>
    tariffs
      .map((tariff) => quote(usage, tariff))
      .reduce((most, amount) =>
        most === null || amount === null ? (most ?? amount) : pickDearer(most, amount),
      );
}

function quoteDearest(quotes: readonly Quote[], input: number, output: number): string | null {
  const prompts = INPUT_KINDS.map((kind) => ({ [kind]: input }));
  const answers = output === 0 ? [{}] : OUTPUT_KINDS.map((kind) => ({ [kind]: output }));
  const usages = prompts.flatMap((prompt) => answers.map((answer) => ({ ...prompt, ...answer })));
  const [plain = null, ...special] = usages.map((usage) => quoteAll(quotes, usage, {}));
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
  /** How many answers it asks for: each costs output. Null: not every reader understands the number alike. */
  readonly answers: number | null;
  /** The texts of the members that matter. Empty if the body has one of them twice: then there is no cap. */
  readonly members: ReadonlyMap<string, string>;
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
  // Other models may answer, or other work may be billed.
  "fallbacks",
  "models",
  "plugins",
  "preset",
  "prompt_id",
  // More output than the cap may be billed: https://platform.openai.com/docs/guides/predicted-outputs
  "prediction",
  "best_of",
  "use_beam_search",
  // Members that a relay, or Google's compatible endpoint, takes out of it.
  "extra_body",
  "web_search_options",
  "search_parameters",
  "enable_search",
] as const;
const OTHERS = ["n", "tools", "context_management", "service_tier", "speed", "inference_geo"] as const;
/** What is read of a body. */
export const LIMIT_MEMBERS: readonly string[] = [...CAPS, ...CONFIGS, ...OUTSIDE, ...OTHERS];
const CONFIG_FIELDS = [...CONFIG_CAPS, ...COUNTS];
const NOTHING: Fields = { cap: null, answers: 1, members: new Map() };

function readFields(
  { body, scan }: Pick<ReservedRequest, "body" | "scan">,
  capNames: readonly string[],
): Fields {
  // With two caps of the same name, some readers take the first and some the last: such a cap does not count.
  const members = readMembers(body, LIMIT_MEMBERS, scan);
  if (members === null) return NOTHING;
  const caps: (number | null)[] = CAPS.filter((name) => capNames.includes(name) && members.has(name)).map(
    (name) => readCap(members.get(name)),
  );
  const counts = [readCount(members.get("n"))];
  for (const name of CONFIGS.filter((each) => capNames.includes(each) && members.has(each))) {
    const config = readMembers(Buffer.from(members.get(name) ?? ""), CONFIG_FIELDS);
    for (const own of CONFIG_CAPS) if (config?.has(own) !== false) caps.push(readCap(config?.get(own)));
    for (const own of COUNTS) counts.push(readCount(config?.get(own)));
  }
  const known = caps.filter((cap) => cap !== null);
  const isClear = known.length > 0 && known.length === caps.length;
  const answers = multiply(counts);
  return { cap: multiply([isClear ? Math.max(...known) : null, answers]), answers, members };
}

/** Null if one of them is. */
function multiply(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length < counts.length ? null : known.reduce((product, count) => product * count, 1);
}

/** Only those of the request's dialect help. */
function describeCaps(capNames: readonly string[]): string {
  const isConfig = (name: string): boolean => CONFIGS.some((config) => config === name);
  const names = capNames.map((name) => (isConfig(name) ? `${CONFIGS[0]}.${CONFIG_CAPS[0]}` : name));
  return [...new Set(names)].join(" or ");
}

/** The texts of these members; null if the body is not an object, or has one of them twice. */
function readMembers(
  body: Uint8Array,
  names: readonly string[],
  known: Scan<unknown> | null = null,
): ReadonlyMap<string, string> | null {
  const scan = known ?? scanMembers(body, names);
  if (scan === null || names.some((name) => scan.repeated.has(name))) return null;
  const bytes = asBuffer(body);
  const read = ({ start, end }: Span): string => bytes.toString("utf8", start, end);
  return new Map(
    names.flatMap((name) => {
      const span = scan.get(name);
      return span === undefined ? [] : [[name, read(span)]];
    }),
  );
}

const MAX_ANSWERS = 1000;

/** Upstreams refuse or round a fraction: it is rounded up here. */
function readCap(text: string | undefined): number | null {
  const cap = text === undefined ? null : parseJson(text);
  return typeof cap === "number" && cap > 0 && cap <= Number.MAX_SAFE_INTEGER ? Math.ceil(cap) : null;
}

/** Null: not clear. Google's parser takes a number in quotes, and so do others. */
function readCount(text: string | undefined): number | null {
  const count = text === undefined ? null : parseJson(text);
  if (count === null) return 1;
  return typeof count === "number" && count >= 1 && count <= MAX_ANSWERS ? Math.ceil(count) : null;
}

/** The service that a request names. */
interface Service {
  readonly tier?: string | undefined;
  readonly speed?: string | undefined;
  readonly place?: string | undefined;
}

function readService(members: ReadonlyMap<string, string>): Service {
  const read = (name: string): string | undefined => {
    const value = parseJson(members.get(name) ?? "null");
    return typeof value === "string" ? value : undefined;
  };
  return { tier: read("service_tier"), speed: read("speed"), place: read("inference_geo") };
}

/** Tiers that cost no more than the standard price, whatever the provider's settings are. */
const PLAIN_TIERS = new Set(["default", "standard_only", "flex"]);
/** Without one of its own, the provider's settings decide: the project's (OpenAI) or a header (Vertex). */
const OPEN_TIERS = new Set([undefined, "auto", "standard"]);
/** Two names of one tier: the answer may have the other one. */
const FAST_TIERS = ["priority", "fast"];

/** How a request may be served, as far as the price depends on it. A tier or place that it does not name is set at the
 *  provider, where nobody here can see it: https://platform.claude.com/docs/en/manage-claude/data-residency and the
 *  reference of OpenAI's `service_tier` (`auto`). */
function listTariffs({ tier, speed, place }: Service, ways: readonly string[]): Tariff[] {
  const valuesOf = (name: string): string[] =>
    ways.flatMap((way) => (way.startsWith(`${name}=`) ? [way.slice(name.length + 1)] : []));
  const places = place === undefined ? [undefined, ...valuesOf("inference_geo")] : [place];
  return listTiers(tier, valuesOf("service_tier")).flatMap((service_tier) =>
    places.map((inference_geo) => ({
      ...(service_tier !== undefined && { service_tier }),
      ...(speed !== undefined && { speed }),
      ...(inference_geo !== undefined && { inference_geo }),
    })),
  );
}

function listTiers(tier: string | undefined, booked: readonly string[]): readonly (string | undefined)[] {
  if (OPEN_TIERS.has(tier)) return [undefined, ...booked];
  if (tier === undefined || PLAIN_TIERS.has(tier)) return [undefined];
  return FAST_TIERS.includes(tier) ? FAST_TIERS : [tier];
}

/** A field that brings in content or work that is not in the body. */
function findOutside(members: ReadonlyMap<string, string>): string | null {
  const named = OUTSIDE.find((name) => !["null", "false"].includes(members.get(name) ?? "null"));
  // Compaction is one more call of the model.
  const isCompacted = resolveEscapes(members.get("context_management") ?? "").includes("compact");
  const found = named ?? (isCompacted ? "context_management" : undefined);
  return found === undefined ? null : `"${found}"`;
}
