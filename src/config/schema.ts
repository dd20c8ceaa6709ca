// The only definition of the config file.

import { messageOf } from "../lib/errors.ts";
import { z } from "zod";
import { sha256Hex } from "../lib/secret.ts";
import { CALL_KINDS } from "./call-kinds.ts";
import { type NumberLimit, UNPRICED } from "./limit-names.ts";
import { isLoopback } from "./proxy.ts";
import * as scalars from "./yaml/scalars.ts";

export const PLATFORMS = ["messages", "responses", "content", "relay"] as const;
export type Platform = (typeof PLATFORMS)[number];

/** A `responses` group also serves Chat Completions,
 *  so it may have chat channels. */
export const CHAT = "chat";
export const CHAT_GROUP: Platform = "responses";
export const CHANNEL_WORDS = [...PLATFORMS, CHAT] as const;
export type ChannelPlatform = (typeof CHANNEL_WORDS)[number];

export function groupPlatform(platform: ChannelPlatform): Platform {
  return platform === CHAT ? CHAT_GROUP : platform;
}

interface PlatformFacts {
  /** Makers, tools and APIs that users may name instead. */
  readonly alsoCalled: readonly string[];
  /** Whose prices count if the channel's address is not known. */
  readonly makers: readonly string[];
  /** Besides loopback, only this address may get a client's own login. */
  readonly loginAddress?: string;
  /** There is a bridge for its dialect. */
  readonly converts?: true;
}

export const PLATFORM_FACTS: Readonly<Record<ChannelPlatform, PlatformFacts>> = {
  messages: {
    alsoCalled: ["anthropic", "claude"],
    makers: ["anthropic"],
    loginAddress: "https://api.anthropic.com",
    converts: true,
  },
  responses: {
    alsoCalled: ["openai", "codex", "chat", "completions"],
    makers: ["openai"],
    loginAddress: "https://chatgpt.com/backend-api/codex",
    converts: true,
  },
  content: { alsoCalled: ["google", "gemini", "vertex"], makers: ["google"], converts: true },
  relay: { alsoCalled: [], makers: ["anthropic", "google"] },
  chat: { alsoCalled: [], makers: [], converts: true },
};

export const NO_CREDENTIAL = "none";

export const CLIENT_LOGIN = "client";

/** If a base URL ends like this, paths below it have no version. */
export const UNVERSIONED = "/backend-api/codex";

export const DEFAULT_RELAY_PREFIX = "relay";

const TOKENS = ["input", "cache_read", "output"].flatMap((kind) =>
  ["", "_audio", "_image", "_video"].map((medium) => kind + medium),
);
const OTHER_TOKENS = ["cache_write", "cache_write_5m", "cache_write_1h", "cache_write_12h", "tool_prompt"];
/** USD per million tokens, or per thousand calls. */
const PRICE_KINDS = [...TOKENS, ...OTHER_TOKENS, ...CALL_KINDS.map((call) => `${call}_per_1k`)];

/** One schema is shared: creating more would slow the start. */
const sourceText = z.string();

/** `shape`: the value's JSON schema. */
function scalar<T>(read: (text: string) => T, shape: z.core.GlobalMeta = {}) {
  const schema = sourceText.transform((text, context) => {
    try {
      return read(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: messageOf(error) });
      return z.NEVER;
    }
  });
  return schema.register(z.globalRegistry, shape);
}

type Camel<Name> = Name extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<Camel<Rest>>}` : Name;

export function toCamel<Name extends string>(name: Name): Camel<Name>;
export function toCamel(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

function rename<Own extends object>(own: Own): { [Name in keyof Own as Camel<Name>]: Own[Name] };
function rename(own: object): object {
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [toCamel(name), value]));
}

function orNull<Schema extends z.ZodType>(schema: Schema) {
  return schema.optional().transform((value) => value ?? null);
}

function readFrom(lowest: number, highest: number): (text: string) => number {
  return (text) => {
    const count = scalars.readCount(text);
    if (count >= lowest && count <= highest) return count;
    throw new RangeError(`must be from ${lowest} to ${highest}`);
  };
}

/** `${NAME}` may be anywhere in a value. */
const REFERENCE = "\\$\\{";

function textLike(pattern: string) {
  return { type: "string", pattern: `${pattern}|${REFERENCE}` } as const;
}

/** For the JSON schema of editors. The gateway itself checks by scalars.ts. */
const SHAPES = {
  text: { type: ["string", "number", "boolean"] },
  name: { type: ["string", "number"], pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$|${REFERENCE}` },
  flag: {
    type: undefined,
    anyOf: [{ type: "boolean" }, textLike("^(true|false)$")],
  },
  count: {
    type: undefined,
    anyOf: [{ type: "integer", minimum: 0 }, textLike("^\\d+$")],
  },
  decimal: {
    type: undefined,
    anyOf: [{ type: "number", minimum: 0 }, textLike("^\\d+(\\.\\d+)?$")],
  },
  duration: textLike("^\\d+(\\.\\d+)? ?(ms|s|m|h|d)$"),
  size: {
    type: undefined,
    anyOf: [{ type: "integer", minimum: 1 }, textLike("^\\d+(\\.\\d+)? ?([kKmMgG]([iI]?[bB])|[bB])?$")],
  },
  moment: textLike("^\\d{4}-\\d\\d-\\d\\d(T.+)?$"),
  url: textLike("^https?://"),
} as const;

const text = scalar(scalars.readText, SHAPES.text);
const name = scalar(scalars.readName, SHAPES.name);
const flag = scalar(scalars.readFlag, SHAPES.flag);
const optionalFlag = flag.optional();
const decimal = scalar(scalars.readDecimal, SHAPES.decimal);
const timer = scalar(scalars.readTimerDuration, SHAPES.duration);
const age = scalar(scalars.readDuration, SHAPES.duration);
const size = scalar(scalars.readSize, SHAPES.size);
const moment = scalar(scalars.readMoment, SHAPES.moment);
const rank = scalar(readFrom(0, 1_000_000), SHAPES.count);
const positive = scalar(readFrom(1, 1_000_000), SHAPES.count);
const repetitions = scalar(readFrom(2, 1_000_000), SHAPES.count);
const onOrOff = z
  .enum(["on", "off"])
  .default("on")
  .transform((word) => word === "on");
const platform = z.enum(PLATFORMS);
const names = z.array(name).min(1, "is empty: name at least one");

export const limitsSchema = z
  .strictObject({
    // Amounts stay text: only billing/ computes money.
    usd_per_day: orNull(decimal),
    usd_per_month: orNull(decimal),
    usd_total: orNull(decimal),
    usd_per_session: orNull(decimal),
    requests_per_minute: orNull(positive),
    requests_per_minute_per_session: orNull(positive),
    concurrent_requests: orNull(positive),
    same_call: orNull(repetitions),
    unpriced: z.enum(UNPRICED).default(UNPRICED[0]),
  } satisfies Record<NumberLimit | "unpriced", z.ZodType>)
  .transform(({ unpriced, ...rest }) => ({ ...rename(rest), allowUnpriced: unpriced === "allow" }));

/** One object is shared: a config can have ten thousand keys without limits. */
const noLimits = limitsSchema.parse({}, { jitless: true });

const percent = scalar(readFrom(1, 99), SHAPES.count);

const alerts = z.strictObject({
  at: z
    .array(percent)
    .min(1, "is empty: name at least one percentage")
    .default([80, 95])
    .transform((at) => at.toSorted((a, b) => a - b)),
  command: orNull(z.array(text).min(1, "is empty: leave it out to run nothing")),
});

const headers = z
  .record(scalar(scalars.readHeaderName), scalar(scalars.readHeaderValue, SHAPES.text))
  .default({});

const traces = z.lazy(() =>
  z.strictObject({
    url: scalar(scalars.readTracesUrl, SHAPES.url),
    headers,
  }),
);

const chat = z.strictObject({
  /** `none`: the server refuses a cap. */
  cap: z.enum(["max_tokens", "max_completion_tokens", "none"]).optional(),
  /** The field that says how much the model thinks. */
  reasoning: z.enum(["none", "effort", "deepseek", "openrouter", "qwen"]).optional(),
  /** The model must get back its thoughts of each turn with tool calls. */
  replay: optionalFlag,
  files: optionalFlag,
  schemas: optionalFlag,
  top_k: optionalFlag,
  systems: z.enum(["any", "first"]).optional(),
  /** The server takes a key that groups requests for its cache. */
  cache_key: optionalFlag,
  /** The server reads `cache_control`, which says what to cache. */
  cache_marks: optionalFlag,
});

export type ChatSettings = Readonly<z.infer<typeof chat>>;

const channel = z
  .strictObject({
    platform: z.enum(CHANNEL_WORDS),
    base_url: scalar(scalars.readBaseUrl, SHAPES.url),
    credential: scalar(scalars.readSecretText, SHAPES.text).optional(),
    disabled: flag.default(false),
    priority: rank.default(1),
    weight: positive.default(1),
    /** Globs. Null: the upstream's own list. */
    models: orNull(z.array(text).min(1, "is empty: leave it out to allow every model")),
    aliases: z.record(text, text).default({}),
    headers,
    proxy: orNull(scalar(scalars.readHttpUrl, SHAPES.url)),
    ca: text.optional(),
    timeouts: z
      .strictObject({
        connect: timer.prefault("10s"),
        first_byte: timer.prefault("300s"),
        // Some models think for ten minutes before they send anything.
        idle: timer.prefault("900s"),
      })
      .transform(({ connect, first_byte, idle }) => ({
        connectMs: connect,
        firstByteMs: first_byte,
        idleMs: idle,
      }))
      .prefault({}),
    probe: orNull(scalar(scalars.readProbeInterval, SHAPES.duration)),
    /** Null: the address decides. */
    price_provider: orNull(name),
    bill: z.enum(["book", "reported"]).optional(),
    free: flag.default(false),
    websocket: flag.default(true),
    chat: chat.optional(),
    /** Undefined: the address decides. */
    ask_usage: optionalFlag,
  })
  .refine(({ bill, free }) => !free || bill !== "reported", {
    path: ["bill"],
    message: "`reported` charges what the seller names, and `free: true` charges nothing: choose one",
    when: ({ value }) => typeof value === "object" && value !== null,
  })
  .refine(({ credential, base_url }) => credential !== undefined || isLoopback(base_url.hostname), {
    path: ["credential"],
    message:
      "is missing: write `credential: ${NAME}`, and NAME=… into gateway.env. " +
      "Only a server on this machine needs none",
  })
  .transform(({ base_url, aliases, headers: own, probe, ...rest }) => ({
    ...rename(rest),
    ...readCredential(rest),
    baseUrl: rest.platform === CHAT ? base_url : scalars.withoutVersion(base_url),
    aliases: new Map(Object.entries(aliases).filter(([alias]) => !alias.includes("*"))),
    /** The first glob that fits is used. */
    aliasGlobs: Object.entries(aliases)
      .filter(([alias]) => alias.includes("*"))
      .sort(([a], [b]) => b.indexOf("*") - a.indexOf("*")),
    headers: Object.entries(own),
    probeMs: probe,
  }));

/** With a client's login, requests use no WebSocket. */
function readCredential(given: { credential?: string | undefined; websocket: boolean }) {
  const { credential = NO_CREDENTIAL, websocket } = given;
  const usesLogin = credential === CLIENT_LOGIN;
  return { usesLogin, credential: usesLogin ? "" : credential, websocket: websocket && !usesLogin };
}

const group = z
  .strictObject({
    platform,
    multiplier: decimal.optional(),
    channels: names,
    convert: flag.default(false),
    description: z.string().default(""),
    exclusive: flag.default(false),
    default_model: orNull(text),
    other_paths: orNull(z.array(scalar(scalars.readOtherPath, SHAPES.text))),
    /** The cache lifetime of `gateway run claude`. Null: the tool's own. */
    cache: orNull(z.enum(["5m", "1h"])),
    limits: limitsSchema.default(noLimits),
  })
  .transform(rename);

const plan = z.strictObject({ groups: names, active: flag.default(false), until: orNull(moment) });

const digest = z
  .string()
  .regex(/^[0-9a-f]{64}$/i, "expected 64 hexadecimal digits")
  .toLowerCase();

const key = z
  .strictObject({
    name,
    group: name,
    secret: scalar(scalars.readSecretText, SHAPES.text).optional(),
    secret_sha256: digest.optional(),
    previous: orNull(z.lazy(() => z.strictObject({ secret_sha256: digest, until: moment }))),
    created: orNull(moment),
    disabled: flag.default(false),
    expires: orNull(moment),
    /** Which series of GET /metrics the key gets. */
    metrics: z.enum(["own", "all"]).optional(),
    record: scalar(scalars.readRecordingName).optional(),
    limits: limitsSchema.default(noLimits),
  })
  .refine((each) => (each.secret === undefined) !== (each.secret_sha256 === undefined), {
    message: "needs exactly one of `secret` and `secret_sha256`",
    // This runs even if the key has other problems, to report all.
    when: ({ value }) => typeof value === "object" && value !== null,
  })
  .meta({ oneOf: [{ required: ["secret"] }, { required: ["secret_sha256"] }] })
  .transform(({ secret_sha256: hash, ...rest }) => {
    return { ...rest, secretSha256: hash ?? sha256Hex(rest.secret ?? "") };
  });

const prices = z.partialRecord(z.enum(PRICE_KINDS), decimal).transform((own) => {
  const given: Record<string, string> = {};
  for (const [kind, price] of Object.entries(own)) if (price !== undefined) given[kind] = price;
  return given;
});

export const configSchema = z
  .strictObject({
    listen: z
      .strictObject({
        host: scalar(scalars.readListenHost).default("127.0.0.1"),
        port: scalar(readFrom(0, 65_535), SHAPES.count).default(4141),
      })
      .prefault({}),
    timezone: scalar(scalars.readZone).prefault("system"),
    statusline: flag.default(false),
    relay_prefix: scalar(scalars.readRelayPrefix).default(DEFAULT_RELAY_PREFIX),
    vendor: scalar(scalars.readVendor).default("goog"),
    max_body: size.prefault("64MiB"),
    cors_origins: z.array(scalar(scalars.readOrigin)).default([]),
    console: z.enum(["loopback", "always", "never"]).default("loopback"),
    allowed_hosts: z.array(scalar(scalars.readHostName)).default([]),
    cache_analysis: onOrOff,
    context: onOrOff,
    on_disconnect: z
      .strictObject({ drain: timer.prefault("0s") })
      .transform(({ drain }) => ({ drainMs: drain }))
      .prefault({}),
    warm: flag.default(true),
    failover: z
      .strictObject({
        attempts: scalar(readFrom(1, 100), SHAPES.count).default(3),
        total: scalar(scalars.readTimeLimit, SHAPES.duration).prefault("600s"),
      })
      .transform(({ attempts, total }) => ({ attempts, totalMs: total }))
      .prefault({}),
    ledger: z
      .strictObject({
        path: text.default("ledger.jsonl"),
        rotate: z.strictObject({ monthly: flag.default(false) }).prefault({}),
      })
      .prefault({}),
    alerts: alerts.prefault({}),
    recordings: z
      .strictObject({ max_size: size.prefault("1GiB"), max_age: age.prefault("30d") })
      .transform(({ max_size, max_age }) => ({ maxBytes: max_size, maxAgeMs: max_age }))
      .prefault({}),
    otlp: orNull(traces),
    channels: z.record(name, channel).default({}),
    groups: z.record(name, group).default({}),
    plans: z.record(name, plan).default({}),
    keys: z.array(key).default([]),
    prices: z
      .record(text, prices)
      .default({})
      .transform((own) => new Map(Object.entries(own))),
  })
  .transform(({ max_body, ...rest }) => ({ ...rename(rest), maxBodyBytes: max_body }));

export type Config = z.output<typeof configSchema>;
export type Limits = Readonly<z.output<typeof limitsSchema>>;
