// A chat request → the Responses request for the same. Each field of a client is converted, accepted without effect, or
// refused by name.

import { isObject } from "../../../lib/json/json.ts";
import type { BridgeContext } from "../context.ts";
import {
  convertLogprobs,
  convertReasoning,
  convertText,
  copySameName,
  readIncludeUsage,
  readTokenCap,
  rejectUnsupported,
} from "./fields.ts";
import type { RequestStamp } from "../../common/answer-stream.ts";
import {
  isAbsent,
  type Json,
  readBody,
  readBoolean,
  refuseMissing,
  requireString,
} from "../../common/strict-json.ts";
import { convertMessages } from "./messages.ts";
import { convertTools } from "./tools.ts";

export interface ConvertedRequest {
  /** The upstream's request. */
  readonly body: Uint8Array;
  readonly context: BridgeContext;
  /** Changes without which the upstream would refuse the request. The client sees them in a header. */
  readonly adjusted: readonly string[];
}

/** Throws a GatewayError that names the field that cannot be honoured. */
export function convertRequest(body: Uint8Array, stamp: RequestStamp): ConvertedRequest {
  const request = readBody(body, NOT_JSON);
  if (isAbsent(request["model"])) refuseMissing("model");
  if (isAbsent(request["messages"])) refuseMissing("messages");
  rejectUnsupported(request);
  const model = requireString(request["model"], "model");
  const stream = readBoolean(request["stream"], "stream") ?? false;
  const includeUsage = readIncludeUsage(request, stream);
  const cap = readTokenCap(request);
  const tooling = convertTools(request);
  const logprobs = convertLogprobs(request);
  const text = convertText(request);
  const { items, origins } = convertMessages(request["messages"]);
  const upstream: Json = {
    model,
    input: items,
    ...copySameName(request),
    ...(cap.value === null ? {} : { max_output_tokens: cap.value }),
    ...text,
    ...convertReasoning(request),
    ...logprobs,
    ...tooling.fields,
    store: readBoolean(request["store"], "store") ?? false,
    stream,
    ...(stream ? { stream_options: { include_obfuscation: false } } : {}),
  };
  const context: BridgeContext = {
    stamp,
    model,
    stream,
    includeUsage,
    legacy: tooling.legacy,
    forced: tooling.forced,
    json: isJsonFormat(request["response_format"]),
    logprobs: "include" in logprobs,
    origins,
    toolKinds: tooling.kinds,
    maxTokensField: cap.field,
  };
  const adjusted = cap.raised ? [`max_output_tokens=${cap.value}`] : [];
  return { body: Buffer.from(JSON.stringify(upstream)), context, adjusted };
}

const NOT_JSON =
  "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)";

function isJsonFormat(format: unknown): boolean {
  return isObject(format) && format["type"] !== "text";
}
