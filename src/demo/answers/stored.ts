// Responses that were stored, and what can be asked of them afterwards.

import { answerJson, type Answer } from "./answer.ts";
import { isObject } from "../../lib/json/json.ts";
import { pickText, type Json } from "../json.ts";
import { refuse } from "./refusal.ts";
import { listInput, writeCompaction, writeResponsesUsage } from "./responses.ts";
import type { Turn } from "./turn.ts";

export interface Stored {
  readonly reply: Json;
  readonly body: unknown;
}

/** So many are kept; then the oldest go. */
const MOST_STORED = 1000;

export function keepStored(stored: Map<string, Stored>, one: Stored): void {
  stored.set(pickText(one.reply, "id"), one);
  const [oldest] = stored.keys();
  if (stored.size > MOST_STORED && oldest !== undefined) stored.delete(oldest);
}

export function answerStored(stored: Map<string, Stored>, id: string, what: string | undefined): Answer {
  const found = stored.get(id);
  if (found === undefined) return refuse("responses", 404, `Response with id '${id}' not found.`);
  switch (what ?? "read") {
    case "delete":
      stored.delete(id);
      return answerJson("responses", { id, object: "response", deleted: true });
    case "input_items": {
      const items = listInput(found.body).filter(isObject);
      const named = items.map((item, index) => ({ id: `msg_demo_input_${index}`, ...item }));
      const ends = { first_id: named[0]?.id ?? null, last_id: named.at(-1)?.id ?? null, has_more: false };
      return answerJson("responses", { object: "list", data: named, ...ends });
    }
    case "cancel":
      return answerJson("responses", { ...found.reply, status: "cancelled" });
    default:
      return answerJson("responses", found.reply);
  }
}

/** Only what the user said is kept; the rest is one sealed item. */
export function compact(turn: Turn, body: unknown): Json {
  const said = listInput(body).filter((item) => isObject(item) && item["role"] === "user");
  return {
    id: `resp_demo${turn.serial}`,
    object: "response.compaction",
    created_at: turn.created,
    output: [...said, writeCompaction(turn)],
    usage: writeResponsesUsage(turn),
  };
}
