// Reads the usage that agents log, in the words of each provider.

import type { UsageOf } from "../../billing/history/entry.ts";
import { ContentReader } from "./content.ts";
import { MessagesReader } from "./messages.ts";
import type { UsageReader, UsageReport } from "./meter.ts";
import { ResponsesReader } from "./responses.ts";

export const readLoggedUsage: UsageOf = {
  anthropic: (usage) => report(new MessagesReader(), { type: "message", usage }),
  openai: (usage) => report(new ResponsesReader(), { object: "response", usage }),
  google: (usageMetadata) => report(new ContentReader(), { usageMetadata }),
};

function report(reader: UsageReader, answer: unknown): UsageReport {
  reader.learn(answer);
  return reader.report();
}
