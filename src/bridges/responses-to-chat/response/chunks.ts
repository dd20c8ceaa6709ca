// The text of chat chunks. Everything that stays the same for a whole stream is
// written once: a delta costs one concatenation.

import type { BridgeContext } from "../context.ts";
import { type ChatUsage, type FinishReason } from "./finish-reason.ts";
import type { Json } from "../json.ts";
import type { TokenLogprob } from "./tool-call.ts";

export interface Identity {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  /** What is known of it: the real one comes with the end of the answer. */
  readonly tier: string | null;
}

export interface Frame {
  /** Up to the choices. */
  readonly head: string;
  /** Up to the delta. */
  readonly start: string;
  /** From behind the delta, and its logprobs if any, on. */
  readonly end: string;
  /** What closes a chunk that is no delta. */
  readonly close: string;
  readonly logprobs: boolean;
}

export const DONE = "data: [DONE]\n\n";

export function buildFrame(identity: Identity, context: BridgeContext): Frame {
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

/** A chunk with this delta, which is JSON text. */
export function writeDelta(frame: Frame, delta: string): string {
  return frame.logprobs
    ? `${frame.start}${delta},"logprobs":null${frame.end}`
    : frame.start + delta + frame.end;
}

export function writeLoggedDelta(frame: Frame, delta: string, content: readonly TokenLogprob[]): string {
  return `${frame.start}${delta},"logprobs":${JSON.stringify({ content, refusal: null })}${frame.end}`;
}

/** `extras` stand beside the choices. */
export function writeFinish(frame: Frame, reason: FinishReason, extras: Json): string {
  const logprobs = frame.logprobs ? ',"logprobs":null' : "";
  const more = Object.entries(extras).map(
    ([name, value]) => `,${JSON.stringify(name)}:${JSON.stringify(value)}`,
  );
  return `${frame.start}{}${logprobs},"finish_reason":"${reason}"}]${more.join("")}${frame.close}`;
}

export function writeUsage(frame: Frame, usage: ChatUsage | null): string {
  return `${frame.head}],"usage":${JSON.stringify(usage)}}\n\n`;
}
