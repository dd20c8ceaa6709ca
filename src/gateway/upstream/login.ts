// What must be removed from everything that an upstream says, and from what a request says of itself, if the channel
// passes on the client's own login: that login.

import type { Payer } from "../../billing/ledger/line.ts";
import type { Group } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Field, Fields } from "../../lib/http/fields.ts";
import type { UpstreamResponse } from "../../lib/http/upstream.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientCall } from "../intake/call.ts";
import { omit } from "../intake/client.ts";
import type { SecretHolder } from "../intake/known-secrets.ts";
import { holdsSecret, redactFields } from "./redact.ts";

const NO_CHANNEL: SecretHolder = { credential: "", headers: [] };
const MAX_LOGINS = 4;
/** To find a login takes tables that take ten milliseconds to build. They are in memory for this long after a request. */
const FORGET_MS = 60_000;

const recent = new BoundedMap<string, SecretHolder>(MAX_LOGINS);
let forgetting: Timer | undefined;

/** A request that may have brought a login beside its key. */
interface Bringing {
  readonly login: readonly Field[] | null;
  readonly group: Group;
}

/** What is secret in a response of this channel to this request. */
export function secretHolderOf(channel: SecretHolder, { login }: Pick<Bringing, "login">): SecretHolder {
  if (login === null) return channel;
  const { credential } = channel;
  const headers = [...channel.headers, ...login.map(([, value]): Field => ["login-token", value])];
  const name = JSON.stringify([credential, headers]);
  const holder = recent.get(name) ?? { credential, headers };
  recent.set(name, holder);
  clearTimeout(forgetting);
  forgetting = setTimeout(() => recent.clear(), FORGET_MS);
  forgetting.unref();
  return holder;
}

/**
 * Who pays for an answer to a login, as its headers say. Claude Code reads the same headers for its own "usage credits"
 * (2.1.197). What ChatGPT's backend says when credits pay is not documented: a window that is used up, and credits.
 */
export function readPayer(response: Pick<UpstreamResponse, "status" | "field">): Payer {
  const unified = (name: string): string => response.field(`anthropic-ratelimit-unified-${name}`) ?? "";
  const isOver = unified("status") === "rejected" && unified("overage-status").startsWith("allowed");
  const codex = (name: string): string => response.field(`x-codex-${name}`) ?? "";
  const isUsedUp = ["primary", "secondary"].some((name) => Number(codex(`${name}-used-percent`)) >= 100);
  const hasCredits = codex("credits-has-credits").toLowerCase() === "true";
  const isBilled = isOver || unified("overage-in-use") === "true" || (isUsedUp && hasCredits);
  return response.status < 400 && isBilled ? "plan_overage" : "plan";
}

/** Whether a text has a piece of the request's login. */
export function findLogin(r: Bringing): (text: string | null) => boolean {
  const [channel = NO_CHANNEL] = r.group.channels;
  const secrets = secretHolderOf(channel, r);
  return (text) => text !== null && holdsSecret(text, secrets);
}

/** What goes upstream, and cannot be left out, may not hold it. */
export function refuseLogin(
  r: Bringing & ClientCall & { readonly body: { readonly model: string | null } },
): void {
  if ([r.body.model, r.target.path, r.query].some(findLogin(r)))
    throw new GatewayError("bad_request", "The request has its login where a model or a path should be.");
}

/** What the request brought, without the fields that hold its login, in their names too. */
export function fieldsBesideLogin(r: Bringing & Pick<ClientCall, "exchange">): Fields {
  return redactFields(r.exchange.fields, secretHolderOf(NO_CHANNEL, r), 400);
}

/** Nothing that a request says of itself may hold its login: it would be in the ledger and in the log. */
export function keepLoginOut(r: Bringing & ClientCall): void {
  r.client = omit(r.client, { field: (name) => r.exchange.field(name) }, findLogin(r));
}
