// The state of a stream: what is known of the response, its output items, and which parts of them have been sent.

import { buildChunkFrame, type ChunkFrame, type ChunkIdentity } from "./chunks.ts";
import type { BridgeContext } from "../context.ts";
import type { ChatError } from "../errors.ts";
import type { OutputItem, Reply } from "./events.ts";
import { readIdentity } from "./completion.ts";
import type { Json } from "../strict-json.ts";

/** `held`: no head has been sent yet, so a failure can still be an HTTP error. */
export type StreamPhase = "held" | "open" | "done" | "broken" | "refused";

/** An output item, as far as it has come. */
export interface ItemState {
  readonly type: string;
  /** Nothing of this item is sent. */
  readonly muted: boolean;
  /** Some of it has been sent. */
  sent: boolean;
  /** Reasoning: the last part that was sent. Message: "text" once text was sent. */
  part: string;
  /** The JSON before and after a piece of a call's input. */
  readonly before: string;
  readonly after: string;
}

export interface StreamState {
  readonly context: BridgeContext;
  phase: StreamPhase;
  refusal: ChatError | null;
  frame: ChunkFrame;
  /** From the first event that names the response: some upstreams change the id later. */
  identity: ChunkIdentity | null;
  /** The chunk with the role has been written. */
  roleSent: boolean;
  textSent: boolean;
  refusalSent: boolean;
  reasoningSent: boolean;
  calls: number;
  /** A message that is no commentary has begun. */
  answerBegun: boolean;
  readonly byId: Map<unknown, ItemState>;
  readonly byIndex: Map<unknown, ItemState>;
  readonly byCallId: Map<string, ItemState>;
  /** Finished items, for a last event that does not repeat them. */
  readonly finished: OutputItem[];
}

/** Before the first event. */
const UNKNOWN_REPLY = { id: "", created_at: 0, model: "" };

export function openState(context: BridgeContext): StreamState {
  return {
    context,
    phase: "held",
    refusal: null,
    frame: buildChunkFrame({ ...readIdentity(UNKNOWN_REPLY, context), tier: null }, context),
    identity: null,
    roleSent: false,
    textSent: false,
    refusalSent: false,
    reasoningSent: false,
    calls: 0,
    answerBegun: false,
    byId: new Map(),
    byIndex: new Map(),
    byCallId: new Map(),
    finished: [],
  };
}

/** Keeps the id of the first event, and the service tier of the latest one. */
export function noteIdentity(stream: StreamState, reply: Reply): void {
  const { context } = stream;
  const first = stream.identity ?? readIdentity(reply, context);
  stream.identity = { ...first, tier: reply.service_tier };
  stream.frame = buildChunkFrame(stream.identity, context);
}

/** By id, or by index: some upstreams give an item a new id with each event. */
export function findItem(stream: StreamState, id: unknown, index: unknown): ItemState | undefined {
  return stream.byId.get(id) ?? stream.byIndex.get(index);
}

export function findEventItem(stream: StreamState, event: Json): ItemState | undefined {
  return findItem(stream, event["item_id"], event["output_index"]);
}

type ItemStart = Pick<ItemState, "type"> & Partial<Pick<ItemState, "muted" | "before" | "after">>;

export function addItemState(stream: StreamState, draft: ItemStart, id: unknown, index: unknown): ItemState {
  const entry: ItemState = { muted: false, sent: false, part: "", before: "", after: "", ...draft };
  if (typeof id === "string" && id !== "") stream.byId.set(id, entry);
  if (typeof index === "number") stream.byIndex.set(index, entry);
  return entry;
}
