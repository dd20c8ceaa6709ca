// Which header fields are forwarded. docs/contract.md lists those that are not.

import { KEY_FIELD } from "../../config/key-fields.ts";
import type { Field, Fields } from "../../lib/http/fields.ts";
import { remember } from "../../lib/memory/bounded-map.ts";
import type { KnownSecrets, Secrets } from "../intake/secrets.ts";

type Forward = (name: string) => string | null;

function allExcept(names: string, patterns: RegExp, rename: Forward = (name) => name): Forward {
  const excepted = new Set(names.split(/\s+/));
  return remember(1000, (name) => (excepted.has(name) || patterns.test(name) ? null : rename(name)));
}

/** Fields of one connection. The gateway writes its own. */
const HOP_BY_HOP = `connection content-length expect http2-settings keep-alive proxy-authenticate
  proxy-authentication-info proxy-authorization proxy-connection te trailer transfer-encoding upgrade`;

/** Also leaves out keys, accounts, browsers' fields and the gateway's own. */
const forwardRequest = allExcept(
  `${HOP_BY_HOP} host accept-encoding chatgpt-account-id x-goog-user-project cookie origin referer`,
  /^(?:x-)?(?:openai|anthropic)-(?:organi[sz]ation|project|workspace)(?:-id)?$|^sec-|^x-gateway-/,
  (name) => (KEY_FIELD.test(name) ? null : name),
);

/** Leaves out the channel's account and instructions to browsers, too. */
const forwardResponse = allExcept(
  `${HOP_BY_HOP} alt-svc set-cookie set-cookie2 strict-transport-security
  clear-site-data nel refresh report-to reporting-endpoints service-worker-allowed
  x-frame-options x-content-type-options`,
  /^(?:access-control-|content-security-policy|cross-origin-|(?:x-)?(?:openai|anthropic)-(?:organi[sz]ation|project|workspace))/,
  // The gateway sends the client another x-request-id.
  (name) => (name === "x-request-id" ? "x-upstream-request-id" : name),
);

/** A client's fields for the upstream. The caller adds the channel's own.
 *  `keepEncoding`: the body is sent unchanged, with its content-encoding. */
export function requestFields(fields: Fields, keepEncoding: boolean, secrets: KnownSecrets): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name, value) => {
    if (hop.has(name) || (name === "content-encoding" && !keepEncoding)) return null;
    const forwarded = forwardRequest(name);
    return forwarded === null || secrets.holds(name) || secrets.holds(value) ? null : forwarded;
  });
  // No upstream may compress: responses are metered,
  // and some clients cannot decompress.
  return forwarded.push(PLAIN);
}

const PLAIN: Field = ["accept-encoding", "identity"];
const NOT_SNIFFED: Field = ["x-content-type-options", "nosniff"];

/** Other fields are for the client's own provider. */
const OF_EVERY_DIALECT = new Set(["user-agent", "traceparent", "tracestate"]);

export function convertedFields(fields: Fields, secrets: KnownSecrets): Fields {
  const kept = fields.copy((name, value) =>
    OF_EVERY_DIALECT.has(name) && !secrets.holds(value) ? name : null,
  );
  return kept.push(["content-type", "application/json"]).push(PLAIN);
}

export function responseFields(fields: Fields, secrets: Secrets): Fields {
  const hop = readConnection(fields);
  const forwarded = fields.copy((name, value) =>
    hop.has(name) || secrets.hasWhole(name) || secrets.hasWhole(value) ? null : forwardResponse(name),
  );
  return forwarded.push(NOT_SNIFFED);
}

const NONE: ReadonlySet<string> = new Set();

function readConnection(fields: Fields): ReadonlySet<string> {
  const values = fields.getAll("connection");
  if (values.length === 0 || (values.length === 1 && values[0] === "keep-alive")) return NONE;
  const tokens = values.flatMap((value) => value.split(","));
  return new Set(tokens.map((token) => token.trim().toLowerCase()));
}
