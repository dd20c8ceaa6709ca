// The journal names the requests that went to an upstream and have no line yet: after
// a crash, each gets one. It also notes the ledger's end: a ledger that ends earlier
// has lost lines. Only a power cut may take unsynced lines.

import { z } from "zod";

import { parseJson } from "../../lib/json/json.ts";
import { ForeignFile, readOwn, removeOwn, requireOwn } from "../../lib/files/own-file.ts";
import { readBootId } from "../../lib/files/platform.ts";
import { describePaidTwice } from "../assess.ts";
import { hashLine, type Intent, intentSchema, type LineDraft } from "./line.ts";
import type { Position } from "./rotation.ts";

/** The last of `channels` is the current one. */
export interface OpenRequest {
  readonly intent: Intent;
  readonly channels: readonly string[];
}

export const positionSchema = z.lazy(() => z.object({ offset: z.int().nonnegative(), prev: z.string() }));

const recordSchema = z.lazy(() =>
  z.union([
    z.object({
      from: positionSchema,
      /** Version 0.1 did not note these two. */
      synced: positionSchema.nullable().optional(),
      boot: z.string().nullable().optional(),
      failed: z.literal(true).optional(),
      /** The journal also names corrections. In version 0.1, it did not. */
      corrections: z.literal(true).optional(),
    }),
    z.object({
      end: positionSchema,
      synced: positionSchema.optional(),
      failed: z.literal(true).optional(),
    }),
    z.object({ open: intentSchema, channels: z.array(z.string()).optional() }),
    z.object({
      id: z.string(),
      channel: z.string(),
      /** This channel replaces the one in `open`. */
      first: z.literal(true).optional(),
    }),
    z.object({ discard: z.string() }),
    z.object({ unopened: z.string() }),
  ]),
);

type JournalRecord = z.infer<typeof recordSchema>;
export type EndRecord = Extract<JournalRecord, { end: Position }>;

/** A journal begins with the record of `encodeStart`. In the ledger, the lines
 *  of all requests that the journal names come after that record's position. */
export function encode(record: JournalRecord): string {
  return JSON.stringify(record);
}

export function encodeStart({ end, synced, boot, failed }: NotedEnd): string {
  return encode({ from: end, synced, boot, failed, corrections: true });
}

export type JournalReading = ReturnType<typeof readJournal>;

const RECORD_BEGINS = ['{"from":', '{"end":', '{"open":', '{"id":', '{"discard":', '{"unopened":'];

/** Throws for a file of the user that has the journal's name.
 *  After a power cut, a journal may be zeros or a part of a record. */
export function requireJournal(path: string): void {
  const text = readOwn(path) ?? "";
  const isJournal =
    text.startsWith("\0") || RECORD_BEGINS.some((begin) => text.startsWith(begin) || begin.startsWith(text));
  if (!isJournal) throw new ForeignFile(`${path} is not the journal of a ledger: move it away`);
}

/** A torn record is ignored: no request is sent before its record is complete. */
export function readJournal(path: string) {
  const open = new Map<string, OpenRequest>();
  const named = new Set<string>();
  /** Where the search for lines begins. Null: at the ledger's beginning. */
  let from: Position | null = null;
  let noted: NotedEnd | null = null;
  let namesCorrections = false;
  for (const text of (readOwn(path) ?? "").split("\n")) {
    const record = recordSchema.safeParse(parseJson(text)).data;
    if (record === undefined) continue;
    noted = moveEnd(noted, record);
    if ("from" in record) {
      from = record.from;
      namesCorrections = record.corrections === true;
    } else if ("open" in record) {
      const channels = record.channels ?? [record.open.channel];
      open.set(record.open.id, { intent: record.open, channels });
      named.add(record.open.id);
    } else if ("unopened" in record) named.add(record.unopened);
    else if ("discard" in record) open.delete(record.discard);
    else if ("id" in record) addAttempt(open, record.id, record.channel, record.first === true);
  }
  return { from, open, named, namesCorrections, noted };
}

function moveEnd(noted: NotedEnd | null, record: JournalRecord): NotedEnd | null {
  if ("from" in record)
    return {
      end: record.from,
      synced: record.synced ?? null,
      boot: record.boot ?? null,
      failed: record.failed,
    };
  if (!("end" in record) || noted === null) return noted;
  const { end, synced = noted.synced, failed = noted.failed } = record;
  return { ...noted, end, synced, failed };
}

/** Whether the journal names this line, or does not have to.
 *  It never names marks of a start, and in version 0.1 it named no corrections. */
export function isNamed(
  { named, namesCorrections }: JournalReading,
  { id, corrects, mark, accepts }: Readonly<Record<string, unknown>>,
): boolean {
  if (corrects !== undefined && !namesCorrections) return true;
  if (mark !== undefined && accepts === undefined) return true;
  return typeof id !== "string" || named.has(id);
}

export function addAttempt(
  open: Map<string, OpenRequest>,
  id: string,
  channel: string,
  isFirst: boolean,
): boolean {
  const request = open.get(id);
  if (request === undefined) return false;
  const before = isFirst ? [] : request.channels;
  open.set(id, { intent: request.intent, channels: [...before, channel] });
  return true;
}

const NOT_COMPUTED = "the gateway failed to compute the amounts";

/** The line has no amounts. Limits count the reservation instead. */
export function draftUnknown(
  request: OpenRequest,
  { status, outcome, first_byte_ms, duration_ms, attempts, raw_usage }: UnknownEnd,
): LineDraft {
  const end = { status, outcome, first_byte_ms, duration_ms, attempts, raw_usage };
  return { ...draftInterrupted(request), ...end, suspect: NOT_COMPUTED };
}

type UnknownEnd = Pick<
  LineDraft,
  "status" | "outcome" | "first_byte_ms" | "duration_ms" | "attempts" | "raw_usage"
>;

/** The gateway died during this request, which may cost something. */
export function draftInterrupted({ intent, channels }: OpenRequest): LineDraft {
  return {
    ...intent,
    channel: channels.at(-1) ?? intent.channel,
    status: null,
    outcome: "interrupted",
    basis: "unknown",
    usage: {},
    raw_usage: null,
    prices: null,
    price_source: null,
    tier: null,
    official_usd: null,
    charge_usd: null,
    first_byte_ms: null,
    duration_ms: null,
    attempts: channels.map((channel) => ({ channel })),
    suspect: channels.length > 1 ? describePaidTwice(channels) : undefined,
  };
}

export interface NotedEnd {
  readonly end: Position;
  /** After the last line that is certainly on the disk. Null: unknown. */
  readonly synced: Position | null;
  /** The machine's boot id when this was noted. Null: unknown. */
  readonly boot: string | null;
  /** A sync has failed since the machine started. */
  readonly failed?: true | undefined;
}

const END_STATES = ["unexplained", "taken by a power cut", "whole"] as const;
export type EndState = (typeof END_STATES)[number];

/** `isThere`: the ledger has the line before the position, or the line after it. */
export function judgeEnd(noted: NotedEnd, isThere: (position: Position) => boolean): EndState {
  const { end, synced } = noted;
  if (synced !== null && !isThere(synced)) return "unexplained";
  if (isThere(end)) return "whole";
  return isFromThisStart(noted) ? "unexplained" : "taken by a power cut";
}

export function judgeEnds(ends: readonly NotedEnd[], isThere: (position: Position) => boolean): EndState {
  const states = ends.map((noted) => judgeEnd(noted, isThere));
  return END_STATES.find((state) => states.includes(state)) ?? "whole";
}

/** If the machine was not restarted since, no power cut explains missing lines. */
export function isFromThisStart({ boot }: NotedEnd): boolean {
  return boot !== null && boot === readBootId();
}

/** Files of versions 0.1 and 0.2 next to the ledger. */
const OLD_FILES = [".end", ".sums", ".hours"];

const oldSchema = z.lazy(() =>
  z.object({ end: positionSchema, synced: positionSchema.nullable(), boot: z.string().nullable() }),
);

/** Version 0.2's file has two lines: the hash of the second, and the noted end. */
export function readOldEnd(path: string): NotedEnd | null {
  try {
    const [check, body = ""] = (readOwn(`${path}.end`) ?? "").split("\n");
    return hashLine(body) === check ? (oldSchema.safeParse(parseJson(body)).data ?? null) : null;
  } catch {
    return null;
  }
}

export function removeOldFiles(path: string): string[] {
  return OLD_FILES.filter((name) => {
    try {
      if (requireOwn(path + name) === null) return false;
      removeOwn(path + name);
      return true;
    } catch {
      // The file is not the gateway's.
      return false;
    }
  });
}
