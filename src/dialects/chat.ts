// The chat dialect. No channel speaks it to us today: it is how clients of the responses platform may ask.

import type { Dialect } from "./dialect.ts";
import { openChatMeter } from "./meters/chat.ts";
import { OPENAI_PARTS, formWireError } from "./openai.ts";

export const chat: Dialect = {
  ...OPENAI_PARTS,
  name: "chat",
  /** No `[DONE]` follows: it would make the answer a finished one. */
  errorEvent: (error) => `data: ${JSON.stringify({ error: formWireError(error) })}\n\n`,
  openMeter: openChatMeter,
};
