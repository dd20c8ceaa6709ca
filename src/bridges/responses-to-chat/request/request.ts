// A chat request → the Responses request that asks for the same. What a client
// sends is mapped, known to have no effect, or refused by name: nothing else.

import { GatewayError } from "../../../lib/errors.ts";
import { parseExactJson } from "../../../lib/json/exact-json.ts";
import { isObject } from "../../../lib/json/json.ts";
import type { Asked, BridgeContext } from "../context.ts";
import {
  convertLogprobs,
  convertReasoning,
  convertText,
  copySame,
  readIncludeUsage,
  readTokenCap,
  rejectForeign,
} from "./fields.ts";
import { isAbsent, type Json, readBoolean, refuseMissing, requireString } from "../json.ts";
import { convertMessages } from "./messages.ts";
import { convertTools } from "./tools.ts";

export interface Converted {
  /** The upstream's request. */
  readonly body: Uint8Array;
  readonly context: BridgeContext;
  /** What was changed so that the upstream takes it, for the client to see. */
  readonly adjusted: readonly string[];
}

/** Throws a GatewayError that names the field when something cannot be honoured. */
export function convertRequest(body: Uint8Array, asked: Asked): Converted {
  const request = parseRequest(body);
  if (isAbsent(request["model"])) refuseMissing("model");
  if (isAbsent(request["messages"])) refuseMissing("messages");
  rejectForeign(request);
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
    ...copySame(request),
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
    asked,
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

/** What can be read can be nested too deeply to be written. */
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
