// The bridge between a client's dialect and a channel's dialect, if they differ. The conversions are in bridges/. Only
// this file knows which bridges exist.

import { collectReply, spreadReply } from "../../bridges/responses-to-chat/response/collect.ts";
import type { RequestStamp } from "../../bridges/responses-to-chat/context.ts";
import { convertError } from "../../bridges/responses-to-chat/errors.ts";
import { convertReply } from "../../bridges/responses-to-chat/response/completion.ts";
import { convertRequest } from "../../bridges/responses-to-chat/request/request.ts";
import { type ChatStream, openChatStream } from "../../bridges/responses-to-chat/response/stream.ts";
import { GatewayError } from "../../lib/errors.ts";
import { parseJson } from "../../lib/json/json.ts";
import type { Platform } from "../../config/schema.ts";
import type { Dialect, DialectName } from "../../dialects/dialect.ts";
import { PLATFORM_ROWS } from "../../dialects/platforms.ts";
import { responses } from "../../dialects/formats/responses.ts";
import { type RequestBody, readNames } from "../intake/body.ts";

/** Converts the responses to one request. */
export interface Bridge {
  /** What was changed so that the upstream accepts the request. The client sees it in a header. */
  readonly adjusted: readonly string[];
  /** A long reply is read in one turn of the event loop and converted in another. */
  readReply(body: Uint8Array): unknown;
  convertReply(reply: unknown): { status: number; body: string };
  convertError(status: number, body: Uint8Array): { status: number; body: string };
  openStream(): ChatStream;
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
