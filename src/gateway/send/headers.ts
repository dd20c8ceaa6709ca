// Forwards all header fields except those listed here and in docs/contract.md. Pure.

import type { Fields } from "../../lib/http/fields.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { KnownSecrets } from "../intake/secrets.ts";

type Forward = (name: string) => string | null;

/** Traffic repeats a few dozen names: each is decided once. */
const MAX_KNOWN_NAMES = 1024;

function allExcept(names: string, patterns: RegExp, rename: Forward = (name) => name): Forward {
  const excepted = new Set(names.split(/\s+/));
  const known = new BoundedMap<string, string | null>(MAX_KNOWN_NAMES);
  return (name) => {
    const before = known.get(name);
    if (before !== undefined) return before;
    const forwarded = excepted.has(name) || patterns.test(name) ? null : rename(name);
    if (name.length <= 64) known.set(name, forwarded);
    return forwarded;
  };
}

/** Fields about one connection or its framing. The gateway writes its own. */
const HOP_BY_HOP = `connection content-length expect http2-settings keep-alive proxy-authenticate
  proxy-authentication-info proxy-authorization proxy-connection te trailer transfer-encoding upgrade`;

/** Leaves out the client's own account at the upstream and fields of browsers, too. The pattern:
 *  keys, accounts, browsers, and the gateway's own fields. */
const forwardRequest = allExcept(
  `${HOP_BY_HOP} host accept-encoding chatgpt-account-id x-goog-user-project cookie origin referer`,
  /authorization|api-?key$|^(?:x-)?(?:openai|anthropic)-(?:organi[sz]ation|project|workspace)(?:-id)?$|^sec-|^x-gateway-/,
);

/** Leaves out the channel's account and instructions to browsers, too. */
const forwardResponse = allExcept(
  `${HOP_BY_HOP} alt-svc set-cookie set-cookie2 strict-transport-security
  anthropic-organization-id openai-organization openai-project
  clear-site-data nel refresh report-to reporting-endpoints service-worker-allowed x-frame-options x-content-type-options`,
  /^(?:access-control-|content-security-policy|cross-origin-|x-gateway-)/,
  // The client's x-request-id is the gateway's own.
  (name) => (name === "x-request-id" ? "x-upstream-request-id" : name),
);

/** A client's fields as they go upstream. The caller adds the credential and the channel's own
 *  fields. `keepEncoding`: the body is sent unchanged, with its content-encoding. */
export function requestFields(fields: Fields, keepEncoding: boolean, secrets: KnownSecrets): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name) => {
    if (hop.has(name) || (name === "content-encoding" && !keepEncoding)) return null;
    return forwardRequest(name);
  });
  // Responses are metered, and no client gets bytes that it cannot read.
  return secrets.cleanFields(forwarded).add("accept-encoding", "identity");
}

/** Other fields are for the client's own provider. */
const OF_EVERY_DIALECT = new Set(["user-agent", "traceparent", "tracestate"]);

export function convertedFields(fields: Fields, secrets: KnownSecrets): Fields {
  const kept = fields.copy((name) => (OF_EVERY_DIALECT.has(name) ? name : null));
  const clean = secrets.cleanFields(kept);
  return clean.add("content-type", "application/json").add("accept-encoding", "identity");
}

/** An upstream's fields for the client, without those of decoded codings. */
export function responseFields(fields: Fields): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name) => (hop.has(name) ? null : forwardResponse(name)));
  return forwarded.add("x-content-type-options", "nosniff");
}

const NONE: ReadonlySet<string> = new Set();

/** The names in `connection`, for this hop only. There may be thousands. */
function readConnection(fields: Fields): ReadonlySet<string> {
  const values = fields.getAll("connection");
  if (values.every((value) => value === "keep-alive")) return NONE;
  return new Set(values.flatMap((value) => value.split(",")).map((token) => token.trim().toLowerCase()));
}
