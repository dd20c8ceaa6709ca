// A channel's response.

import { Fields } from "../../lib/http/fields.ts";
import type { Body, UpstreamResponse } from "../../lib/http/upstream.ts";
import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Candidate } from "../intake/match.ts";
import type { ChannelResponse } from "../request.ts";
import type { RefusedResponse } from "../upstream/failures.ts";

const ENDED: Body = { read: () => Promise.resolve(null), cancel: () => {} };

/** `held`: chunks that were read before. It is emptied. */
export function resumeBody(
  held: Buffer[],
  rest: Body = ENDED,
  next: Promise<Buffer | null> | null = null,
): Body {
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

export function isJsonResponse(response: UpstreamResponse): boolean {
  return response.fields.get("content-type")?.startsWith("application/json") === true;
}

export function repeatResponse(
  { status, fields, body }: RefusedResponse,
  candidate: Candidate,
  waitMs: number,
): ChannelResponse {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const repeated = new Fields().addAll(fields).add("retry-after", String(seconds));
  const response = { status, fields: repeated, length: body.length, closeDelimited: false };
  return { response, candidate, body: resumeBody([asBuffer(body)]) };
}
