// Finds the Key of a call in `x-gateway-key`, or else in other headers.

import { adviseRotation, type Catalog, type Key } from "../../config/catalog.ts";
import { KEY_FIELD, KEY_SOURCES, type KeySource, nameField, OWN_KEY_FIELD } from "../../config/key-fields.ts";
import type { Endpoint, Target } from "../../dialects/dialect.ts";
import { describeOther, isForwarded, type OtherPath } from "../../dialects/other-paths.ts";
import { readKeyParameter, queryOf } from "../../dialects/path.ts";
import { GatewayError } from "../../lib/errors.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { remember } from "../../lib/memory/bounded-map.ts";
import type { UnroutedCall } from "./call.ts";
import { isCrossSite } from "./cors.ts";
import { explainPlan, requireLogin } from "./login.ts";
import { requireAccess } from "./match.ts";
import { bareSecret, type ToolRun, type Runs } from "./runs.ts";
import { bareValue, secretsOf } from "./secrets.ts";

interface AdmittedCall extends UnroutedCall {
  readonly target: Target;
  foundKey: Key | null;
  run: ToolRun | null;
}

export function admit(
  r: AdmittedCall,
  { catalog, runs }: { readonly catalog: Catalog; readonly runs: Runs },
  now: number = r.time,
): Key {
  const { endpoint } = r.target;
  const found = findKey(r.exchange, endpoint.keySources, catalog, now);
  if (found === null) throw refuseMissingKey(endpoint, catalog);
  const { key, sent } = found;
  r.foundKey = key;
  r.run = runs.open(sent);
  requireAccess(key, endpoint, catalog, now);
  if (key.group.usesLogin) requireLogin(r, key.group.platform, catalog);
  return key;
}

export function findOther(
  exchange: Exchange,
  { other, query }: { readonly other: OtherPath | null; readonly query: string },
  { catalog, now }: { readonly catalog: Catalog; readonly now: () => number },
): { readonly target: Target; readonly query: string } | null {
  if (other === null || ![...catalog.groups.values()].some(({ otherPaths }) => otherPaths !== null))
    return null;
  const key = findKeyOrNull(exchange, catalog, now());
  const names = key?.group.otherPaths ?? null;
  const target =
    key === null || names === null || !isForwarded(other, names)
      ? null
      : describeOther(other, key.group.platform);
  return target && { target, query };
}

function findKeyOrNull(exchange: Exchange, catalog: Catalog, now: number): Key | null {
  try {
    return findKey(exchange, KEY_SOURCES, catalog, now)?.key ?? null;
  } catch (error) {
    if (error instanceof GatewayError) return null;
    throw error;
  }
}

function refuseMissingKey({ keySources }: Endpoint, { vendor }: Catalog): GatewayError {
  const names: Partial<Record<string, string>> = {
    authorization: "Authorization: Bearer sk-…",
    query: "?key=sk-…",
  };
  const places = keySources.map((source) => names[source] ?? `${nameField(source, vendor)}: sk-…`);
  const sent = places.map((place) => `\`${place}\``).join(" or ");
  return new GatewayError("key_missing", `The request has no key. Send it as ${sent}.`);
}

interface FoundKey {
  readonly key: Key;
  /** The secret, followed by the run's name if it was sent. */
  readonly sent: string;
}

export function findKey(
  exchange: Exchange,
  sources: readonly KeySource[],
  catalog: Catalog,
  now: number,
): FoundKey | null {
  const own = exchange.field(OWN_KEY_FIELD);
  if (own !== undefined) return requireUsable(own, catalog, now) ?? refuseOwn();
  let found = 0;
  for (const source of sources) {
    const secret = readSecret(exchange, source, catalog.vendor);
    if (secret === null) continue;
    if (source === "query" && isCrossSite(exchange, catalog)) throw refuseQueryKey();
    const usable = requireUsable(secret, catalog, now);
    if (usable !== null) return usable;
    found += 1;
  }
  if (found === 0) return null;
  const text = explainPlan(exchange) ?? `This gateway does not know this key. ${KEYS_HELP}`;
  throw new GatewayError("key_unknown", text);
}

const KEYS_HELP = "`gateway keys list` shows the keys that it knows, `gateway keys add` makes a new one.";

function refuseOwn(): never {
  const text = `This gateway does not know the key in ${OWN_KEY_FIELD}. With this header, no other key is read. ${KEYS_HELP}`;
  throw new GatewayError("key_unknown", text);
}

/** Web pages can make a browser send a key in the URL. */
function refuseQueryKey(): GatewayError {
  const text =
    "A web page of another origin may not send the key in the URL. Send it in a header, or add the origin to cors_origins.";
  return new GatewayError("origin_refused", text);
}

const digestOf = remember(64, sha256Hex);

function requireUsable(sent: string, catalog: Catalog, now: number): FoundKey | null {
  const secret = bareSecret(sent);
  const digest = digestOf(secret);
  const key = catalog.keysBySha256.get(digest);
  if (key === undefined) return null;
  secretsOf(catalog).note(secret);
  if (key.disabled) {
    throw new GatewayError(
      "key_disabled",
      `The key "${key.name}" is disabled. \`gateway keys enable ${key.name}\` enables it.`,
    );
  }
  if (key.expires !== null && now >= key.expires.getTime()) {
    const when = key.expires.toISOString();
    throw new GatewayError(
      "key_expired",
      `The key "${key.name}" expired at ${when}. \`${adviseRotation(key)}\` makes a new secret.`,
    );
  }
  const until = key.secretSha256 === digest ? null : (key.previous?.until ?? null);
  if (until !== null && now >= until.getTime()) {
    throw new GatewayError(
      "key_expired",
      `The key "${key.name}" has a new secret, and the previous one worked until ${until.toISOString()}. Send the new one.`,
    );
  }
  return { key, sent };
}

function readSecret(exchange: Exchange, source: KeySource, vendor: string): string | null {
  if (source === "query") return readKeyParameter(queryOf(exchange.target)) || null;
  const value = exchange.field(nameField(source, vendor)) ?? "";
  if (source !== "authorization") return value || null;
  if (value.slice(0, 7).toLowerCase() !== "bearer ") return null;
  return value.slice(7).trim() || null;
}

const SECRET_FIELD = new RegExp(`${KEY_FIELD.source}|^${OWN_KEY_FIELD}$|cookie|account-id$`);
const isSecretField = remember(1000, (name) => SECRET_FIELD.test(name));

export function listOwnSecrets({ fields, target }: Pick<Exchange, "fields" | "target">): string[] {
  const parameter = readKeyParameter(queryOf(target));
  const sent = parameter === null ? [] : [bareSecret(parameter)];
  for (const field of fields) if (isSecretField(field[0])) sent.push(bareSecret(bareValue(field[1])));
  return sent;
}
