// Sends the request to one channel's upstream.

import { dropEnvelopes } from "../../bridges/neutral/envelope.ts";
import { quirksOf } from "../../bridges/chat/quirks.ts";
import type { Channel } from "../../config/catalog.ts";
import type { Dialect } from "../../dialects/dialect.ts";
import { CHANNEL_ROWS } from "../../dialects/platforms.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { ClientGone, type Exchange } from "../../lib/http/exchange.ts";
import type { SentRequest } from "../../lib/http/upstream.ts";
import { listElements, readString, replaceSpan, type Span } from "../../lib/json/scanner.ts";
import { scanMembers } from "../../lib/scan.ts";
import type { Gateway } from "../gateway.ts";
import type { ConvertedRequest, Request } from "../request.ts";
import { askForUsage } from "../../dialects/formats/chat.ts";
import { type KnownSecrets, secretsOf } from "../intake/secrets.ts";
import { readLogin, upstreamPath } from "../intake/login.ts";
import type { Candidate } from "../intake/match.ts";
import { addressOf, joinPath, markHop, overrideFields } from "../upstream/address.ts";
import { convertedFields, requestFields } from "./headers.ts";

export function forward(
  r: Request,
  candidate: Candidate,
  { client, converts, catalog }: Gateway,
): SentRequest {
  if (r.exchange.gone) throw new ClientGone("The client disconnected.");
  const { channel } = candidate;
  const { origin, deadlines } = addressOf(channel);
  const secrets = secretsOf(catalog);
  const { path, body, fields } =
    r.converted === null ? passOn(r, candidate, secrets, converts) : sendConverted(r, r.converted, secrets);
  return client.send({
    origin,
    method: r.method,
    target: joinPath(channel, upstreamPath(channel, path)),
    fields,
    body,
    deadlines,
  });
}

interface Sent {
  readonly path: string;
  readonly body: Uint8Array | null;
  readonly fields: Fields;
}

/** The body changes only to rename the model,
 *  to drop envelopes or to ask for usage. */
function passOn(r: Request, candidate: Candidate, secrets: KnownSecrets, converts: boolean): Sent {
  const named = renameModel(r, candidate);
  const readable = named === r.body.bytes ? r.body.plain : named;
  const kept = (converts ? dropEnvelopes(readable) : null) ?? named;
  const body = r.group.mixesDialects ? askUsage(r, candidate, kept) : kept;
  const keepEncoding = r.body.encoded && body === r.body.bytes;
  const own = requestFields(r.fields, keepEncoding, secrets);
  const fields = signFields(own, r.exchange, candidate.channel, r.upstreamDialect);
  const { model, path } = r.target;
  const isRenamed = model !== null && candidate.model !== null && candidate.model !== model.id;
  const renamed = isRenamed
    ? path.slice(0, model.start) + encodeURIComponent(candidate.model) + path.slice(model.end)
    : path;
  return { path: renamed + r.query, body, fields };
}

function askUsage(r: Request, { channel }: Candidate, body: Uint8Array | null): Uint8Array | null {
  const readable = body === r.body.bytes ? r.body.plain : body;
  const { asksUsage = false } = CHANNEL_ROWS[channel.platform];
  const mayAsk = r.stream && asksUsage && quirksOf(channel).ask_usage;
  const asking = mayAsk && readable !== null ? askForUsage(readable) : null;
  r.asksUsage = asking !== null;
  return asking ?? body;
}

function sendConverted(
  r: Request,
  { candidate, dialect, path, body, keepsFields }: ConvertedRequest,
  secrets: KnownSecrets,
): Sent {
  const own = keepsFields
    ? requestFields(r.fields, false, secrets)
    : convertedFields(r.fields, secrets).addAll(dialect.ownRequestFields ?? []);
  return { path, body, fields: signFields(own, r.exchange, candidate.channel, dialect) };
}

export function signFields(fields: Fields, exchange: Exchange, channel: Channel, dialect: Dialect): Fields {
  if (channel.usesLogin) fields.addAll(readLogin(exchange));
  else fields.push(dialect.sign(channel.credential));
  markHop(fields, exchange, channel);
  return overrideFields(fields, channel);
}

export function renameModel({ target, body: request }: Request, { model: to }: Candidate): Uint8Array | null {
  const { bytes: body, plain, model, modelSpan } = request;
  if (plain === null || model === null || to === null || to === model) return body;
  if (modelSpan !== null) return replaceSpan(plain, modelSpan, JSON.stringify(to));
  // A generating request names its model only in the path.
  if (target.endpoint.purpose === "generate") return body;
  return renameInBody(plain, model, to) ?? body;
}

const PREFIX = "models/";

/** The body repeats the path's model, and both must agree. */
function renameInBody(plain: Uint8Array, from: string, to: string): Uint8Array | null {
  let renamed: Uint8Array | null = null;
  for (const span of findNames(plain).toReversed()) {
    const name = readString(plain, span);
    if (name !== from && name !== PREFIX + from) continue;
    renamed = replaceSpan(renamed ?? plain, span, JSON.stringify(name === from ? to : PREFIX + to));
  }
  return renamed;
}

function findNames(plain: Uint8Array): Span[] {
  const whole = { start: 0, end: plain.length };
  const scan = scanMembers(plain, ["requests", "generateContentRequest"]);
  const requests = scan?.get("requests");
  const elements = requests === undefined ? [] : listElements(plain, requests, Infinity);
  return [whole, elements, scan?.get("generateContentRequest") ?? []]
    .flat()
    .flatMap((span) => findName(plain, span))
    .toSorted((a, b) => a.start - b.start);
}

function findName(plain: Uint8Array, { start, end }: Span): Span[] {
  const found = scanMembers(plain.subarray(start, end), ["model"])?.get("model");
  return found === undefined ? [] : [{ start: start + found.start, end: start + found.end }];
}
