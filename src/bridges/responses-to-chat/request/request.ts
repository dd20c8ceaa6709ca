// A chat request → the Responses request for the same. Each field of a client is converted, accepted without effect, or
// refused by name.

import { GatewayError } from "../../../lib/errors.ts";
import { parseExactJson } from "../../../lib/json/exact-json.ts";
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
import { isAbsent, type Json, readBoolean, refuseMissing, requireString } from "../../common/strict-json.ts";
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
  const request = parseRequest(body);
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
  return { body: writeBody(upstream), context, adjusted };
}

/** JSON.stringify fails at a smaller depth than the parser. */
function writeBody(upstream: Json): Uint8Array {
  try {
    return new TextEncoder().encode(JSON.stringify(upstream));
  } catch (cause) {
    throw new GatewayError("bad_request", "The JSON body of the request is nested too deeply.", { cause });
  }
}

function parseRequest(body: Uint8Array): Json {
  let request: unknown;
  try {
    request = parseExactJson(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (cause) {
    const message =
      "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)";
    throw new GatewayError("bad_request", message, { cause });
  }
  if (isObject(request)) return request;
  throw new GatewayError("bad_request", "The JSON body of a request must be an object.");
}

function isJsonFormat(format: unknown): boolean {
  return isObject(format) && format["type"] !== "text";
}
