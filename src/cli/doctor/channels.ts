// `gateway doctor` on the channels: fetches the model list of each, free of charge. The response shows whether the
// upstream can be reached, whether TLS works, whether the credential is valid, and what time it is there.

import { getErrorMessage } from "../../lib/errors.ts";
import type { Channel } from "../../config/catalog.ts";
import { isLoopback } from "../../config/proxy.ts";
import { matchesGlob } from "../../lib/text/glob.ts";
import { type FaultKind, UpstreamFault } from "../../lib/http/faults.ts";
import { type Upstream } from "../../lib/http/upstream.ts";
import { createClient } from "../../lib/http/client.ts";
import { dialectOf } from "../../dialects/index.ts";
import { fetchListPage, type ListPage } from "../../gateway/channels/model-list.ts";
import { channelSecrets } from "../../gateway/intake/secrets.ts";
import { adviseCredential, describePlace } from "../access/credential-place.ts";
import { hideSecret } from "./config.ts";
import { bad, type Check, type Finding, good, note } from "./finding.ts";
import { isRefusal } from "../setup/credential-check.ts";
import { formatCount } from "../terminal/text.ts";

export const checkChannels: Check = async ({ catalog: { channels }, path }) => {
  const client = createClient();
  const visits = await Promise.all(
    [...channels.values()].map((channel) => checkChannel(channel, client, path)),
  );
  client.close();
  const skews = visits.flatMap(({ skewMs }) => skewMs ?? []);
  return [...visits.map(({ finding }) => finding), checkClock(skews)];
};

interface ChannelCheck {
  readonly finding: Finding;
  /** How far this machine's clock is ahead of the upstream's. Null if the response had no date. */
  readonly skewMs: number | null;
}

async function checkChannel(channel: Channel, client: Upstream, configPath: string): Promise<ChannelCheck> {
  const known = judgeUnasked(channel);
  if (known !== null) return { finding: known, skewMs: null };
  const began = Date.now();
  try {
    const answer = await fetchListPage(client, channel, "");
    const took = Date.now() - began;
    return {
      finding: judgeAnswer(channel, answer, took, configPath),
      skewMs: readSkew(answer.date, began + took / 2),
    };
  } catch (error) {
    return { finding: explainFault(channel, error), skewMs: null };
  }
}

/** Null: its upstream has to be asked. */
function judgeUnasked({ name, lack, disabled, usesLogin, baseUrl, credential }: Channel): Finding | null {
  const check = `channel ${name}`;
  if (lack !== null) return bad(check, lack, "gateway credentials list");
  if (disabled) return note(check, "disabled in the config");
  // Nobody but the tool has a login to check it with.
  const passed = `passes on the client's own login to ${baseUrl.href}`;
  if (usesLogin)
    return isLoopback(baseUrl.hostname)
      ? note(check, `${passed}: the program that listens there gets it`)
      : good(check, passed);
  const [, unset] = /\$\{(\w+)/.exec(credential) ?? [];
  if (unset === undefined) return null;
  return bad(check, `the credential's variable ${hideSecret(unset)} is not set`, adviseCredential(name));
}

function judgeAnswer(channel: Channel, answer: ListPage, took: number, configPath: string): Finding {
  const check = `channel ${channel.name}`;
  const { host } = channel.baseUrl;
  const { status } = answer;
  if (status === 200) return judgeList(channel, answer.body, took);
  if (isRefusal(status, answer.body)) {
    const place = describePlace(configPath, channel.name);
    return bad(check, `${host} refuses the credential (${status}): ${place}`, adviseCredential(channel.name));
  }
  if (status === 404 || status === 405)
    return note(check, `${host} answers, but lists no models (${status}), so the credential is not checked`);
  if (status === 429) return note(check, `${host} reports too many requests (429)`);
  if (status >= 300 && status < 400)
    return bad(check, `${host} redirects (${status})`, `correct channels.${channel.name}.base_url`);
  return bad(check, `${host} answers ${status}`, "try again later; the provider may have a problem");
}

function judgeList(channel: Channel, body: string, took: number): Finding {
  const check = `channel ${channel.name}`;
  const { host } = channel.baseUrl;
  try {
    const { models } = dialectOf(channel.platform).readList(body);
    const allowed = models.filter(({ id }) => channel.models?.some((glob) => matchesGlob(glob, id)) ?? true);
    if (models.length > 0 && allowed.length === 0)
      return note(
        check,
        `${host} lists ${formatCount(models.length, "model")}, and \`models\` allows none of them`,
        `gateway models`,
      );
    const proxy = channel.proxy === null ? "" : ` through ${channel.proxy.host}`;
    return good(
      check,
      `${host} answers in ${took} ms${proxy}, accepts the credential, lists ${formatCount(allowed.length, "model")}`,
    );
  } catch {
    return bad(
      check,
      `${host} answers, but not with a model list`,
      `correct channels.${channel.name}.base_url or its platform`,
    );
  }
}

const REMEDIES: Partial<Record<FaultKind, string>> = {
  tls: "for a company's own certificate, name the file of its authority in `ca`",
  malformed: "the server does not speak HTTP/1.1: correct base_url",
  shortage: "stop other programs or raise the limit, then try again",
};

function explainFault(channel: Channel, error: unknown): Finding {
  const kind = error instanceof UpstreamFault ? error.kind : null;
  const proxy = channel.proxy === null ? "" : ` (through ${channel.proxy.host})`;
  const { hostname, origin } = channel.baseUrl;
  const check = isLoopback(hostname) ? "start the program that serves there, or check" : "check the network,";
  const fix =
    (kind !== null && REMEDIES[kind]) ||
    `${check} channels.${channel.name}.base_url and the proxy: curl -I ${origin}`;
  const text = channelSecrets(channel).remove(getErrorMessage(error));
  return bad(`channel ${channel.name}`, `cannot be reached${proxy}: ${text}`, fix);
}

function readSkew(date: string | null, local: number): number | null {
  const remote = Date.parse(date ?? "");
  // The header has whole seconds: on average, half a second has passed.
  return Number.isNaN(remote) ? null : local - (remote + 500);
}

const MAX_SKEW_MS = 60_000;

/** Days in the ledger, expiry dates and TLS depend on the clock. Uses the median, because one upstream may be wrong. */
function checkClock(skews: readonly number[]): Finding {
  const middle = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)];
  if (middle === undefined) return note("clock", "no upstream sent a date to compare with");
  const seconds = Math.round(Math.abs(middle) / 1000);
  if (Math.abs(middle) < MAX_SKEW_MS) return good("clock", "matches the upstreams");
  const way =
    process.platform === "darwin" ? "sudo sntp -sS time.apple.com" : "sudo timedatectl set-ntp true";
  return bad("clock", `${seconds} s ${middle > 0 ? "ahead of" : "behind"} the upstreams`, way);
}
