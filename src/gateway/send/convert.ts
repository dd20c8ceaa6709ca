// Converts between a client's dialect and a channel's, with bridges/.

import type { Channel, Group } from "../../config/catalog.ts";
import type { ChannelPlatform, Platform } from "../../config/schema.ts";
import { convertCall, isShared } from "../../bridges/convert.ts";
import { quirksOf } from "../../bridges/chat/quirks.ts";
import { GatewayError } from "../../lib/errors.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { isLongWork, runAtOnce, runInTurns, type Steps } from "../../lib/time/next-turn.ts";
import { type Endpoint, hasBridge, LISTS, type Target } from "../../dialects/dialect.ts";
import { CHANNEL_ROWS, PLATFORM_ROWS } from "../../dialects/platforms.ts";
import type { Candidate } from "../intake/match.ts";
import { listSecrets } from "../intake/secrets.ts";
import type { ConvertedRequest, Request } from "../request.ts";

export function needsConversion(client: ChannelPlatform, platform: Platform): boolean {
  return !PLATFORM_ROWS[platform].spoken.includes(client);
}

const ANSWER_PATHS = new Set(Object.values(CHANNEL_ROWS).flatMap(({ answerPaths }) => answerPaths));

function serves({ platform }: Channel, { dialect, alsoOn }: Endpoint): boolean {
  return alsoOn === platform || CHANNEL_ROWS[platform].spoken.includes(dialect.name);
}

export function keepServing<T extends { readonly channel: Channel }>(
  candidates: readonly T[],
  endpoint: Endpoint,
): readonly T[] {
  return candidates.filter(({ channel }) => serves(channel, endpoint));
}

export function requireServed({ name, convert, channels }: Group, endpoint: Endpoint): void {
  if (convert || LISTS.has(endpoint.purpose) || channels.some((channel) => serves(channel, endpoint))) return;
  throw explainUnserved(name, endpoint);
}

/** Codex does not repeat a request that gets the code `wrong_platform`. */
function explainUnserved(group: string, { label }: Endpoint): GatewayError {
  const text = `The group "${group}" serves this with channels that speak Chat Completions, and they have no ${label}. Use POST /v1/chat/completions, or set \`convert: true\` on the group: then requests are converted for them.`;
  return new GatewayError("wrong_platform", text);
}

export function planConversions(
  { name, convert }: Group,
  { endpoint, path, model }: Target,
  candidates: readonly Candidate[],
): readonly Candidate[] {
  const own = keepServing(candidates, endpoint);
  const isAnswered = endpoint.purpose === "generate" && (model !== null || ANSWER_PATHS.has(path));
  if (!isAnswered && own.length > 0) return own;
  if (convert && !isAnswered && endpoint.purpose !== "count") {
    const text = `No channel for this request serves ${endpoint.label}, and only calls in which a model answers are converted.`;
    throw new GatewayError("unknown_path", text);
  }
  const others = candidates
    .filter((candidate) => !own.includes(candidate) && (convert || needsNoSetting(endpoint, candidate)))
    .map((candidate) => ({ ...candidate, isConverted: true as const }));
  if (own.length + others.length === 0) throw explainUnserved(name, endpoint);
  return [...own, ...others];
}

/** Chat Completions are converted for responses channels in any case. */
function needsNoSetting({ dialect }: Endpoint, { channel }: Candidate): boolean {
  return isShared(dialect.name, CHANNEL_ROWS[channel.platform].dialect.name);
}

export function convertFor(r: Request, candidate: Candidate): void {
  if (r.converted?.candidate !== candidate) r.converted = runAtOnce(convert(r, candidate));
}

export async function convertFirst(r: Request, candidate: Candidate): Promise<void> {
  const steps = convert(r, candidate);
  r.converted = isLongWork(r.body.plain?.length ?? 0) ? await runInTurns(steps) : runAtOnce(steps);
}

function* convert(call: Request, candidate: Candidate): Steps<ConvertedRequest | null> {
  const { channel } = candidate;
  const { credential, baseUrl } = channel;
  const { endpoint } = call.target;
  const client = endpoint.dialect.name;
  const { plain } = call.body;
  if (plain === null || serves(channel, endpoint)) return null;
  const { dialect } = CHANNEL_ROWS[channel.platform];
  const upstream = dialect.name;
  if (!hasBridge(client) || !hasBridge(upstream)) throw new Error("a dialect has no bridge");
  const field = (name: string) => call.exchange.field(name);
  const { body, path, conversion } = yield* convertCall({
    client,
    body: plain,
    model: call.body.model ?? call.target.model?.id ?? "",
    stream: call.body.stream,
    to: {
      dialect: upstream,
      model: candidate.model ?? "",
      session: nameForUpstream(call),
      quirks: quirksOf(channel),
    },
    stamp: call,
    // From an envelope's proof, a short credential could be guessed.
    secret: () => (listSecrets({ credential, headers: [] }).length > 0 ? credential : baseUrl.host),
    isCodex: /^codex/i.test(field("originator") ?? field("user-agent") ?? ""),
  });
  return {
    candidate,
    dialect,
    path,
    body,
    conversion,
    keepsFields: needsNoSetting(endpoint, candidate),
  };
}

/** A name for each agent of a session. It reveals nothing. */
function nameForUpstream({ key, client, exchange }: Request): string | null {
  const { session, agent = "", tool = "", label = "", inferred } = client;
  if (session === undefined) return null;
  // The gateway's session ids change with each run, but the session may go on.
  const isOurs = inferred === true || exchange.field("x-gateway-session") === session;
  const name = isOurs ? `${tool}\n${label}` : `${session}\n${agent}`;
  return sha256Hex(`${key.name}\n${name}`).slice(0, 32);
}
