// The messages dialect.

import type { GatewayError } from "../../lib/errors.ts";
import type { Dialect, ModelEntry } from "../dialect.ts";
import { ERROR_NAMES } from "../errors.ts";
import { fillRecord } from "../listing.ts";
import { openMessagesMeter } from "../meters/messages.ts";
import { FIVE_MINUTES, type Layout, listMembers } from "../prompt/layouts.ts";

/** https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
 * The minimum for caching differs by model: this is the largest. */
const LAYOUT: Layout = {
  members: listMembers({
    tools: "tools",
    system: "system",
    messages: "messages",
    tool_choice: "setting",
    thinking: "setting",
    output_config: "setting",
    output_format: "setting",
    mcp_servers: "setting",
    container: "setting",
    service_tier: "tier",
    speed: "tier",
    context_management: "edits",
    thread: "thread",
    cache_control: "mark",
  }),
  byBlock: true,
  rules: { ...FIVE_MINUTES, marked: true, blockTokens: 1, minimumTokens: () => 4096 },
};

export const messages: Dialect = {
  name: "messages",
  idField: "request-id",
  sign: (credential) => ["x-api-key", credential],
  errorBody: formError,
  // Clients ignore an event without an `event:` line.
  errorEvent: (error, requestId) => `event: error\ndata: ${formError(error, requestId)}\n\n`,
  // The error continues the broken event. If that event ended first, clients would stop at it.
  eventCloser: "\n",
  resetAfterErrorEvent: false,
  openMeter: openMessagesMeter,
  capNames: ["max_tokens"],
  promptLayout: LAYOUT,
  listBody(models) {
    const [first_id = null, last_id = null] = [models[0]?.id, models.at(-1)?.id];
    return JSON.stringify({ data: models.map(formRecord), has_more: false, first_id, last_id });
  },
  modelBody: (model) => JSON.stringify(formRecord(model)),
  countBody: (tokens) => JSON.stringify({ input_tokens: tokens }),
  listPath: "/v1/models",
  ownRequestFields: [["anthropic-version", "2023-06-01"]],
};

function formError(error: GatewayError, requestId: string): string {
  const type = ERROR_NAMES[error.code].messages;
  return JSON.stringify({ type: "error", error: { type, message: error.message }, request_id: requestId });
}

const DATE_UNKNOWN = "1970-01-01T00:00:00Z";

function formRecord(model: ModelEntry): Readonly<Record<string, unknown>> {
  const { id } = model;
  return fillRecord(model, { id, type: "model" }, { display_name: id, created_at: DATE_UNKNOWN });
}
