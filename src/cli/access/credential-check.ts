// Checks a channel's credential free of charge: asks the upstream for its models.

import type { Channel } from "../../config/catalog.ts";
import { NO_CREDENTIAL } from "../../config/schema.ts";
import { readModelList } from "../../dialects/listing.ts";
import { fetchListPage } from "../../gateway/channels/model-list.ts";
import { channelSecrets } from "../../gateway/intake/secrets.ts";
import { messageOf } from "../../lib/errors.ts";
import { createClient } from "../../lib/http/client.ts";
import { UpstreamFault } from "../../lib/http/upstream.ts";
import { formatCount } from "../terminal/text.ts";

export type CheckResult = { readonly isOpen?: boolean } & (
  | { readonly kind: "accepted"; readonly models: number }
  | { readonly kind: "refused"; readonly status: number }
  | {
      readonly kind: "unknown";
      readonly reason: string;
      readonly status: number | null;
      readonly isTls?: boolean;
    }
);

export async function checkCredential(channel: Channel): Promise<CheckResult> {
  if (channel.usesLogin) {
    const reason = "the tool's first request will show whether its login works";
    return { kind: "unknown", reason, status: null };
  }
  const client = createClient();
  try {
    const { status, body } = await fetchListPage({ client, channel });
    const result = status === 200 ? judgeList(body) : judgeStatus(status, body);
    return { isOpen: channel.credential === NO_CREDENTIAL, ...result };
  } catch (error) {
    const reason = channelSecrets(channel).maskText(messageOf(error));
    const isTls = error instanceof UpstreamFault && error.kind === "tls";
    const advice = channel.free ? `${reason}. Is it running?` : reason;
    return { kind: "unknown", reason: advice, status: null, isTls };
  } finally {
    client.close();
  }
}

function judgeList(body: string): CheckResult {
  try {
    return { kind: "accepted", models: readModelList(body).models.length };
  } catch {
    const reason = "it answers, but not with a list of models: check the address";
    return { kind: "unknown", reason, status: 200 };
  }
}

function judgeStatus(status: number, body: string): CheckResult {
  // Google reports a wrong credential as a bad request.
  if (status === 401 || status === 403 || (status === 400 && body.includes("API_KEY_INVALID")))
    return { kind: "refused", status };
  return {
    kind: "unknown",
    reason: `it answers ${status} when asked for its models`,
    status,
  };
}

export function describeCheck(result: CheckResult): string {
  if (result.kind === "unknown") return `could not be checked: ${result.reason}`;
  const { isOpen = false } = result;
  if (result.kind === "refused") return `${isOpen ? "wants a" : "refuses the"} credential (${result.status})`;
  const answer = isOpen ? "answers without a credential" : "accepts the credential";
  return `${answer} and lists ${formatCount(result.models, "model")}`;
}
