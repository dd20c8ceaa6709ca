// The chat dialect. Clients of the responses platform may use it, and channels that speak Chat Completions.

import type { Dialect } from "../dialect.ts";
import { openChatMeter } from "../meters/chat.ts";
import { OPENAI_PARTS, formWireError } from "./openai.ts";
import { CHAT_LAYOUT } from "../prompt/layouts.ts";

export const chat: Dialect = {
  ...OPENAI_PARTS,
  name: "chat",
  /** Without `[DONE]`, which would mark the answer as complete. */
  errorEvent: (error) => `data: ${JSON.stringify({ error: formWireError(error) })}\n\n`,
  openMeter: openChatMeter,
  // The bridge puts the cap into the request that it makes.
  capNames: ["max_tokens", "max_completion_tokens", "max_output_tokens"],
  clientTools: { namedBy: "type", names: /^(?:function|custom)$/ },
  promptLayout: CHAT_LAYOUT,
};
