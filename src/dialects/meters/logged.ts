// The usage of answers that others have kept, in the words of the maker that reported it.

import type { UsageOf } from "../../billing/history/entry.ts";
import { readContentUsage } from "./content.ts";
import { readMessagesUsage } from "./messages.ts";
import { readResponsesUsage } from "./responses.ts";

export const readLoggedUsage: UsageOf = {
  anthropic: readMessagesUsage,
  openai: readResponsesUsage,
  google: readContentUsage,
};
