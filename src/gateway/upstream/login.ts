// What a request may not say of itself if it brought a login of its own: that login.

import type { Payer } from "../../billing/ledger/line.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Fields } from "../../lib/http/fields.ts";
import type { UpstreamResponse } from "../../lib/http/upstream.ts";
import type { ClientCall } from "../intake/call.ts";
import { omit } from "../intake/client.ts";
import type { Secrets } from "../intake/secrets.ts";

/** A request that may have brought a login next to its key. */
interface Bringing extends ClientCall {
  readonly secrets: Secrets;
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

/** What goes upstream, and cannot be left out, may not hold it. */
export function refuseLogin(r: Bringing & { readonly body: { readonly model: string | null } }): void {
  if ([r.body.model ?? "", r.target.path, r.query].some((text) => r.secrets.holds(text)))
    throw new GatewayError("bad_request", "The request has its login where a model or a path should be.");
}

/** What the request brought, without the fields that hold its login, in their names too. */
export function fieldsBesideLogin({ exchange, secrets }: Pick<Bringing, "exchange" | "secrets">): Fields {
  return secrets.cleanFields(exchange.fields);
}

/** Nothing that a request says of itself may hold its login: it would be in the ledger and in the log. */
export function keepLoginOut(r: Bringing): void {
  r.client = omit(r.client, { field: (name) => r.exchange.field(name) }, (text) => r.secrets.holds(text));
}
