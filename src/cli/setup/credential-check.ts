// Checks a channel's credential against its upstream, free of charge: it asks for the models, and where there is no
// such list, sends a request without content, which the upstream refuses before any model works on it.

import type { Channel } from "../../config/catalog.ts";
import { dialectOf } from "../../dialects/index.ts";
import { CHANNEL_ROWS } from "../../dialects/platforms.ts";
import { fetchListPage } from "../../gateway/channels/model-list.ts";
import { channelSecrets } from "../../gateway/intake/secrets.ts";
import { fetchWhole } from "../../gateway/upstream/fetch.ts";
import { addressOf, joinPath, overrideFields } from "../../gateway/upstream/address.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { createClient } from "../../lib/http/client.ts";
import { type Upstream, UpstreamFault } from "../../lib/http/upstream.ts";
import { Fields } from "../../lib/http/fields.ts";
import { formatCount } from "../terminal/text.ts";

export type CheckResult =
  /** `models`: how many the upstream lists; null when it has no list. */
  | { readonly kind: "accepted"; readonly models: number | null }
  | { readonly kind: "refused"; readonly status: number }
  /** `status`: of its answer; null: it could not be reached. */
  | {
      readonly kind: "unknown";
      readonly reason: string;
      readonly status: number | null;
      readonly isTls?: boolean;
    };

export async function checkCredential(channel: Channel): Promise<CheckResult> {
  if (channel.usesLogin) {
    const reason = "the login is the tool's own; its first request shows whether it is valid";
    return { kind: "unknown", reason, status: null };
  }
  const client = createClient();
  try {
    const { status, body } = await fetchListPage(client, channel, "");
    if (status === 200) return judgeList(channel, body);
    if (status === 404 || status === 405) return judgeStatus(await sendEmpty(client, channel), "");
    return judgeStatus(status, body);
  } catch (error) {
    const reason = channelSecrets(channel).remove(getErrorMessage(error));
    const isTls = error instanceof UpstreamFault && error.kind === "tls";
    // A server of models on this machine.
    return {
      kind: "unknown",
      reason: channel.free ? `${reason}. Is it running?` : reason,
      status: null,
      isTls,
    };
  } finally {
    client.close();
  }
}

function judgeList(channel: Channel, body: string): CheckResult {
  try {
    return { kind: "accepted", models: dialectOf(channel.platform).readList(body).models.length };
  } catch {
    const reason = "it answers, but not with a list of models: check the address";
    return { kind: "unknown", reason, status: 200 };
  }
}

function judgeStatus(status: number, body: string): CheckResult {
  // Google reports a wrong credential as a bad request.
  if (status === 401 || status === 403 || (status === 400 && body.includes("API_KEY_INVALID")))
    return { kind: "refused", status };
  if (status === 400 || status === 422) return { kind: "accepted", models: null };
  return { kind: "unknown", reason: `it answers ${status}`, status };
}

const CHECK_WAIT_MS = 10_000;

async function sendEmpty(client: Upstream, channel: Channel): Promise<number> {
  const { origin, deadlines } = addressOf(channel);
  const [path = ""] = CHANNEL_ROWS[channel.platform].answerPaths;
  // A path with a model in it would need a model to check.
  if (path.includes("{model}")) return 404;
  const dialect = dialectOf(channel.platform);
  const fields = Fields.of([
    ["content-type", "application/json"],
    ["accept-encoding", "identity"],
    ...dialect.ownRequestFields,
    dialect.sign(channel.credential),
  ]);
  const request = {
    origin,
    method: "POST",
    target: joinPath(channel, path),
    fields: overrideFields(fields, channel),
    body: new TextEncoder().encode("{}"),
    deadlines: { ...deadlines, firstByteMs: CHECK_WAIT_MS, idleMs: CHECK_WAIT_MS },
  };
  const { response } = await fetchWhole(client, request, 0);
  return response.status;
}

/** The rest of a sentence that begins with the provider's name. */
export function describeCheck(result: CheckResult): string {
  if (result.kind === "refused") return `refuses the credential (${result.status})`;
  if (result.kind === "unknown") return `could not be checked: ${result.reason}`;
  const listed = result.models === null ? "" : ` and lists ${formatCount(result.models, "model")}`;
  return `accepts the credential${listed}`;
}
