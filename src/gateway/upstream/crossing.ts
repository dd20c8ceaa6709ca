// Which dialects are served by converting another one, and how. The conversions
// themselves are bridges/'s; this is the one place where the gateway knows of them.

import { collectReply, spreadReply } from "../../bridges/responses-to-chat/response/collect.ts";
import type { Asked } from "../../bridges/responses-to-chat/context.ts";
import { convertError } from "../../bridges/responses-to-chat/errors.ts";
import { convertReply } from "../../bridges/responses-to-chat/response/completion.ts";
import { convertRequest } from "../../bridges/responses-to-chat/request/request.ts";
import { type ChatStream, openChatStream } from "../../bridges/responses-to-chat/response/stream.ts";
import { parseJson } from "../../lib/json/json.ts";
import type { Dialect, DialectName } from "../../dialects/dialect.ts";
import { responses } from "../../dialects/responses.ts";
import { type RequestBody, readNames } from "../intake/body.ts";

/** Converts the answers of one request. */
export interface Bridge {
  /** What was changed so that the upstream takes the request, for the client to see. */
  readonly adjusted: readonly string[];
  convertReply(body: Uint8Array): { status: number; body: string };
  convertError(status: number, body: Uint8Array): { status: number; body: string };
  openStream(): ChatStream;
  /** A whole reply as an event of the upstream's stream. */
  spreadReply(body: Uint8Array): Uint8Array;
}

interface Crossing {
  readonly dialect: Dialect;
  readonly path: string;
  cross(asked: Asked, request: RequestBody, plain: Uint8Array): { body: RequestBody; bridge: Bridge };
}

const RESPONSES_TO_CHAT: Crossing = {
  dialect: responses,
  path: "/v1/responses",
  cross(asked, request, plain) {
    const { body, context, adjusted } = convertRequest(plain, asked);
    const bridge: Bridge = {
      adjusted,
      convertReply: (reply) =>
        convertReply(parseJson(new TextDecoder().decode(reply)) ?? collectReply(reply), context),
      convertError: (status, error) => convertError(status, error, context),
      openStream: () => openChatStream(context),
      spreadReply,
    };
    return { body: { ...request, bytes: body, plain: body, encoded: false, ...readNames(body) }, bridge };
  },
};

/** Dialects without a row are spoken upstream as they are. */
export const CROSSINGS: Partial<Record<DialectName, Crossing>> = { chat: RESPONSES_TO_CHAT };
