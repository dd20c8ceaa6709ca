// The relay platform: the messages dialect, and one list of all models.

import type { Dialect, ModelEntry } from "../dialect.ts";
import { content, formContentRecord } from "./content.ts";
import { messages } from "./messages.ts";
import { fillRecord } from "../listing.ts";

export const relay: Dialect = {
  ...messages,
  sign: (credential) => ["authorization", `Bearer ${credential}`],
  listBody: (models) =>
    JSON.stringify({
      object: "list",
      data: models.map(formRow),
      has_more: false,
      first_id: models[0]?.id ?? null,
      last_id: models.at(-1)?.id ?? null,
      models: models.map(formContentRecord),
    }),
  modelBody: (model) => JSON.stringify(formRow(model)),
  listPath: "/models",
  // Some relays list only one dialect's models if they get that dialect's header.
  ownRequestFields: [],
  listFallbacks: [messages, content],
};

function formRow(model: ModelEntry): Readonly<Record<string, unknown>> {
  const { id } = model;
  const defaults = { display_name: id, created: 0, created_at: "1970-01-01T00:00:00Z", owned_by: "gateway" };
  return fillRecord(model, { id, object: "model", type: "model" }, defaults);
}
