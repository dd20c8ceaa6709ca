// A stream of Responses events → the whole reply, and a whole reply → one event. Some upstreams always stream, or never
// do, whatever the request says.

import { openSseParser } from "../../../lib/sse/sse-parser.ts";
import { getField, isObject, getList, parseFlatJson, parseJson } from "../../../lib/json/json.ts";
import type { Json } from "../../common/strict-json.ts";

const TERMINAL_TYPES = new Set<unknown>([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error",
]);

/** Undefined if no event ends the answer. */
export function collectReply(body: Uint8Array): Json | undefined {
  const splitter = openSseParser();
  const events = [...splitter.push(body), ...splitter.end()]
    .map(({ data }) => parseJson(data))
    .filter((event) => isObject(event));
  const last = events.find(({ type }) => TERMINAL_TYPES.has(type));
  if (last === undefined) return undefined;
  const { response, error } = last;
  if (!isObject(response)) return { error: isObject(error) ? error : { ...last, type: "" } };
  if (getList(response["output"]).length > 0) return response;
  const done = events.filter(({ type }) => type === "response.output_item.done");
  return { ...response, output: done.map((event) => getField(event, "item")) };
}

/** A body that is not JSON stays as it is: it may be a stream with the wrong content type. */
export function spreadReply(body: Uint8Array): Uint8Array {
  const response = parseFlatJson(new TextDecoder().decode(body));
  if (!isObject(response)) return body;
  const { status } = response;
  const type = status === "completed" || status === "incomplete" ? "response.completed" : "response.failed";
  return Buffer.from(`data: ${JSON.stringify({ type, response })}\n\n`);
}
