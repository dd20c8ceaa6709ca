// A stream of Responses events → the reply that it tells, and a reply → the event that tells it:
// for upstreams that answer in one way only, whatever they are asked.

import { openSseSplitter } from "../../../lib/sse/sse-parser.ts";
import { fieldOf, isObject, listOf, parseJson } from "../../../lib/json/json.ts";
import type { Json } from "../json.ts";

const LAST = new Set<unknown>([
  "response.completed",
  "response.incomplete",
  "response.failed",
  "response.cancelled",
  "error",
]);

/** Undefined where no event ends an answer. */
export function collectReply(body: Uint8Array): Json | undefined {
  const splitter = openSseSplitter();
  const events = [...splitter.push(body), ...splitter.end()]
    .map(({ data }) => parseJson(data))
    .filter((event) => isObject(event));
  const last = events.find(({ type }) => LAST.has(type));
  if (last === undefined) return undefined;
  const { response, error } = last;
  if (!isObject(response)) return { error: isObject(error) ? error : { ...last, type: "" } };
  if (listOf(response["output"]).length > 0) return response;
  const done = events.filter(({ type }) => type === "response.output_item.done");
  return { ...response, output: done.map((event) => fieldOf(event, "item")) };
}

/** What is no JSON stays as it is: a stream that bears the wrong name. */
export function spreadReply(body: Uint8Array): Uint8Array {
  const response = parseJson(new TextDecoder().decode(body));
  if (!isObject(response)) return body;
  const { status } = response;
  const type = status === "completed" || status === "incomplete" ? "response.completed" : "response.failed";
  return Buffer.from(`data: ${JSON.stringify({ type, response })}\n\n`);
}
