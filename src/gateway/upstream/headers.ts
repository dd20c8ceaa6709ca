// What crosses in header fields, each way: only what a rule lets through. Pure.

import type { Field } from "../../lib/http1/types.ts";

/** Fields named here cross, and those that begin with a start, unless they are private. `withheld` decides
 *  nothing: it saves the look at the starts for names that nearly every message bears. */
interface Rules {
  readonly known: ReadonlyMap<string, boolean>;
  readonly starts: readonly string[];
}

function buildRules(names: readonly string[], withheld: readonly string[], starts: readonly string[]): Rules {
  const known = [
    ...names.map((name) => [name, true] as const),
    ...withheld.map((name) => [name, false] as const),
  ];
  return { known: new Map(known), starts };
}

const REQUEST = buildRules(
  [
    "accept",
    "accept-language",
    "content-type",
    "user-agent",
    // The messages platform and its clients.
    "anthropic-version",
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "x-app",
    "x-claude-code-session-id",
    // The responses platform and its clients.
    "openai-beta",
    "originator",
    "version",
    "session-id",
    "session_id",
    "thread-id",
    "thread_id",
    "conversation-id",
    "conversation_id",
    "x-client-request-id",
    "x-session-id",
    "x-session-affinity",
    // The content platform and its clients.
    "x-server-timeout",
    // Anyone's.
    "idempotency-key",
    "http-referer",
    "x-title",
    "traceparent",
    "tracestate",
    "x-stainless-arch",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
  ],
  ["accept-encoding", "authorization", "connection", "content-length", "host", "x-api-key"],
  [
    "anthropic-",
    "openai-",
    "x-anthropic-",
    "x-claude-",
    "x-codex-",
    "x-gemini-",
    "x-openai-",
    "x-stainless-",
  ],
);

const RESPONSE = buildRules(
  [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "request-id",
    "retry-after",
    "retry-after-ms",
    "server-timing",
    "vary",
    "x-accel-buffering",
    "x-content-type-options",
    "x-models-etag",
    "x-reasoning-included",
    "x-should-retry",
  ],
  ["connection", "content-length", "date", "server", "transfer-encoding"],
  [
    "anthropic-",
    "openai-",
    "ratelimit-",
    "x-anthropic-",
    "x-codex-",
    "x-gemini-",
    "x-openai-",
    "x-ratelimit-",
  ],
);

/** What says whose account it is, or opens it, crosses under no name. */
const PRIVATE = /api-key|authorization|account|cookie|credential|organi[sz]ation|project|secret|workspace/;

/** What content clients send about themselves, after `x-<vendor>-`. */
const VENDOR_TAILS: ReadonlySet<string> = new Set(["api-client", "fieldmask", "request-params"]);

const NONE: ReadonlySet<string> = new Set();

export interface Outgoing {
  readonly vendor: string;
  /** The body goes as it came, its content-encoding with it. */
  readonly keepEncoding: boolean;
}

/** A client's fields as they go upstream. The credential and the channel's own fields are the caller's to add. */
export function requestFields(fields: readonly Field[], { vendor, keepEncoding }: Outgoing): Field[] {
  const dropped = readConnection(fields);
  const start = `x-${vendor}-`;
  const crossing = fields.filter(([name]) => {
    if (dropped.has(name)) return false;
    if (name === "content-encoding") return keepEncoding;
    const known = REQUEST.known.get(name);
    if (known !== undefined) return known;
    if (name.startsWith(start)) return VENDOR_TAILS.has(name.slice(start.length));
    return matchesStart(name, REQUEST);
  });
  // Answers are metered on their way, and no client gets bytes that it can't read.
  crossing.push(["accept-encoding", "identity"]);
  return crossing;
}

/** The channel's own fields stand instead of what they name. */
export function overrideFields(fields: readonly Field[], own: readonly Field[]): readonly Field[] {
  if (own.length === 0) return fields;
  const lower = own.map(([name, value]): Field => [name.toLowerCase(), value]);
  const named = new Set(lower.map(([name]) => name));
  return [...fields.filter(([name]) => !named.has(name)), ...lower];
}

/** An upstream's fields as they go to the client. Framing and `x-request-id` are the gateway's own. */
export function responseFields(fields: readonly Field[], keepEncoding = true): Field[] {
  const dropped = readConnection(fields);
  const crossing: Field[] = [];
  for (const field of fields) {
    const [name, value] = field;
    if (dropped.has(name)) continue;
    if (name === "x-request-id") crossing.push(["x-upstream-request-id", value]);
    else if (name === "content-encoding" ? keepEncoding : crosses(name, RESPONSE)) crossing.push(field);
  }
  return crossing;
}

function crosses(name: string, rules: Rules): boolean {
  return rules.known.get(name) ?? matchesStart(name, rules);
}

function matchesStart(name: string, rules: Rules): boolean {
  return rules.starts.some((start) => name.startsWith(start)) && !PRIVATE.test(name);
}

/** The names in `connection`: those fields are for this hop only. A message may have thousands of them. */
function readConnection(fields: readonly Field[]): ReadonlySet<string> {
  let names: Set<string> | null = null;
  for (const [name, value] of fields) {
    if (name !== "connection" || value === "keep-alive" || value === "close") continue;
    names ??= new Set();
    for (const token of value.split(",")) names.add(token.trim().toLowerCase());
  }
  return names ?? NONE;
}
