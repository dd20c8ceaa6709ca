// What the way back must know of the request: how the answer is to be told, and
// by which names the client knows what the upstream may complain about.

export type ItemKind = "message" | "function" | "custom" | "output";

/** Where an input item came from: `messages[3]`, `messages[3].tool_calls[0]`. */
export interface ItemOrigin {
  readonly path: string;
  readonly kind: ItemKind;
}

/** Who asked, and when: for answers that do not say who they are. */
export interface RequestStamp {
  readonly id: string;
  /** Milliseconds. */
  readonly time: number;
}

export interface BridgeContext {
  readonly stamp: RequestStamp;
  /** As the client named it. */
  readonly model: string;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** `functions` instead of `tools`: the answer bears `function_call`, and at most one. */
  readonly legacy: boolean;
  /** `tool_choice` names one tool: the native endpoint then finishes with `stop`. */
  readonly forced: boolean;
  /** The answer is to be JSON: a second message item would make it invalid. */
  readonly json: boolean;
  readonly logprobs: boolean;
  readonly origins: readonly ItemOrigin[];
  readonly toolKinds: readonly ("function" | "custom")[];
  /** The field that `max_output_tokens` came from. */
  readonly maxTokensField: "max_tokens" | "max_completion_tokens";
}
