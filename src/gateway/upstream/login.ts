// What must be removed from everything that an upstream says, and from what a request says of itself, if the channel
// passes on the client's own login: that login.

import type { Payer } from "../../billing/ledger/line.ts";
import type { Channel } from "../../config/catalog.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange, UpstreamResponse } from "../../lib/http1/types.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import type { ClientCall } from "../intake/call.ts";
import { readLogin } from "../intake/login.ts";
import type { SecretHolder } from "../intake/known-secrets.ts";
import { holdsSecret } from "./redact.ts";

const MAX_LOGINS = 4;
/** To find a login takes tables that take ten milliseconds to build. They are in memory for this long after a request. */
const FORGET_MS = 60_000;

const recent = new BoundedMap<string, SecretHolder>(MAX_LOGINS);
let forgetting: Timer | undefined;

/** What is secret in a response of this channel to this request. */
export function secretHolderOf(channel: Channel, exchange: Pick<Exchange, "fields">): SecretHolder {
  if (!channel.usesLogin) return channel;
  const values = readLogin(exchange).map(([, value]) => value);
  const name = JSON.stringify([channel.headers, values]);
  const known = recent.get(name);
  const holder = known ?? {
    credential: "",
    headers: [...channel.headers, ...values.map((value) => ["login-token", value] as const)],
  };
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

/** Nothing that a request says of itself may hold its login: it would be in the ledger and in the log. */
export function keepLoginOut(r: ClientCall & { readonly model: string | null }, channel: Channel): void {
  const secrets = secretHolderOf(channel, r.exchange);
  const isClean = (text: string | boolean | undefined | null): boolean =>
    typeof text !== "string" || !holdsSecret(text, secrets);
  if (!isClean(r.model) || !isClean(r.target.path) || !isClean(r.query))
    throw new GatewayError("bad_request", "The request has its login where a model or a path should be.");
  r.client = Object.fromEntries(Object.entries(r.client).filter(([, text]) => isClean(text)));
}
