// What providers refuse beyond their dialects, with evidence.

import { getList, isObject, lookUp, type Table } from "../lib/json/json.ts";
import { type Effort, EFFORTS } from "./neutral/conversation.ts";
import type { Json } from "./neutral/notes.ts";

// Schemas.

/** The root of a tool's schema must be an object. OpenAI also wants `properties` there:
 *  https://github.com/spring-projects/spring-ai/issues/4776,
 *  https://github.com/farion1231/cc-switch/issues/5490 */
export function completeSchema(schema: Json): Json {
  const isDescribed = ["properties", "anyOf", "oneOf", "allOf", "$ref"].some((word) => word in schema);
  if (schema["type"] === "object" && isDescribed) return schema;
  return { ...schema, type: "object", ...(isDescribed ? {} : { properties: {} }) };
}

/** What Claude's structured outputs take. The official SDK (lib/transform-json-schema)
 * moves the rest into the description.
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs */
const CLAUDE_WORDS = new Set("type required enum const $ref title description default".split(" "));
const CLAUDE_FORMATS = new Set("date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "));
/** Words whose value is an object of schemas by name, or a list of schemas. */
const NAMED = new Set(["properties", "$defs", "definitions"]);
const LISTED = new Set(["anyOf", "oneOf", "allOf"]);

/** `lost`: some limit is only in the description.
 *  https://github.com/future-agi/future-agi/pull/412 */
export function closeSchema(schema: Json) {
  let lost = false;
  const close = (value: unknown): unknown => {
    if (!isObject(value)) return value;
    const closed: Json = {};
    const limits: Json = {};
    for (const [word, member] of Object.entries(value)) {
      const taken = closeMember(word, member, close);
      if (taken !== null) closed[taken[0]] = taken[1];
      else if (word !== "$schema" && (word !== "additionalProperties" || isObject(member)))
        limits[word] = member;
    }
    if (isObjectSchema(value)) closed["additionalProperties"] = false;
    if (Object.keys(limits).length === 0) return closed;
    lost = true;
    const about = [value["description"], JSON.stringify(limits)];
    return { ...closed, description: about.filter((text) => typeof text === "string").join("\n\n") };
  };
  const closed = close(schema);
  return { schema: isObject(closed) ? { ...closed } : schema, lost };
}

/** A member of a schema. Null: Claude does not take it. */
function closeMember(
  word: string,
  member: unknown,
  close: (value: unknown) => unknown,
): readonly [word: string, member: unknown] | null {
  if (LISTED.has(word)) return [word === "oneOf" ? "anyOf" : word, getList(member).map(close)];
  if (NAMED.has(word) && isObject(member))
    return [word, Object.fromEntries(Object.entries(member).map(([name, each]) => [name, close(each)]))];
  if (word === "items") return [word, close(member)];
  return isTakenByClaude(word, member) ? [word, member] : null;
}

function isTakenByClaude(word: string, member: unknown): boolean {
  if (word === "format") return typeof member === "string" && CLAUDE_FORMATS.has(member);
  if (word === "minItems") return member === 0 || member === 1;
  return CLAUDE_WORDS.has(word);
}

function isObjectSchema({ type, properties }: Table<unknown>): boolean {
  return type === "object" || getList(type).includes("object") || isObject(properties);
}

/** https://platform.openai.com/docs/guides/structured-outputs#supported-schemas */
const STRICT_WORDS = new Set(
  `type properties required additionalProperties items enum const anyOf $ref $defs definitions
  title description pattern format multipleOf maximum exclusiveMaximum minimum exclusiveMinimum
  minItems maxItems`.split(/\s+/),
);

/** OpenAI's strict mode refuses optional or open members at any depth. */
export function fitsStrict(schema: unknown, isRoot = true): boolean {
  if (!isObject(schema)) return false;
  const { type, properties, required, items, anyOf, additionalProperties } = schema;
  if (Object.keys(schema).some((word) => !STRICT_WORDS.has(word))) return false;
  if (isRoot && type !== "object") return false;
  if (!["type", "enum", "const", "anyOf", "$ref"].some((word) => word in schema)) return false;
  if (isObjectSchema(schema)) {
    const names = isObject(properties) ? Object.keys(properties) : [];
    if (additionalProperties !== false || !names.every((name) => getList(required).includes(name)))
      return false;
  }
  const named = ["properties", "$defs", "definitions"].flatMap((word) => {
    const inside = schema[word];
    return isObject(inside) ? Object.values(inside) : [];
  });
  const inner = [...named, ...getList(anyOf), ...(items === undefined ? [] : [items])];
  return inner.every((each) => fitsStrict(each, false));
}

const COUNTS = new Set("minItems maxItems minLength maxLength minProperties maxProperties".split(" "));

/** Gemini has types in capitals, and some words of its own. */
export function correctSchema(sent: unknown): Json {
  if (!isObject(sent)) return {};
  const { nullable, propertyOrdering: _, ...schema } = sent;
  const corrected: Json = Object.fromEntries(
    Object.entries(schema).map(([word, value]) => [word, correctWord(word, value)]),
  );
  const { type } = corrected;
  return nullable === true && typeof type === "string" ? { ...corrected, type: [type, "null"] } : corrected;
}

function correctWord(word: string, value: unknown): unknown {
  if (word === "type") return Array.isArray(value) ? value.map(lower) : lower(value);
  if (word === "properties" && isObject(value))
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, correctSchema(each)]));
  if (word === "items") return correctSchema(value);
  if (word === "anyOf") return getList(value).map(correctSchema);
  // Gemini's 64-bit numbers are texts: https://protobuf.dev/programming-guides/json/
  return COUNTS.has(word) && typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
}

function lower(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}

// Sampling.

/** Claude's range ends at 1.
 *  https://platform.claude.com/docs/en/api/messages */
export const MOST_CLAUDE_TEMPERATURE = 1;

/** "`temperature` and `top_p` cannot both be specified for this model":
 *  https://github.com/BerriAI/litellm/issues/15097 */
export function refusesBothSamplings(model: string): boolean {
  return /claude-opus-4-1|claude-(?:opus|sonnet|haiku)-4-[56]/.test(model);
}

// Effort and limits.

/** The tokens for each effort, for models that count them. */
export const BUDGETS: Readonly<Record<Effort, number>> = {
  none: 0,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};

const WORDS: Table<Effort> = {
  none: "none",
  off: "none",
  minimal: "low",
  low: "low",
  medium: "medium",
  persistent: "medium",
  high: "high",
  xhigh: "xhigh",
  max: "max",
  ultra: "max",
};

export function readEffort(value: unknown): Effort | undefined {
  if (typeof value === "string") return lookUp(WORDS, value.toLowerCase()) ?? "medium";
  if (typeof value !== "number") return undefined;
  if (value === 0) return "none";
  // A negative number: the model decides.
  if (value < 0) return "medium";
  return EFFORTS.find((effort) => BUDGETS[effort] >= value) ?? "max";
}

/** Reasoning models' lowest effort.
 *  https://platform.openai.com/docs/guides/reasoning */
const LOWEST: readonly (readonly [RegExp, string | null])[] = [
  [/^(?:gpt-4|gpt-3|chatgpt-4o)/, null],
  [/^o\d/, "low"],
  [/^gpt-5(?:-mini|-nano)?(?:-\d{4}|$)/, "minimal"],
  [/^gpt-5(?:\.\d+)?-codex/, "low"],
  [/^gpt-/, "none"],
];

/** Null: the request has no effort. */
export function writeOpenaiEffort(effort: Effort, model: string): string | null {
  const name = bareName(model);
  const lowest = LOWEST.find(([pattern]) => pattern.test(name))?.[1];
  if (lowest === null) return null;
  if (effort === "none") return lowest ?? null;
  if (effort !== "xhigh" && effort !== "max") return effort;
  return /^gpt-(?:5\.[2-9]|[6-9])/.test(name) ? effort : "high";
}

/** These models refuse sampling parameters. */
export function isOpenaiReasoner(model: string): boolean {
  return /^(?:o\d|gpt-[5-9])/.test(bareName(model));
}

/** Whether a prompt may have marks for the cache. */
export function takesBreakpoints(model: string): boolean {
  return /^gpt-(?:5\.[6-9]|[6-9])/.test(bareName(model));
}

/** https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking */
export function thinksAdaptively(model: string): boolean {
  return /claude-(?:opus|sonnet|haiku)-(?:4-[6-9]|[5-9])|claude-(?:fable|mythos)/.test(bareName(model));
}

/** These models take only the defaults of the sampling parameters. */
export function refusesSampling(model: string): boolean {
  return /claude-opus-4-[7-9]|claude-(?:opus|sonnet|haiku)-[5-9]|claude-(?:fable|mythos)/.test(
    bareName(model),
  );
}

const OUTPUT_CAPS: readonly (readonly [RegExp, number])[] = [
  [/^gpt-4o/, 16_384],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-4/, 8192],
  [/^o\d/, 100_000],
  [/^gpt-[5-9]/, 128_000],
  [/^claude-3-[57]/, 8192],
  [/^claude-3/, 4096],
  [/^gemini-2\.0/, 8192],
  [/^gemini-/, 65_536],
];

export function findOutputCap(model: string): number | null {
  const name = bareName(model);
  return OUTPUT_CAPS.find(([pattern]) => pattern.test(name))?.[1] ?? null;
}

function bareName(model: string): string {
  return model.slice(model.lastIndexOf("/") + 1).toLowerCase();
}

// Media.

/** Providers refuse a media type with parameters. */
export function nameMediaType(type: string): string {
  const [plain = ""] = type.toLowerCase().split(";");
  return plain === "image/jpg" ? "image/jpeg" : plain;
}
