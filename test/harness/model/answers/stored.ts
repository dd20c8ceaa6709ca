// Keeps responses that clients asked to store, and answers the requests about them.

import { answerJson, type Answer } from "./answer.ts";
import { BoundedMap } from "../../../../src/lib/memory/bounded-map.ts";
import { isObject } from "../../../../src/lib/json/json.ts";
import type { Json } from "../json.ts";
import { answerError } from "./errors.ts";
import { listInput, writeCompaction, writeResponsesUsage } from "./responses.ts";
import type { Completion } from "./completion.ts";

export interface StoredResponse {
  readonly reply: Json;
  readonly body: unknown;
}

export type StoredResponses = Map<string, StoredResponse>;

const MAX_STORED = 1000;

export function createStore(): StoredResponses {
  return new BoundedMap(MAX_STORED);
}

export function answerStored(stored: StoredResponses, id: string, what: string | undefined): Answer {
  const found = stored.get(id);
  if (found === undefined) return answerError("responses", 404, `Response with id '${id}' not found.`);
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

/** Keeps only the user's messages. Everything else becomes one sealed item. */
export function compact(completion: Completion, body: unknown): Json {
  const said = listInput(body).filter((item) => isObject(item) && item["role"] === "user");
  return {
    id: `resp_demo${completion.serial}`,
    object: "response.compaction",
    created_at: completion.created,
    output: [...said, writeCompaction(completion)],
    usage: writeResponsesUsage(completion),
  };
}
