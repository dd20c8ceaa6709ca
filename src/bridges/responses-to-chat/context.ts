// What converting the response needs from the request: the shape of the answer, and the client's names for the fields
// that the upstream may complain about.

import type { RequestStamp } from "../common/answer-stream.ts";

export type ItemKind = "message" | "function" | "custom" | "output";

/** Where an input item came from: `messages[3]`, `messages[3].tool_calls[0]`. */
export interface ItemOrigin {
  readonly path: string;
  readonly kind: ItemKind;
}

export interface BridgeContext {
  readonly stamp: RequestStamp;
  /** As the client named it. */
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** The client sent `functions` instead of `tools`: the answer has one `function_call` at most. */
  readonly legacy: boolean;
  /** `tool_choice` names one tool. The native endpoint then finishes with `stop`. */
  readonly forced: boolean;
  /** The client wants JSON. A second message item would make it invalid. */
  readonly json: boolean;
  readonly logprobs: boolean;
  readonly origins: readonly ItemOrigin[];
  readonly toolKinds: readonly ("function" | "custom")[];
  /** The client's field that became `max_output_tokens`. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
}
