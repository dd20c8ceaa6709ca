// An upstream's answer on its way to the client, and how much of it has been read already.

import { type UpstreamResponse, UpstreamFault } from "../../lib/http1/types.ts";
import type { Candidate } from "../intake/match.ts";

/** Answers that are converted are read whole, whatever their size up to this. */
export const CONVERTED_LIMIT = 64 * 1024 * 1024;

export interface ChannelResponse {
  readonly response: UpstreamResponse;
  readonly candidate: Candidate;
  /** The whole body, when it was read to decide what to do with it. */
  readonly whole: Uint8Array | null;
}

/** Its head says that it is one JSON value. */
export function saysJson(response: UpstreamResponse): boolean {
  return response.field("content-type")?.startsWith("application/json") === true;
}

/** Reads a body up to `limit` bytes. `rest` is false when the body ended within it. */
export async function readUpTo(
  response: UpstreamResponse,
  limit: number,
): Promise<{ chunks: Uint8Array[]; rest: boolean }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  while (size < limit) {
    const chunk = await response.read();
    if (chunk === null) return { chunks, rest: false };
    chunks.push(chunk);
    size += chunk.length;
  }
  return { chunks, rest: true };
}

export function joinChunks(chunks: readonly Uint8Array[]): Uint8Array {
  const first = chunks[0];
  if (first === undefined) return new Uint8Array(0);
  return chunks.length === 1 ? first : Buffer.concat(chunks);
}

/** Who only refuses says why at once. */
const ERROR_PATIENCE_MS = 10_000;

/** An error's body, as much of it as anyone wants to read and wait for; what cannot be read is left out. */
export async function readErrorBody(response: UpstreamResponse, leftMs: number): Promise<Uint8Array> {
  const timer = setTimeout(() => response.cancel(), Math.min(leftMs, ERROR_PATIENCE_MS));
  try {
    const { chunks, rest } = await readUpTo(response, 256 * 1024);
    if (rest) response.cancel();
    return joinChunks(chunks);
  } catch (error) {
    if (error instanceof UpstreamFault) return new Uint8Array(0);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
