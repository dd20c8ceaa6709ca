// Where the value of a channel's credential is, for messages and for the command that replaces it.

import { placeEnvFile, readEnvFile } from "../../config/file/env-file.ts";
import { readConfigText } from "../../config/file/load.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { valueAt } from "../../config/yaml/problems.ts";
import { getText } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";
import type { Channel } from "../../config/catalog.ts";
import { dialectOf } from "../../dialects/index.ts";
import { fetchListPage } from "../../gateway/channels/model-list.ts";
import { channelSecrets } from "../../gateway/intake/secrets.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { createClient } from "../../lib/http/client.ts";
import { UpstreamFault } from "../../lib/http/upstream.ts";
import { formatCount } from "../terminal/text.ts";

const REFERENCE = /^\$\{(\w+)(?::-.*)?\}$/s;

/** Null if the config has the secret itself. */
export function findVariable(configPath: string, channel: string): string | null {
  const { tree } = parseSource(readConfigText(configPath));
  return REFERENCE.exec(getText(valueAt(tree, ["channels", channel, "credential"])))?.[1] ?? null;
}

/** A variable for the credential of a channel or provider of this name. */
export function nameVariable(name: string): string {
  const word = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  return `${word.replace(/^(\d)/, "_$1")}_API_KEY`;
}

/** The one for a secret that goes into gateway.env. What a shell exports comes before that file, and nobody exports this name. */
export function nameOwnVariable(channel: string): string {
  return `GATEWAY_${nameVariable(channel)}`;
}

/** "ANTHROPIC_API_KEY in /home/…/gateway.env". */
export function describePlace(configPath: string, channel: string): string {
  const variable = findVariable(configPath, channel);
  if (variable === null) return `channels.${channel}.credential in ${configPath}`;
  // A secret may have been written where its name belongs.
  const shown = looksSecret(variable) ? "its variable" : variable;
  if ((process.env[variable] ?? "") !== "") return `the environment variable ${shown}`;
  return readEnvFile(configPath)[variable] === undefined
    ? `${shown}, which is not set`
    : `${shown} in ${placeEnvFile(configPath)}`;
}

/** The command that replaces it, wherever it is. */
export function adviseCredential(channel: string): string {
  return `gateway channels set ${channel} --credential -`;
}

export type CheckResult =
  /** `models`: how many the upstream lists. */
  | { readonly kind: "accepted"; readonly models: number }
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
    return status === 200 ? judgeList(channel, body) : judgeStatus(status, body);
  } catch (error) {
    const reason = channelSecrets(channel).remove(getErrorMessage(error));
    const isTls = error instanceof UpstreamFault && error.kind === "tls";
    // A server of models on this machine is free.
    const advice = channel.free ? `${reason}. Is it running?` : reason;
    return { kind: "unknown", reason: advice, status: null, isTls };
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
  return status === 401 || status === 403 || (status === 400 && body.includes("API_KEY_INVALID"))
    ? { kind: "refused", status }
    : { kind: "unknown", reason: `it answers ${status} when it is asked for its models`, status };
}

/** The rest of a sentence that begins with the provider's name. */
export function describeCheck(result: CheckResult): string {
  if (result.kind === "refused") return `refuses the credential (${result.status})`;
  if (result.kind === "unknown") return `could not be checked: ${result.reason}`;
  return `accepts the credential and lists ${formatCount(result.models, "model")}`;
}
