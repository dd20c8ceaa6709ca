// The only definition of the config file (zod, strict); the types come from it.
// scalars.ts reads the scalars, references.ts checks that names refer to something.

import { getErrorMessage } from "../lib/errors.ts";
import { z } from "zod";
import type { LimitName } from "./limit-names.ts";
import {
  readBaseUrl,
  readCount,
  readDecimal,
  readFlag,
  readHeaderName,
  readHeaderValue,
  readHostName,
  readListenHost,
  readHttpUrl,
  readMoment,
  readName,
  readOrigin,
  readProbeInterval,
  readRelayPrefix,
  readZone,
  readSecretText,
  readSize,
  readTimeLimit,
  readTimerDuration,
  readVendor,
} from "./yaml/scalars.ts";

export const PLATFORMS = ["messages", "responses", "content", "relay"] as const;
export type Platform = (typeof PLATFORMS)[number];

/** What people call a platform: its best-known maker, or its API. */
export const PLATFORM_NAMES: Readonly<Record<string, Platform>> = {
  anthropic: "messages",
  claude: "messages",
  openai: "responses",
  codex: "responses",
  chat: "responses",
  completions: "responses",
  google: "content",
  gemini: "content",
  vertex: "content",
};

export const DEFAULT_RELAY_PREFIX = "relay";

/** USD per million tokens; with `_per_1k`, USD per thousand calls. */
export const PRICE_KINDS = [
  "input",
  "cache_read",
  "cache_write_5m",
  "cache_write_1h",
  "cache_write",
  "cache_write_12h",
  "output",
  "input_audio",
  "input_image",
  "input_video",
  "cache_read_audio",
  "cache_read_image",
  "cache_read_video",
  "output_audio",
  "output_image",
  "output_video",
  "tool_prompt",
  "web_search_per_1k",
  "web_search_preview_per_1k",
  "x_search_per_1k",
  "x_posts_per_1k",
  "x_users_per_1k",
  "document_search_per_1k",
  "file_search_per_1k",
  "code_interpreter_per_1k",
  "hosted_shell_per_1k",
  "image_generation_per_1k",
  "google_search_per_1k",
  "google_search_prompt_per_1k",
  "maps_grounding_per_1k",
  "call_per_1k",
] as const;

/** One for all scalars: each schema that is created takes part of the start. */
const sourceText = z.string();

/** A scalar, given as its source text. `shape` is its JSON schema. */
function scalar<T>(read: (text: string) => T, shape: z.core.GlobalMeta = {}) {
  const schema = sourceText.transform((text, context) => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: getErrorMessage(error) });
      return z.NEVER;
    }
  });
  return schema.register(z.globalRegistry, shape);
}

function readFrom(lowest: number, highest: number): (text: string) => number {
  return (text) => {
    const count = readCount(text);
    if (count >= lowest && count <= highest) return count;
    throw new RangeError(`must be from ${lowest} to ${highest}`);
  };
}

function readText(text: string): string {
  if (text !== "") return text;
  throw new RangeError("is empty");
}

/** `${NAME}` may be anywhere in a value. */
const REFERENCE = "\\$\\{";

function textLike(pattern: string) {
  return { type: "string", pattern: `${pattern}|${REFERENCE}` } as const;
}

/** The JSON schemas of scalars, for editors. An editor sees scalars as YAML reads them: numbers, flags and texts. The
 *  gateway reads the source text instead, and only scalars.ts decides whether a value is valid. */
const SHAPES = {
  text: { type: ["string", "number", "boolean"] },
  name: { type: ["string", "number"], pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|${REFERENCE}` },
  flag: { type: undefined, anyOf: [{ type: "boolean" }, textLike("^(true|false)$")] },
  count: { type: undefined, anyOf: [{ type: "integer", minimum: 0 }, textLike("^\\d+$")] },
  decimal: { type: undefined, anyOf: [{ type: "number", minimum: 0 }, textLike("^\\d+(\\.\\d+)?$")] },
  duration: textLike("^\\d+(\\.\\d+)? ?(ms|s|m|h|d)$"),
  size: {
    type: undefined,
    anyOf: [{ type: "integer", minimum: 1 }, textLike("^\\d+(\\.\\d+)? ?([kKmMgG]([iI]?[bB])|[bB])?$")],
  },
  moment: textLike("^\\d{4}-\\d\\d-\\d\\d(T.+)?$"),
  url: textLike("^https?://"),
} as const;

const text = scalar(readText, SHAPES.text);
const name = scalar(readName, SHAPES.name);
const flag = scalar(readFlag, SHAPES.flag);
const decimal = scalar(readDecimal, SHAPES.decimal);
const timer = scalar(readTimerDuration, SHAPES.duration);
const size = scalar(readSize, SHAPES.size);
const moment = scalar(readMoment, SHAPES.moment);
const rank = scalar(readFrom(0, 1_000_000), SHAPES.count);
const positive = scalar(readFrom(1, 1_000_000), SHAPES.count);
/** One call is no repetition. */
const repetitions = scalar(readFrom(2, 1_000_000), SHAPES.count);
const platform = z.enum(PLATFORMS);
const names = z.array(name).min(1, "is empty: name at least one");

const limits = z.strictObject({
  usd_per_day: decimal.optional(),
  usd_per_month: decimal.optional(),
  usd_total: decimal.optional(),
  usd_per_session: decimal.optional(),
  requests_per_minute: positive.optional(),
  requests_per_minute_per_session: positive.optional(),
  concurrent_requests: positive.optional(),
  same_call: repetitions.optional(),
  agents: positive.optional(),
  strict: flag.default(false),
  unpriced: z.enum(["refuse", "allow"]).default("refuse"),
} satisfies Record<LimitName, z.ZodType>);

const percent = scalar(readFrom(1, 99), SHAPES.count);

const alerts = z.strictObject({
  at: z.array(percent).min(1, "is empty: name at least one percentage").default([80, 95]),
  command: z.array(text).min(1, "is empty: leave it out to run nothing").optional(),
});

/** An absent section is not parsed: a config can have ten thousand keys. */
const noLimits = { strict: false, unpriced: "refuse" } as const;

const channel = z.strictObject({
  platform,
  base_url: scalar(readBaseUrl, SHAPES.url),
  credential: scalar(readSecretText, SHAPES.text),
  disabled: flag.default(false),
  priority: rank.default(1),
  weight: positive.default(1),
  models: z.array(text).min(1, "is empty: leave it out to allow every model").optional(),
  aliases: z.record(text, text).default({}),
  headers: z.record(scalar(readHeaderName), scalar(readHeaderValue, SHAPES.text)).default({}),
  proxy: scalar(readHttpUrl, SHAPES.url).optional(),
  ca: text.optional(),
  timeouts: z
    .strictObject({
      connect: timer.prefault("10s"),
      first_byte: timer.prefault("300s"),
      // Some models think for ten minutes before the stream sends anything.
      idle: timer.prefault("900s"),
    })
    .prefault({}),
  probe: scalar(readProbeInterval, SHAPES.duration).optional(),
  price_provider: name.optional(),
  free: flag.default(false),
  websocket: flag.default(true),
  warm: flag.optional(),
});

const group = z.strictObject({
  platform,
  multiplier: decimal.prefault("1"),
  channels: names,
  description: z.string().default(""),
  exclusive: flag.default(false),
  limits: limits.default(noLimits),
});

const plan = z.strictObject({
  groups: names,
  active: flag.default(false),
  until: moment.optional(),
});

const key = z
  .strictObject({
    name,
    group: name,
    secret: scalar(readSecretText, SHAPES.text).optional(),
    secret_sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/i, "expected 64 hexadecimal digits")
      .toLowerCase()
      .optional(),
    created: moment.optional(),
    disabled: flag.default(false),
    expires: moment.optional(),
    limits: limits.default(noLimits),
  })
  .refine((each) => (each.secret === undefined) !== (each.secret_sha256 === undefined), {
    message: "needs exactly one of `secret` and `secret_sha256`",
    // Reported together with other problems of the key.
    when: ({ value }) => typeof value === "object" && value !== null,
  })
  .meta({ oneOf: [{ required: ["secret"] }, { required: ["secret_sha256"] }] });

const prices = z.partialRecord(z.enum(PRICE_KINDS), decimal);

export const configSchema = z.strictObject({
  listen: z
    .strictObject({
      host: scalar(readListenHost).default("127.0.0.1"),
      port: scalar(readFrom(0, 65_535), SHAPES.count).default(4141),
    })
    .prefault({}),
  timezone: scalar(readZone).prefault("system"),
  statusline: flag.default(false),
  relay_prefix: scalar(readRelayPrefix).default(DEFAULT_RELAY_PREFIX),
  vendor: scalar(readVendor).default("goog"),
  max_body: size.prefault("64MiB"),
  cors_origins: z.array(scalar(readOrigin)).default([]),
  console: z.enum(["loopback", "always", "never"]).default("loopback"),
  allowed_hosts: z.array(scalar(readHostName)).default([]),
  cache_analysis: z.enum(["on", "off"]).default("on"),
  on_disconnect: z.strictObject({ drain: timer.prefault("0s") }).prefault({}),
  warm: flag.default(true),
  failover: z
    .strictObject({
      attempts: scalar(readFrom(1, 100), SHAPES.count).default(3),
      total: scalar(readTimeLimit, SHAPES.duration).prefault("600s"),
    })
    .prefault({}),
  ledger: z
    .strictObject({
      path: text.default("ledger.jsonl"),
      sync: z.enum(["batch", "always", "never"]).default("batch"),
      rotate: z.strictObject({ size: size.optional(), monthly: flag.default(false) }).prefault({}),
    })
    .prefault({}),
  alerts: alerts.prefault({}),
  channels: z.record(name, channel).default({}),
  groups: z.record(name, group).default({}),
  plans: z.record(name, plan).default({}),
  keys: z.array(key).default([]),
  prices: z.record(text, prices).default({}),
});

export type Config = z.infer<typeof configSchema>;
