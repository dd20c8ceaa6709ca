// The text of chat chunks. The parts that are the same for a whole stream are written once: a delta costs one
// concatenation.

import type { BridgeContext } from "../context.ts";
import { type ChatUsage, type FinishReason } from "./finish-reason.ts";
import type { Json } from "../strict-json.ts";
import type { TokenLogprob } from "./chat-answer.ts";

export interface ChunkIdentity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  /** As far as it is known: the final one comes with the end of the answer. */
  readonly tier: string | null;
}

export interface ChunkFrame {
  /** Up to the choices. */
  readonly head: string;
  /** Up to the delta. */
  readonly start: string;
  /** After the delta and its logprobs. */
  readonly end: string;
  /** Closes a chunk that has no delta. */
  readonly close: string;
  readonly logprobs: boolean;
}

export const DONE = "data: [DONE]\n\n";

export function buildChunkFrame(identity: ChunkIdentity, context: BridgeContext): ChunkFrame {
  const { id, created, model, tier } = identity;
  const shared = {
    id,
    object: "chat.completion.chunk",
    created,
    model,
    service_tier: tier,
    system_fingerprint: null,
  };
  const head = `data: ${JSON.stringify(shared).slice(0, -1)},"choices":[`;
  const close = context.includeUsage ? ',"usage":null}\n\n' : "}\n\n";
  return {
    head,
    start: `${head}{"index":0,"delta":`,
    end: `,"finish_reason":null}]${close}`,
    close,
    logprobs: context.logprobs,
  };
}

/** A chunk with this delta, given as JSON text. */
export function writeDelta(frame: ChunkFrame, delta: string): string {
  return frame.logprobs
    ? `${frame.start}${delta},"logprobs":null${frame.end}`
    : frame.start + delta + frame.end;
}

export function writeDeltaWithLogprobs(
  frame: ChunkFrame,
  delta: string,
  content: readonly TokenLogprob[],
): string {
  return `${frame.start}${delta},"logprobs":${JSON.stringify({ content, refusal: null })}${frame.end}`;
}

/** `extras` are written next to the choices. */
export function writeFinish(frame: ChunkFrame, reason: FinishReason, extras: Json): string {
  const logprobs = frame.logprobs ? ',"logprobs":null' : "";
  const more = Object.entries(extras).map(
    ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  return `${frame.start}{}${logprobs},"finish_reason":"${reason}"}]${more.join("")}${frame.close}`;
}

export function writeUsage(frame: ChunkFrame, usage: ChatUsage | null): string {
  return `${frame.head}],"usage":${JSON.stringify(usage)}}\n\n`;
}
