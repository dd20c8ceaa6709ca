// Which header fields are forwarded, in each direction: all of them, known or not, except those that a list here names.
// docs/contract.md has the same lists. Pure.

import type { Field } from "../../lib/http1/types.ts";

/** Fields that are not forwarded. */
interface Exceptions {
  readonly names: ReadonlySet<string>;
  readonly patterns: RegExp;
}

/** Fields about one connection or its framing. The gateway writes its own. */
const HOP_BY_HOP = [
  "connection",
  "content-length",
  "expect",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

const REQUEST: Exceptions = {
  names: new Set([
    ...HOP_BY_HOP,
    "host",
    "accept-encoding",
    // The client's own account at the upstream.
    "chatgpt-account-id",
    "x-goog-user-project",
    // Browsers add these.
    "cookie",
    "origin",
    "referer",
  ]),
  // Keys, accounts, browsers, and the gateway's own fields.
  patterns:
    /authorization|api-?key$|^(?:x-)?(?:openai|anthropic)-(?:organi[sz]ation|project|workspace)(?:-id)?$|^sec-|^x-gateway-/,
};

const RESPONSE: Exceptions = {
  names: new Set([
    ...HOP_BY_HOP,
    "alt-svc",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    // The channel's account at the upstream.
    "anthropic-organization-id",
    "openai-organization",
    "openai-project",
    // Instructions to a browser about this origin.
    "clear-site-data",
    "nel",
    "refresh",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "x-frame-options",
    // The gateway sends its own.
    "x-content-type-options",
  ]),
  patterns: /^(?:access-control-|content-security-policy|cross-origin-|x-gateway-)/,
};

/** A value that looks like a client's key, under a name that is not known to carry one. */
const KEY_VALUE = /(?:^|[\s"'=:,;])sk-[\w-]{8}/;

/** A client's fields as they go upstream. The caller adds the credential and the channel's own fields. `keepEncoding`: the
 *  body is sent as it came, with its content-encoding. */
export function requestFields(fields: readonly Field[], keepEncoding: boolean): Field[] {
  const hop = readConnection(fields);
  const forwarded = fields.filter(([name, value]) => {
    if (hop.has(name) || KEY_VALUE.test(value)) return false;
    return name === "content-encoding" ? keepEncoding : isForwarded(name, REQUEST);
  });
  // Responses are metered on their way, and no client gets bytes that it cannot read.
  forwarded.push(["accept-encoding", "identity"]);
  return forwarded;
}

/** A channel's own fields replace the client's fields of the same name. */
export function overrideFields(fields: readonly Field[], own: readonly Field[]): readonly Field[] {
  if (own.length === 0) return fields;
  const lower = own.map(([name, value]): Field => [name.toLowerCase(), value]);
  const named = new Set(lower.map(([name]) => name));
  return [...fields.filter(([name]) => !named.has(name)), ...lower];
}

/** An upstream's fields as they go to the client. `x-request-id` is the gateway's own. Fields of decoded codings have been
 *  removed by decode.ts. */
export function responseFields(fields: readonly Field[]): Field[] {
  const hop = readConnection(fields);
  const forwarded: Field[] = [];
  for (const field of fields) {
    const [name, value] = field;
    if (hop.has(name)) continue;
    if (name === "x-request-id") forwarded.push(["x-upstream-request-id", value]);
    else if (isForwarded(name, RESPONSE)) forwarded.push(field);
  }
  forwarded.push(["x-content-type-options", "nosniff"]);
  return forwarded;
}

function isForwarded(name: string, { names, patterns }: Exceptions): boolean {
  return !names.has(name) && !patterns.test(name);
}

const NONE: ReadonlySet<string> = new Set();

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
