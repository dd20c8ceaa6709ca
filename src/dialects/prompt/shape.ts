// What of a system prompt stays the same when only its digits change: a date, a time, a counter. It is computed once for
// each text, because most requests repeat the last one's.

import { asBuffer } from "../../lib/memory/bytes.ts";
import type { Span } from "../../lib/json/json-spans.ts";
import { dropOldest } from "../../lib/memory/oldest.ts";

/** Claude Code's line about itself, which Anthropic's own API leaves out of the prompt. */
const ATTRIBUTION = "x-anthropic-billing-header";
export const ATTRIBUTION_SHAPE = -1;

/** Whether an upstream leaves the line out. */
export function dropsAttribution({ hostname }: URL): boolean {
  return hostname === "api.anthropic.com";
}

export const MAX_SHAPED_BYTES = 64 * 1024;
const MAX_SHAPES = 1024;
/** The line is a text or the text of a block, so that it begins near the start of the part. */
const MAX_FRAME_BYTES = 64;

export class ShapeMemory {
  /** By the hash of a part, the oldest first. */
  readonly #shapes = new Map<number, number>();

  find(hash: number, bytes: Uint8Array, span: Span): number {
    const known = this.#shapes.get(hash);
    if (known !== undefined) return known;
    const shape = readShape(bytes, span);
    this.#shapes.set(hash, shape);
    dropOldest(this.#shapes, MAX_SHAPES);
    return shape;
  }
}

function readShape(bytes: Uint8Array, { start, end }: Span): number {
  const text = asBuffer(bytes).toString("latin1", start, Math.min(end, start + MAX_SHAPED_BYTES));
  const place = text.indexOf(ATTRIBUTION);
  if (place >= 0 && place < MAX_FRAME_BYTES) return ATTRIBUTION_SHAPE;
  return Number(Bun.hash.wyhash(text.replace(/\d+/g, "0")));
}
