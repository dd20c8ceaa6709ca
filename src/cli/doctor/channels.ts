// `gateway doctor` on the channels: each is asked for its models, which costs nothing, and tells by its answer
// whether it can be reached, trusts and is trusted, takes the credential, and what time it is there.

import type { Catalog, Channel } from "../../config/catalog.ts";
import { matchesGlob } from "../../lib/glob.ts";
import { type Client, createClient } from "../../lib/http1/client/client.ts";
import { type FaultKind, UpstreamFault } from "../../lib/http1/types.ts";
import { dialectOf } from "../../dialects/index.ts";
import { askPage, type ListAnswer } from "../../gateway/channels/model-list.ts";
import { redactText } from "../../gateway/upstream/redact.ts";
import { bad, type Finding, good, note } from "./finding.ts";
import { describe } from "../config-access.ts";
import { formatCount } from "../text.ts";

export async function checkChannels({ channels, vendor }: Catalog): Promise<Finding[]> {
  const client = createClient();
  const visits = await Promise.all([...channels.values()].map((channel) => visit(channel, vendor, client)));
  client.close();
  const skews = visits.flatMap(({ skewMs }) => skewMs ?? []);
  return [...visits.map(({ finding }) => finding), checkClock(skews)];
}

interface Visit {
  readonly finding: Finding;
  /** How far this machine's clock is ahead of the upstream's; null when it did not say. */
  readonly skewMs: number | null;
}

async function visit(channel: Channel, vendor: string, client: Client): Promise<Visit> {
  const check = `channel ${channel.name}`;
  if (channel.disabled === true) return { finding: note(check, "disabled in the config"), skewMs: null };
  const [, unset] = /\$\{(\w+)/.exec(channel.credential) ?? [];
  if (unset !== undefined)
    return { finding: bad(check, `its credential, ${unset}, is not set`, `export ${unset}=…`), skewMs: null };
  const began = Date.now();
  try {
    const answer = await askPage(client, channel, vendor, "");
    const took = Date.now() - began;
    return { finding: judge(channel, answer, took), skewMs: readSkew(answer.date, began + took / 2) };
  } catch (error) {
    return { finding: explainFault(channel, error), skewMs: null };
  }
}

function judge(channel: Channel, answer: ListAnswer, took: number): Finding {
  const check = `channel ${channel.name}`;
  const { host } = channel.baseUrl;
  const { status } = answer;
  if (status === 200) return judgeList(channel, answer.body, took);
  if (status === 401 || status === 403) {
    const text = `${host} refuses the credential (${status})`;
    return bad(check, text, `put a valid one into channels.${channel.name}.credential`);
  }
  if (status === 404 || status === 405)
    return note(
      check,
      `${host} answers, but lists no models (${status}), so that the credential could not be tried`,
    );
  if (status === 429) return note(check, `${host} answers that there are too many requests (429)`);
  if (status >= 300 && status < 400)
    return bad(check, `${host} sends elsewhere (${status})`, `correct channels.${channel.name}.base_url`);
  return bad(check, `${host} answers ${status}`, "try again later; its provider may have trouble");
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
    const proxy = channel.proxy === null ? "" : ` by way of ${channel.proxy.host}`;
    return good(
      check,
      `${host} answers in ${took} ms${proxy}, takes the credential, lists ${formatCount(allowed.length, "model")}`,
    );
  } catch {
    return bad(
      check,
      `${host} answers, but not with a list of models`,
      `correct channels.${channel.name}.base_url or its platform`,
    );
  }
}

const REMEDIES: Partial<Record<FaultKind, string>> = {
  tls: "if its certificate is a company's, name the authority's file in `ca`",
  malformed: "it speaks no HTTP/1.1: correct base_url",
  shortage: "end what else runs here, or raise the limit, and ask again",
};

function explainFault(channel: Channel, error: unknown): Finding {
  const kind = error instanceof UpstreamFault ? error.kind : null;
  const proxy = channel.proxy === null ? "" : ` (by way of ${channel.proxy.host})`;
  const mend =
    (kind !== null && REMEDIES[kind]) ||
    `check the network, channels.${channel.name}.base_url and the proxy: curl -I ${channel.baseUrl.origin}`;
  const text = redactText(describe(error), channel);
  return bad(`channel ${channel.name}`, `cannot be asked${proxy}: ${text}`, mend);
}

function readSkew(date: string | null, local: number): number | null {
  const remote = Date.parse(date ?? "");
  // The header has whole seconds: on average half a one has passed.
  return Number.isNaN(remote) ? null : local - (remote + 500);
}

const LARGEST_SKEW_MS = 60_000;

/** Days and months of the ledger, expiries and TLS hang on it. Several upstreams vote, lest one be wrong. */
function checkClock(skews: readonly number[]): Finding {
  const middle = [...skews].sort((a, b) => a - b)[Math.floor(skews.length / 2)];
  if (middle === undefined) return note("clock", "no upstream told the time to compare with");
  const seconds = Math.round(Math.abs(middle) / 1000);
  if (Math.abs(middle) < LARGEST_SKEW_MS) return good("clock", "as the upstreams have it");
  const way =
    process.platform === "darwin" ? "sudo sntp -sS time.apple.com" : "sudo timedatectl set-ntp true";
  return bad("clock", `${seconds} s ${middle > 0 ? "ahead of" : "behind"} the upstreams`, way);
}
