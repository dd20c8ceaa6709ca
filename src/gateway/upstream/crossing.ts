// The bridge between a client's dialect and a channel's dialect, if they differ. The conversions are in bridges/. Only
// this file knows which bridges exist.

import type { Usage } from "../../billing/usage.ts";
import type { ClientIdentity } from "../../billing/ledger/line.ts";
import type { Channel, Group, Key } from "../../config/catalog.ts";
import type { Platform } from "../../config/schema.ts";
import { convertCall, convertCount, type ConvertedCount } from "../../bridges/convert.ts";
import type { Destination } from "../../bridges/turn/conversation.ts";
import { collectReply, spreadReply } from "../../bridges/responses-to-chat/response/collect.ts";
import type { AnswerStream, RequestStamp } from "../../bridges/common/answer-stream.ts";
import { convertError } from "../../bridges/responses-to-chat/errors.ts";
import { convertReply } from "../../bridges/responses-to-chat/response/completion.ts";
import { convertRequest } from "../../bridges/responses-to-chat/request/request.ts";
import { openChatStream } from "../../bridges/responses-to-chat/response/stream.ts";
import { quirksOf } from "../../bridges/write-request/quirks.ts";
import { GatewayError } from "../../lib/errors.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import { replaceSpan } from "../../lib/json/json-spans.ts";
import { parseJson } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import type { Steps } from "../../lib/time/next-turn.ts";
import type { Dialect, DialectName, Endpoint, Target } from "../../dialects/dialect.ts";
import { CHANNEL_ROWS, PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { responses } from "../../dialects/formats/responses.ts";
import { type RequestBody, readNames } from "../intake/body.ts";
import { type Candidate, LISTS } from "../intake/match.ts";
import type { Sealing } from "../intake/sealing.ts";

type Count = () => Usage;

/** Converts the responses to one request. */
export interface Bridge {
  /** What was changed so that the upstream accepts the request. The client sees it in a header. */
  readonly adjusted: readonly string[];
  /** The dialects, in a group with channels of several. */
  readonly between?: { readonly client: DialectName; readonly upstream: DialectName };
  /** A long reply is read in one turn of the event loop and converted in another. `count`: what the meter has counted. */
  readReply(body: Uint8Array): unknown;
  convertReply(reply: unknown, count: Count): { status: number; body: string };
  convertError(status: number, body: Uint8Array): { status: number; body: string };
  openStream(count: Count): AnswerStream;
  /** Turns a whole response into an event of the upstream's stream. */
  spreadReply(body: Uint8Array): Uint8Array;
}

export interface Crossing {
  /** The channel's dialect, and the path of its endpoint. */
  readonly dialect: Dialect;
  readonly path: string;
  cross(stamp: RequestStamp, request: RequestBody, plain: Uint8Array): { body: RequestBody; bridge: Bridge };
}

const RESPONSES_TO_CHAT: Crossing = {
  dialect: responses,
  path: "/v1/responses",
  cross(stamp, request, plain) {
    const { body, context, adjusted } = convertRequest(plain, stamp);
    const bridge: Bridge = {
      adjusted,
      readReply: (reply) => parseJson(new TextDecoder().decode(reply)) ?? collectReply(reply),
      convertReply: (reply) => convertReply(reply, context),
      convertError: (status, error) => convertError(status, error, context),
      openStream: () => openChatStream(context),
      spreadReply,
    };
    return { body: { ...request, bytes: body, plain: body, encoded: false, ...readNames(body) }, bridge };
  },
};

type Crossings = Readonly<Partial<Record<DialectName, Partial<Record<DialectName, Crossing>>>>>;

/** The client's dialect → the channel's dialect → the bridge. */
const CROSSINGS: Crossings = { chat: { responses: RESPONSES_TO_CHAT } };

/** Null if the platform's channels understand the client's dialect. */
export function findCrossing(client: DialectName, platform: Platform): Crossing | null {
  const { spoken } = PLATFORM_ROWS[platform];
  if (spoken.includes(client)) return null;
  for (const channel of spoken) {
    const crossing = CROSSINGS[client]?.[channel];
    if (crossing !== undefined) return crossing;
  }
  throw new GatewayError(
    "unsupported",
    `This gateway cannot convert ${client} requests for channels of the ${platform} platform. Use an endpoint of that platform.`,
  );
}

// Groups with channels of several dialects: each channel gets the request in its own.

/** A request in the dialect of one channel. */
export interface Crossed {
  readonly candidate: Candidate;
  readonly dialect: Dialect;
  /** Path and query. */
  readonly path: string;
  readonly body: Uint8Array;
  readonly bridge: Bridge;
}

export interface CrossingCall extends RequestStamp {
  readonly exchange: Exchange;
  readonly target: Target;
  readonly body: RequestBody;
  readonly key: Key;
  readonly client: ClientIdentity;
}

const ANSWER_PATHS = new Set(Object.values(CHANNEL_ROWS).flatMap(({ answerPaths }) => answerPaths));

/** The channel serves the endpoint, and nothing has to be converted. */
function serves({ platform }: Channel, { dialect, alsoOn }: Endpoint): boolean {
  return alsoOn === platform || CHANNEL_ROWS[platform].spoken.includes(dialect.name);
}

/** The channels that serve the endpoint as it is. */
export function keepServing<T extends { readonly channel: Channel }>(
  candidates: readonly T[],
  endpoint: Endpoint,
): readonly T[] {
  return candidates.filter(({ channel }) => serves(channel, endpoint));
}

/** Refuses an endpoint that no channel of the group serves, and for which nothing is converted. */
export function requireServed({ name, convert, channels }: Group, endpoint: Endpoint): void {
  if (convert || LISTS.has(endpoint.purpose) || channels.some((channel) => serves(channel, endpoint))) return;
  throw explainUnserved(name, endpoint);
}

/** As for a key of the wrong platform: on this error Codex stops at once. */
function explainUnserved(group: string, { label }: Endpoint): GatewayError {
  const text = `The group "${group}" serves this with channels that speak Chat Completions, and they have no ${label}. Use POST /v1/chat/completions, or set \`convert: true\` on the group: then requests are converted for them.`;
  return new GatewayError("wrong_platform", text);
}

/** The candidates in a group with channels of several dialects: those that serve the request as it is come first. Only
 *  requests for an answer, and counts of tokens, are for the others. */
export function planCrossings(
  { name, convert }: Group,
  { endpoint, path, model }: Target,
  candidates: readonly Candidate[],
): readonly Candidate[] {
  const own = keepServing(candidates, endpoint);
  const isAnswered = endpoint.purpose === "generate" && (model !== null || ANSWER_PATHS.has(path));
  if (!isAnswered && own.length > 0) return own;
  if (convert && !isAnswered && endpoint.purpose !== "count") {
    const text = `No channel of this group has ${endpoint.label}: they speak another dialect, and only requests for an answer are converted.`;
    throw new GatewayError("unknown_path", text);
  }
  const others = candidates
    .filter(
      (candidate) => !own.includes(candidate) && (convert || findKnown(endpoint, candidate) !== undefined),
    )
    .map((candidate) => ({ ...candidate, isConverted: true as const }));
  if (own.length + others.length === 0) throw explainUnserved(name, endpoint);
  return [...own, ...others];
}

/** The bridge that needs no setting. */
function findKnown({ dialect }: Endpoint, { channel }: Candidate): Crossing | undefined {
  return CROSSINGS[dialect.name]?.[CHANNEL_ROWS[channel.platform].dialect.name];
}

/** Null if the channel understands the request as it is. */
export function* cross(call: CrossingCall, candidate: Candidate, seal: Sealing): Steps<Crossed | null> {
  const { channel } = candidate;
  const { endpoint } = call.target;
  const client = endpoint.dialect;
  const { plain } = call.body;
  if (plain === null || serves(channel, endpoint)) return null;
  const { dialect } = CHANNEL_ROWS[channel.platform];
  const known = findKnown(endpoint, candidate);
  if (known !== undefined) {
    const { body, bridge } = known.cross(call, call.body, plain);
    const renamed = renameCrossed(body, candidate);
    return {
      candidate,
      dialect,
      path: known.path,
      body: renamed,
      bridge: { ...bridge, between: { client: client.name, upstream: dialect.name } },
    };
  }
  const { body, path, conversion } = yield* convertCall({
    client: client.name,
    body: plain,
    model: call.body.model ?? call.target.model?.id ?? "",
    stream: call.body.stream,
    to: describeDestination(call, candidate),
    stamp: call,
    secret: seal(channel),
    isCodex: /^codex/i.test(call.exchange.field("originator") ?? call.exchange.field("user-agent") ?? ""),
  });
  return { candidate, dialect, path, body, bridge: conversion };
}

/** The same for a count of tokens. Null: the channel cannot count them. */
export function crossCount(
  call: CrossingCall,
  candidate: Candidate,
  seal: Sealing,
): (ConvertedCount & Pick<Crossed, "candidate" | "dialect">) | null {
  const { plain } = call.body;
  const to = describeDestination(call, candidate);
  const client = call.target.endpoint.dialect.name;
  const secret = seal(candidate.channel);
  const count = plain === null ? null : convertCount({ client, body: plain, to, secret });
  return count && { ...count, candidate, dialect: CHANNEL_ROWS[candidate.channel.platform].dialect };
}

function describeDestination(call: CrossingCall, { channel, model }: Candidate): Destination {
  const { dialect } = CHANNEL_ROWS[channel.platform];
  return { dialect: dialect.name, model: model ?? "", session: nameSession(call), quirks: quirksOf(channel) };
}

function renameCrossed({ bytes, modelSpan }: RequestBody, { model }: Candidate): Uint8Array {
  const body = bytes ?? new Uint8Array(0);
  return modelSpan === null || model === null ? body : replaceSpan(body, modelSpan, model);
}

/** A key for the upstream's cache: the same for one agent of a session, and nothing in it leads back to them. */
function nameSession({ key, client, exchange }: CrossingCall): string | null {
  const { session, agent = "", tool = "", label = "", inferred } = client;
  if (session === undefined) return null;
  // A name that the gateway has given ends with the run of the tool, whose session may go on in the next one.
  const isOurs = inferred === true || exchange.field("x-gateway-session") === session;
  const name = isOurs ? `${tool}\n${label}` : `${session}\n${agent}`;
  return sha256Hex(`${key.name}\n${name}`).slice(0, 32);
}
