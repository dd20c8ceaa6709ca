// A response that a channel gave, and helpers that read its body.

import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import { LARGE_BYTES } from "../../lib/memory/memory-budget.ts";
import type { Channel } from "../../config/catalog.ts";
import { storeId } from "../intake/client.ts";
import type { Candidate } from "../intake/match.ts";
import { holdsSecret } from "./redact.ts";
import type { RefusedResponse } from "./failure-rules.ts";

/** A response that a bridge converts is read whole. A longer one is an error. */
export const MAX_CONVERTED_BYTES = 64 * 1024 * 1024;

export interface ChannelResponse {
  readonly response: UpstreamResponse;
  readonly candidate: Candidate;
  /** The whole body, if it had to be read to decide what to do with the response. */
  readonly whole: Uint8Array | null;
}

/** An upstream's own id of a request, in the order of preference. */
const REQUEST_ID_FIELDS = ["request-id", "x-request-id", "apim-request-id", "x-amzn-requestid"];

export function readRequestId(response: UpstreamResponse, channel: Channel): string | undefined {
  for (const name of REQUEST_ID_FIELDS) {
    const id = storeId(response.field(name));
    if (id !== undefined) return holdsSecret(id, channel) ? undefined : id;
  }
  return undefined;
}

/** True if the content type says that the body is one JSON value. */
export function isJsonResponse(response: UpstreamResponse): boolean {
  return response.field("content-type")?.startsWith("application/json") === true;
}

/** Reads a body until it ends or `limit` bytes have come. `hasMore` is false if it ended. Waits for `admitLarge` before it
 *  reads a large body on. */
export async function readUpTo(
  response: UpstreamResponse,
  limit: number,
  admitLarge: () => Promise<void> = async () => {},
): Promise<{ chunks: Uint8Array[]; hasMore: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size < limit) {
    const chunk = await response.read();
    if (chunk === null) return { chunks, hasMore: false };
    chunks.push(chunk);
    const before = size;
    size += chunk.length;
    if (before <= LARGE_BYTES && size > LARGE_BYTES) await admitLarge();
  }
  return { chunks, hasMore: true };
}

export function joinChunks(chunks: readonly Uint8Array[]): Uint8Array {
  const first = chunks[0];
  if (first === undefined) return new Uint8Array(0);
  return chunks.length === 1 ? first : Buffer.concat(chunks);
}

/** An upstream sends a short error body at once. */
const MAX_ERROR_WAIT_MS = 10_000;
const MAX_ERROR_BYTES = 256 * 1024;

/** Reads an error's body, bounded in size and time. A body that cannot be read counts as empty. */
export async function readErrorBody(response: UpstreamResponse, leftMs: number): Promise<Uint8Array> {
  const timer = setTimeout(() => response.cancel(), Math.min(leftMs, MAX_ERROR_WAIT_MS));
  try {
    const { chunks, hasMore } = await readUpTo(response, MAX_ERROR_BYTES);
    if (hasMore) response.cancel();
    return joinChunks(chunks);
  } catch (error) {
    if (error instanceof UpstreamFault) return new Uint8Array(0);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** An earlier error response once more, with the remaining time of the cooldown. */
export function repeatResponse(
  refused: RefusedResponse,
  candidate: Candidate,
  waitMs: number,
): ChannelResponse {
  const { status, body } = refused;
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  const fields = [...refused.fields, ["retry-after", String(seconds)] as const];
  const response: UpstreamResponse = {
    status,
    fields,
    field: (name) => fields.find(([other]) => other === name)?.[1],
    length: body.length,
    closeDelimited: false,
    buffered: true,
    reused: false,
    finished: true,
    read: () => Promise.resolve(null),
    takeBuffered: () => null,
    cancel: () => {},
  };
  return { response, candidate, whole: body };
}
