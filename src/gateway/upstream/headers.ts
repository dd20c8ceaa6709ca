// Which header fields are forwarded, in each direction: all of them, known or not, except those that a list here names.
// docs/contract.md has the same lists. Pure.

import type { Field, Fields } from "../../lib/http/fields.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { KnownSecrets } from "../intake/secrets.ts";

/** Traffic repeats a few dozen names. */
const MAX_KNOWN_NAMES = 1024;
const MAX_KNOWN_LENGTH = 64;

/** The fields that are not forwarded in one direction. What becomes of a name is decided once. */
class Exceptions {
  readonly #names: ReadonlySet<string>;
  readonly #patterns: RegExp;
  readonly #renamed: ReadonlyMap<string, string>;
  readonly #known = new BoundedMap<string, string | null>(MAX_KNOWN_NAMES);

  constructor(names: readonly string[], patterns: RegExp, renamed: ReadonlyMap<string, string> = new Map()) {
    this.#names = new Set(names);
    this.#patterns = patterns;
    this.#renamed = renamed;
  }

  /** The name under which a field is forwarded; null if it is not. */
  forward(name: string): string | null {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const forwarded =
      this.#names.has(name) || this.#patterns.test(name) ? null : (this.#renamed.get(name) ?? name);
    if (name.length <= MAX_KNOWN_LENGTH) this.#known.set(name, forwarded);
    return forwarded;
  }
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

const REQUEST = new Exceptions(
  [
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
  ],
  // Keys, accounts, browsers, and the gateway's own fields.
  /authorization|api-?key$|^(?:x-)?(?:openai|anthropic)-(?:organi[sz]ation|project|workspace)(?:-id)?$|^sec-|^x-gateway-/,
);

const RESPONSE = new Exceptions(
  [
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
  ],
  /^(?:access-control-|content-security-policy|cross-origin-|x-gateway-)/,
  // The client's x-request-id is the gateway's own.
  new Map([["x-request-id", "x-upstream-request-id"]]),
);

/** A client's fields as they go upstream. The caller adds the credential and the channel's own fields. `keepEncoding`: the
 *  body is sent as it came, with its content-encoding. */
export function requestFields(fields: Fields, keepEncoding: boolean, secrets: KnownSecrets): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name) => {
    if (hop.has(name) || (name === "content-encoding" && !keepEncoding)) return null;
    return REQUEST.forward(name);
  });
  // Responses are metered on their way, and no client gets bytes that it cannot read.
  return secrets.cleanFields(forwarded).add("accept-encoding", "identity");
}

/** The others are for the client's own provider. */
const OF_EVERY_DIALECT = new Set(["user-agent", "traceparent", "tracestate"]);

/** The client's fields with a request that was converted. */
export function convertedFields(fields: Fields, secrets: KnownSecrets): Fields {
  const kept = fields.copy((name) => (OF_EVERY_DIALECT.has(name) ? name : null));
  const clean = secrets.cleanFields(kept);
  return clean.add("content-type", "application/json").add("accept-encoding", "identity");
}

/** A channel's own fields replace the client's fields of the same name. */
export function overrideFields(fields: Fields, own: readonly Field[]): Fields {
  if (own.length === 0) return fields;
  const lower = own.map(([name, value]): Field => [name.toLowerCase(), value]);
  return fields.without(new Set(lower.map(([name]) => name))).addAll(lower);
}

/** An upstream's fields as they go to the client. Fields of decoded codings have been removed by decode.ts. */
export function responseFields(fields: Fields): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name) => (hop.has(name) ? null : RESPONSE.forward(name)));
  return forwarded.add("x-content-type-options", "nosniff");
}

const NONE: ReadonlySet<string> = new Set();

/** The names in `connection`: those fields are for this hop only. A message may have thousands of them. */
function readConnection(fields: Fields): ReadonlySet<string> {
  const values = fields.getAll("connection");
  if (values.every((value) => value === "keep-alive")) return NONE;
  return new Set(values.flatMap((value) => value.split(",")).map((token) => token.trim().toLowerCase()));
}
