// The state of a stream: what is known of the response, its output items, and which parts of them have been sent. And the
// text of its chunks, whose common parts are written once: a delta costs one concatenation.

import { BoundedMap } from "../../../lib/memory/bounded-map.ts";
import type { BridgeContext } from "../context.ts";
import type { ChatError } from "../errors.ts";
import type { StreamPhase } from "../../common/answer-stream.ts";
import type { Json } from "../../common/strict-json.ts";
import { type ReplyIdentity, readIdentity } from "./completion.ts";
import type { OutputItem, Reply } from "./events.ts";
import type { FinishReason } from "./finish-reason.ts";

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

/** The parts of a chunk that are the same for the whole stream. */
interface ChunkFrame {
  /** Up to the choices. */
  readonly head: string;
  /** Up to the delta. */
  readonly start: string;
  /** After the choices. */
  readonly close: string;
}

export interface StreamState {
  readonly context: BridgeContext;
  phase: StreamPhase;
  refusal: ChatError | null;
  frame: ChunkFrame;
  /** From the first event that names the response: some upstreams change the id later. */
  identity: ReplyIdentity | null;
  /** The chunk with the role has been written. */
  roleSent: boolean;
  textSent: boolean;
  refusalSent: boolean;
  reasoningSent: boolean;
  calls: number;
  /** A message that is not commentary has begun. */
  answerBegun: boolean;
  readonly byId: Map<unknown, ItemState>;
  readonly byIndex: Map<unknown, ItemState>;
  readonly byCallId: Map<string, ItemState>;
  /** Finished items, for a last event that does not repeat them. */
  readonly finished: OutputItem[];
  receivedBytes: number;
}

/** What an upstream invents has a bound. No real response has so many items, nor such ids. */
const MAX_ITEMS = 10_000;
const MAX_ID_LENGTH = 1024;
/** Items are kept of the first part of a stream: of what a response may have that is converted whole. */
const MAX_KEPT_BYTES = 64 * 1024 * 1024;

/** Before the first event. */
const UNKNOWN_REPLY = { id: "", created_at: 0, model: "" };

export function openState(context: BridgeContext): StreamState {
  return {
    context,
    phase: "held",
    refusal: null,
    frame: buildFrame(readIdentity(UNKNOWN_REPLY, context), null, context),
    identity: null,
    roleSent: false,
    textSent: false,
    refusalSent: false,
    reasoningSent: false,
    calls: 0,
    answerBegun: false,
    byId: new BoundedMap(MAX_ITEMS),
    byIndex: new BoundedMap(MAX_ITEMS),
    byCallId: new BoundedMap(MAX_ITEMS),
    finished: [],
    receivedBytes: 0,
  };
}

/** Keeps the id of the first event, and the service tier of the latest one. */
export function noteIdentity(stream: StreamState, reply: Reply): void {
  stream.identity ??= readIdentity(reply, stream.context);
  stream.frame = buildFrame(stream.identity, reply.service_tier, stream.context);
}

/** By id, or by index: some upstreams give an item a new id with each event. */
export function findItem(stream: StreamState, id: unknown, index: unknown): ItemState | undefined {
  return stream.byId.get(id) ?? stream.byIndex.get(index);
}

type ItemStart = Pick<ItemState, "type"> & Partial<Pick<ItemState, "muted" | "before" | "after">>;

export function addItemState(stream: StreamState, draft: ItemStart, id: unknown, index: unknown): ItemState {
  const entry: ItemState = { muted: false, sent: false, part: "", before: "", after: "", ...draft };
  if (typeof id === "string" && id !== "" && id.length <= MAX_ID_LENGTH) stream.byId.set(id, entry);
  if (typeof index === "number") stream.byIndex.set(index, entry);
  return entry;
}

export function noteCall({ byCallId }: StreamState, callId: string, entry: ItemState): void {
  if (callId.length <= MAX_ID_LENGTH) byCallId.set(callId, entry);
}

export function keepFinished({ finished, receivedBytes }: StreamState, item: OutputItem): void {
  if (finished.length < MAX_ITEMS && receivedBytes <= MAX_KEPT_BYTES) finished.push(item);
}

function buildFrame(
  { id, created, model }: ReplyIdentity,
  tier: string | null,
  context: BridgeContext,
): ChunkFrame {
  const object = "chat.completion.chunk";
  const shared = { id, object, created, model, service_tier: tier, system_fingerprint: null };
  const head = `data: ${JSON.stringify(shared).slice(0, -1)},"choices":[`;
  const close = context.includeUsage ? ',"usage":null}\n\n' : "}\n\n";
  return { head, start: `${head}{"index":0,"delta":`, close };
}

/** A chunk with this delta. Both are JSON text. */
export function writeDelta({ frame, context }: StreamState, delta: string, logprobs = "null"): string {
  const more = context.logprobs ? `,"logprobs":${logprobs}` : "";
  return `${frame.start}${delta}${more},"finish_reason":null}]${frame.close}`;
}

/** `extras` are written next to the choices. */
export function writeFinish({ frame, context }: StreamState, reason: FinishReason, extras: Json): string {
  const logprobs = context.logprobs ? ',"logprobs":null' : "";
  const more = Object.entries(extras).map(
    ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  return `${frame.start}{}${logprobs},"finish_reason":"${reason}"}]${more.join("")}${frame.close}`;
}

export function writeUsage({ frame }: StreamState, usage: Json | null): string {
  return `${frame.head}],"usage":${JSON.stringify(usage)}}\n\n`;
}
