// The journal beside a ledger names the requests that are with an upstream and
// have no line yet, so that after a crash each of them gets one. This file owns
// its records and how they are read; when they are written is the ledger's business.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { readOwn } from "../../lib/own-file.ts";
import { describePaidTwice } from "../assess.ts";
import type { Position } from "./rotation.ts";
import type { LineDraft } from "./line.ts";

const intentSchema = z.object({
  id: z.string(),
  /** ISO time of the request's arrival. */
  time: z.string(),
  key: z.string(),
  group: z.string(),
  platform: z.string(),
  channel: z.string(),
  endpoint: z.string(),
  model: z.string(),
  upstream_model: z.string().nullable(),
  stream: z.boolean(),
  multiplier: z.string(),
});

/** What a request is about to do, told before it goes to an upstream. */
export type Intent = Readonly<z.infer<typeof intentSchema>>;

/** A request that is with an upstream; the last of `channels` is the one that it is with now. */
export interface OpenRequest {
  readonly intent: Intent;
  readonly channels: readonly string[];
}

const recordSchema = z.union([
  z.object({ from: z.object({ offset: z.int().nonnegative(), prev: z.string() }) }),
  z.object({ open: intentSchema, channels: z.array(z.string()).optional() }),
  z.object({ id: z.string(), channel: z.string() }),
  z.object({ discard: z.string() }),
]);

/** The first record: every id in this journal has its line, if it has one, after this place. */
export function encodeStart(position: Position): string {
  return `${JSON.stringify({ from: position })}\n`;
}

export function encodeOpen(intent: Intent): string {
  return `${JSON.stringify({ open: intent })}\n`;
}

export function encodeOpenAgain({ intent, channels }: OpenRequest): string {
  return `${JSON.stringify({ open: intent, channels })}\n`;
}

export function encodeAttempt(id: string, channel: string): string {
  return `${JSON.stringify({ id, channel })}\n`;
}

export function encodeDiscard(id: string): string {
  return `${JSON.stringify({ discard: id })}\n`;
}

export interface JournalReading {
  /** Null: search the whole ledger. */
  readonly from: Position | null;
  readonly open: Map<string, OpenRequest>;
}

/** A torn record was never answered for: its request did not leave, so it is passed over. */
export function readJournal(path: string): JournalReading {
  const open = new Map<string, OpenRequest>();
  let from: Position | null = null;
  for (const text of (readOwn(path) ?? "").split("\n")) {
    const parsed = recordSchema.safeParse(parseJson(text));
    if (!parsed.success) continue;
    const record = parsed.data;
    if ("from" in record) from = record.from;
    else if ("open" in record) {
      const channels = record.channels ?? [record.open.channel];
      open.set(record.open.id, { intent: record.open, channels });
    } else if ("discard" in record) open.delete(record.discard);
    else addAttempt(open, record.id, record.channel);
  }
  return { from, open };
}

export function addAttempt(open: Map<string, OpenRequest>, id: string, channel: string): boolean {
  const request = open.get(id);
  if (request === undefined) return false;
  open.set(id, { intent: request.intent, channels: [...request.channels, channel] });
  return true;
}

/** The line of a request during which the gateway died: that it may cost something is all that is known. */
export function draftInterrupted({ intent, channels }: OpenRequest): LineDraft {
  return {
    id: intent.id,
    time: intent.time,
    key: intent.key,
    group: intent.group,
    platform: intent.platform,
    channel: channels.at(-1) ?? intent.channel,
    endpoint: intent.endpoint,
    model: intent.model,
    upstream_model: intent.upstream_model,
    stream: intent.stream,
    status: null,
    outcome: "interrupted",
    basis: "unknown",
    usage: {},
    raw_usage: null,
    prices: null,
    price_source: null,
    tier: null,
    official_usd: null,
    multiplier: intent.multiplier,
    charge_usd: null,
    first_byte_ms: null,
    duration_ms: null,
    attempts: channels.map((channel) => ({ channel })),
    suspect: channels.length > 1 ? describePaidTwice(channels) : undefined,
  };
}
