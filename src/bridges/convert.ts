// Converts between all dialects. Only this file knows all of them.

import { isUtf8 } from "node:buffer";
import type { Meter, Usage } from "../billing/usage.ts";
import type { DialectName } from "../dialects/dialect.ts";
import { GatewayError } from "../lib/errors.ts";
import { parseExact } from "../lib/exact.ts";
import { isObject } from "../lib/json/json.ts";
import type { Steps } from "../lib/time/next-turn.ts";
import { AnswerStream, formError, listEvents, type Reply } from "./answer-stream.ts";
import type { Json } from "./neutral/notes.ts";
import { ChatAnswerReader } from "./chat/read-answer.ts";
import { ContentAnswerReader } from "./content/read-answer.ts";
import { MessagesAnswerReader } from "./messages/read-answer.ts";
import { ResponsesAnswerReader } from "./responses/read-answer.ts";
import type { AnswerReader } from "./neutral/read-answer.ts";
import { CHAT_FIELDS } from "./chat/fields.ts";
import { readChatRequest } from "./chat/read-request.ts";
import { CONTENT_FIELDS } from "./content/fields.ts";
import { readContentRequest } from "./content/read-request.ts";
import { MESSAGES_FIELDS } from "./messages/fields.ts";
import { readMessagesRequest } from "./messages/read-request.ts";
import { RESPONSES_FIELDS } from "./responses/fields.ts";
import { readResponsesRequest } from "./responses/read-request.ts";
import type { ReadingFor } from "./neutral/read-request.ts";
import type { Conversation, Destination } from "./neutral/conversation.ts";
import { openEnvelopes } from "./neutral/envelope.ts";
import { blameAnswer, type UpstreamError, nameFields, PROMPTS, readUpstreamError } from "./neutral/error.ts";
import { type FieldTable, translateField } from "./neutral/fields.ts";
import { indexTools } from "./neutral/tools.ts";
import { Sequence } from "./neutral/sequence.ts";
import { ChatAnswerWriter, writeWholeChat } from "./chat/write-answer.ts";
import { ContentAnswerWriter, writeWholeContent } from "./content/write-answer.ts";
import { MessagesAnswerWriter, writeWholeMessages } from "./messages/write-answer.ts";
import { ResponsesAnswerWriter, writeWholeResponses } from "./responses/write-answer.ts";
import {
  type AnswerContext,
  type AnswerWriter,
  nameAnswer,
  type RequestStamp,
  type WholeAnswer,
} from "./neutral/write-answer.ts";
import { writeChatRequest } from "./chat/write-request.ts";
import { writeContentRequest } from "./content/write-request.ts";
import { writeMessagesRequest } from "./messages/write-request.ts";
import { writeResponsesRequest } from "./responses/write-request.ts";

interface Side {
  readonly fields: FieldTable;
  readonly read: (body: Json, to: ReadingFor) => Conversation;
  readonly Writer: new (context: AnswerContext) => AnswerWriter;
  readonly writeWhole: (answer: WholeAnswer, context: AnswerContext) => string;
  readonly write: (conversation: Conversation, to: Destination) => Json;
  readonly Reader: new (sequence: Sequence) => AnswerReader;
  readonly path: (model: string, stream: boolean) => string;
}

const SIDES: Readonly<Record<DialectName, Side>> = {
  messages: {
    fields: MESSAGES_FIELDS,
    read: readMessagesRequest,
    write: writeMessagesRequest,
    Reader: MessagesAnswerReader,
    Writer: MessagesAnswerWriter,
    writeWhole: writeWholeMessages,
    path: () => "/v1/messages",
  },
  responses: {
    fields: RESPONSES_FIELDS,
    read: readResponsesRequest,
    write: writeResponsesRequest,
    Reader: ResponsesAnswerReader,
    Writer: ResponsesAnswerWriter,
    writeWhole: writeWholeResponses,
    path: () => "/v1/responses",
  },
  chat: {
    fields: CHAT_FIELDS,
    read: readChatRequest,
    write: writeChatRequest,
    Reader: ChatAnswerReader,
    Writer: ChatAnswerWriter,
    writeWhole: writeWholeChat,
    path: () => "/v1/chat/completions",
  },
  content: {
    fields: CONTENT_FIELDS,
    read: readContentRequest,
    write: writeContentRequest,
    Reader: ContentAnswerReader,
    Writer: ContentAnswerWriter,
    writeWhole: writeWholeContent,
    path(model, stream) {
      // `encodeURIComponent` throws at a lone surrogate.
      const name = encodeURIComponent(model.toWellFormed());
      return `/v1beta/models/${name}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`;
    },
  },
};

export function isShared(client: string, upstream: string): boolean {
  return client === "chat" && upstream === "responses";
}

/** Parsing more would delay all other streams. */
const MAX_CONVERTED_REQUEST_BYTES = 32 * 1024 * 1024;

export interface ConversionOrder {
  readonly client: DialectName;
  readonly body: Uint8Array;
  readonly model: string;
  readonly stream: boolean;
  readonly to: Destination;
  readonly stamp: RequestStamp;
  readonly secret: () => string;
  readonly isCodex: boolean;
}

export interface ConvertedCall {
  readonly body: Uint8Array;
  readonly path: string;
  readonly conversion: Conversion;
}

/** Errors name the client's field. Each step takes at most 0.1 s. */
export function* convertCall(order: ConversionOrder): Steps<ConvertedCall> {
  const { to, client } = order;
  const upstream = SIDES[to.dialect];
  const envelopes = openEnvelopes(order.secret, to.model, to.dialect);
  const sent = parseBody(order.body);
  yield;
  const reading = { openSeal: envelopes.open, isShared: isShared(client, to.dialect) };
  const conversation = { ...SIDES[client].read(sent, reading), stream: order.stream };
  const written = upstream.write(conversation, to);
  yield;
  const body = Buffer.from(JSON.stringify(written));
  const conversion = new Conversion(conversation, order, envelopes.close);
  return { body, path: upstream.path(to.model, order.stream), conversion };
}

function parseBody(body: Uint8Array): Json {
  if (body.length > MAX_CONVERTED_REQUEST_BYTES) {
    const most = MAX_CONVERTED_REQUEST_BYTES / 1024 / 1024;
    throw new GatewayError(
      "body_too_large",
      `The request is larger than ${most} MiB, which this group cannot convert. ` +
        "Send less, or use a group whose channels speak the client's dialect.",
    );
  }
  const value = isUtf8(body) ? parseExact(new TextDecoder().decode(body)) : undefined;
  if (isObject(value)) return value;
  throw new GatewayError(
    "bad_request",
    "The body of the request is not a JSON object, or is nested too deeply.",
  );
}

export class Conversion {
  readonly adjusted: readonly string[];
  readonly between: { readonly client: DialectName; readonly upstream: DialectName };
  readonly #from: Side;
  readonly #upstream: Side;
  readonly #context: Omit<AnswerContext, "count">;
  readonly #reword: (failure: UpstreamError) => UpstreamError;

  constructor(conversation: Conversation, order: ConversionOrder, closeSeal: AnswerContext["closeSeal"]) {
    const { client, model, to, stamp, isCodex } = order;
    const [from, upstream] = [SIDES[client], SIDES[to.dialect]];
    this.adjusted = conversation.notes.list();
    this.between = { client, upstream: to.dialect };
    this.#from = from;
    this.#upstream = upstream;
    const translate = (path: string): string | null =>
      path.split(/[.[]/)[0] === PROMPTS[to.dialect]
        ? PROMPTS[client]
        : translateField(path, upstream.fields, from.fields, conversation.notes);
    this.#reword = (failure) => nameFields(failure, translate);
    this.#context = {
      client,
      stamp,
      isCodex,
      model,
      tools: indexTools(conversation.tools, to.dialect),
      wishes: conversation.wishes,
      isJson: conversation.options.schema !== undefined || conversation.options.json === true,
      closeSeal,
    };
  }

  openStream(meter: Meter, count: () => Usage): AnswerStream {
    const context = { ...this.#context, count };
    const writer = new this.#from.Writer(context);
    const sequence = new Sequence(nameAnswer(context), writer, this.#reword);
    const reader = new this.#upstream.Reader(sequence);
    return new AnswerStream({ context, writer, sequence, reader, meter });
  }

  /** Converts a complete answer, even one that came as events. */
  convertReply(body: Uint8Array, count: () => Usage): Reply {
    const { client, stamp } = this.#context;
    const sequence = new Sequence(nameAnswer(this.#context), null, this.#reword);
    const reader = new this.#upstream.Reader(sequence);
    for (const event of listEvents(body)) reader.readEvent(event);
    reader.finish();
    const { ended, failure } = sequence;
    if (ended === null)
      return formError(failure ?? blameAnswer("The upstream's answer has no end."), client, stamp);
    const answer = { blocks: sequence.blocks, end: ended, about: sequence.about };
    return { status: 200, body: this.#from.writeWhole(answer, { ...this.#context, count }) };
  }

  convertError(status: number, body: Uint8Array): Reply {
    const { client, stamp } = this.#context;
    const failure = readUpstreamError(status, new TextDecoder().decode(body));
    return formError(this.#reword(failure), client, stamp);
  }
}
