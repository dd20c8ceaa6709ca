// A response that a channel gave, and what its head says.

import { Fields } from "../../lib/http/fields.ts";
import { type Body, UpstreamResponse } from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import { storeId } from "../intake/client.ts";
import type { Candidate } from "../intake/match.ts";
import type { Secrets } from "../intake/secrets.ts";
import type { RefusedResponse } from "./failure-rules.ts";

/** A response that a bridge converts is read whole. A longer one is an error. */
export const MAX_CONVERTED_BYTES = 64 * 1024 * 1024;

export interface ChannelResponse {
  readonly response: UpstreamResponse;
  readonly candidate: Candidate;
  readonly body: Body;
}

/** A response whose body is known already. */
export function knownResponse(
  response: UpstreamResponse,
  candidate: Candidate,
  whole: Uint8Array,
): ChannelResponse {
  return { response, candidate, body: resumeBody(whole.length === 0 ? [] : [asBuffer(whole)], ENDED) };
}

const ENDED: Body = { read: () => Promise.resolve(null), cancel: () => {} };

/** A body of which `held` has been read already, and `next` is being read. Takes the chunks out of `held`. */
export function resumeBody(held: Buffer[], rest: Body, next: Promise<Buffer | null> | null = null): Body {
  if (held.length === 0 && next === null) return rest;
  next?.catch(() => {}); // nobody may read it
  const read = (): Promise<Buffer | null> => {
    const chunk = held.shift();
    if (chunk !== undefined) return Promise.resolve(chunk);
    const resumed = next ?? rest.read();
    next = null;
    return resumed;
  };
  return { read, cancel: () => rest.cancel() };
}

/** An upstream's own id of a request, in the order of preference. */
const REQUEST_ID_FIELDS = ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid"];

export function readRequestId(response: UpstreamResponse, secrets: Secrets): string | undefined {
  for (const name of REQUEST_ID_FIELDS) {
    const id = storeId(response.field(name));
    if (id !== undefined) return secrets.holds(id) ? undefined : id;
  }
  return undefined;
}

/** True if the content type says that the body is one JSON value. */
export function isJsonResponse(response: UpstreamResponse): boolean {
  return response.field("content-type")?.startsWith("application/json") === true;
}

/** An earlier error response once more, with the remaining time of the cooldown. */
export function repeatResponse(
  refused: RefusedResponse,
  candidate: Candidate,
  waitMs: number,
): ChannelResponse {
  const { status, body } = refused;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const fields = Fields.of(refused.fields).add("retry-after", String(seconds));
  return knownResponse(new UpstreamResponse(status, fields, body.length), candidate, body);
}
