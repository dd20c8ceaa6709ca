// How far an answer's stream has come: what is known of the response, which output
// items there are, and what of them has been told.

import { buildChunkFrame, type ChunkFrame, type ChunkIdentity } from "./chunks.ts";
import type { BridgeContext } from "../context.ts";
import type { ChatError } from "../errors.ts";
import type { OutputItem, Reply } from "./events.ts";
import { readIdentity } from "./completion.ts";
import type { Json } from "../strict-json.ts";

/** `held`: no head has left yet, so that a failure can still be an HTTP error. */
export type StreamPhase = "held" | "open" | "done" | "broken" | "refused";

/** An output item as far as it has come. */
export interface ItemState {
  readonly type: string;
  /** Of what it says nothing is told. */
  readonly muted: boolean;
  /** Something of it has been told. */
  sent: boolean;
  /** The last part of a reasoning that was told; of a message, its text. */
  part: string;
  /** Before and after the text of a call's input, as JSON. */
  readonly before: string;
  readonly after: string;
}

export interface StreamState {
  readonly context: BridgeContext;
  phase: StreamPhase;
  refusal: ChatError | null;
  frame: ChunkFrame;
  /** Said by the first event that names the response: some upstreams change the id later. */
  identity: ChunkIdentity | null;
  /** The role chunk has been written. */
  roleSent: boolean;
  textSent: boolean;
  refusalSent: boolean;
  reasoningSent: boolean;
  calls: number;
  /** A message that may answer has begun. */
  answerBegun: boolean;
  readonly byId: Map<unknown, ItemState>;
  readonly byIndex: Map<unknown, ItemState>;
  readonly byCallId: Map<string, ItemState>;
  /** Items as they were when done, for an end that doesn't repeat them. */
  readonly finished: OutputItem[];
}

/** What is known of an answer before it says who it is. */
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

/** Takes up who answers; from a later event, what was served. */
export function noteIdentity(stream: StreamState, reply: Reply): void {
  const { context } = stream;
  const first = stream.identity ?? readIdentity(reply, context);
  stream.identity = { ...first, tier: reply.service_tier };
  stream.frame = buildChunkFrame(stream.identity, context);
}

/** By id; or by place, since some upstreams give an item a new id with each event. */
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
