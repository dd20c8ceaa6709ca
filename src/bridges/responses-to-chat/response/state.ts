// How far an answer's stream has come: what is known of the response, which output
// items there are, and what of them has been told.

import { buildFrame, type Frame, type Identity } from "./chunks.ts";
import type { BridgeContext } from "../context.ts";
import type { Refusal } from "../errors.ts";
import type { Item, Reply } from "./events.ts";
import { identityOf } from "./completion.ts";
import type { Json } from "../json.ts";

/** `held`: no head has left yet, so that a failure can still be an HTTP error. */
export type Phase = "held" | "open" | "done" | "broken" | "refused";

/** An output item as far as it has come. */
export interface Entry {
  readonly type: string;
  /** Of what it says nothing is told. */
  readonly muted: boolean;
  /** Something of it has been told. */
  told: boolean;
  /** The last part of a reasoning that was told; of a message, its text. */
  part: string;
  /** Before and after the text of a call's input, as JSON. */
  readonly before: string;
  readonly after: string;
}

export interface Stream {
  readonly context: BridgeContext;
  phase: Phase;
  refusal: Refusal | null;
  frame: Frame;
  /** Said by the first event that names the response: some upstreams change the id later. */
  identity: Identity | null;
  /** The role chunk has been written. */
  opened: boolean;
  spoken: boolean;
  refused: boolean;
  reasoned: boolean;
  calls: number;
  /** A message that may answer has begun. */
  answering: boolean;
  readonly byId: Map<unknown, Entry>;
  readonly byIndex: Map<unknown, Entry>;
  readonly byCallId: Map<string, Entry>;
  /** Items as they were when done, for an end that doesn't repeat them. */
  readonly finished: Item[];
}

/** What is known of an answer before it says who it is. */
const UNTOLD = { id: "", created_at: 0, model: "" };

export function openState(context: BridgeContext): Stream {
  return {
    context,
    phase: "held",
    refusal: null,
    frame: buildFrame({ ...identityOf(UNTOLD, context), tier: null }, context),
    identity: null,
    opened: false,
    spoken: false,
    refused: false,
    reasoned: false,
    calls: 0,
    answering: false,
    byId: new Map(),
    byIndex: new Map(),
    byCallId: new Map(),
    finished: [],
  };
}

/** Takes up who answers; from a later event, what was served. */
export function identify(stream: Stream, reply: Reply): void {
  const { context } = stream;
  const first = stream.identity ?? identityOf(reply, context);
  stream.identity = { ...first, tier: reply.service_tier };
  stream.frame = buildFrame(stream.identity, context);
}

/** By id; or by place, since some upstreams give an item a new id with each event. */
export function findEntry(stream: Stream, id: unknown, index: unknown): Entry | undefined {
  return stream.byId.get(id) ?? stream.byIndex.get(index);
}

export function findEventEntry(stream: Stream, event: Json): Entry | undefined {
  return findEntry(stream, event["item_id"], event["output_index"]);
}

type Draft = Pick<Entry, "type"> & Partial<Pick<Entry, "muted" | "before" | "after">>;

export function addEntry(stream: Stream, draft: Draft, id: unknown, index: unknown): Entry {
  const entry: Entry = { muted: false, told: false, part: "", before: "", after: "", ...draft };
  if (typeof id === "string" && id !== "") stream.byId.set(id, entry);
  if (typeof index === "number") stream.byIndex.set(index, entry);
  return entry;
}
