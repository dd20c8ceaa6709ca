// The content dialect.

import type { GatewayError } from "../../lib/errors.ts";
import type { Dialect, ModelEntry } from "../dialect.ts";
import { ERROR_NAMES } from "../errors.ts";
import { fillRecord } from "../listing.ts";
import { openContentMeter } from "../meters/content.ts";
import { FIVE_MINUTES, type Layout, listMembers } from "../prompt/layouts.ts";

/** https://ai.google.dev/gemini-api/docs/caching.
 *  No lifetime is published. */
const LAYOUT: Layout = {
  members: listMembers({
    tools: "tools",
    systemInstruction: "system",
    system_instruction: "system",
    contents: "messages",
    toolConfig: "setting",
    tool_config: "setting",
    cachedContent: "named",
    cached_content: "named",
    serviceTier: "tier",
    service_tier: "tier",
  }),
  byBlock: false,
  rules: {
    ...FIVE_MINUTES,
    marked: false,
    blockTokens: 1,
    minimumTokens: (model) => (model.includes("2.5") ? 2048 : 4096),
  },
};

export const content: Dialect = {
  name: "content",
  // `vendor` in the config changes only the header of clients, not this one.
  sign: (credential) => ["x-goog-api-key", credential],
  errorBody: formError,
  errorEvent(error, requestId, at = {}) {
    const body = formError(error, requestId);
    if (at.form !== "json-array") return `data: ${body}\r\n\r\n`;
    return `${at.begun === true ? ",\r\n" : "["}${body}\r\n]`;
  },
  eventCloser: "\r\n\r\n",
  // Clients read an error event as a chunk, and a clean end as success.
  resetAfterErrorEvent: true,
  openMeter: openContentMeter,
  capNames: ["generationConfig", "generation_config"],
  promptLayout: LAYOUT,
  listBody: (models) => JSON.stringify({ models: models.map(formContentRecord) }),
  modelBody: (model) => JSON.stringify(formContentRecord(model)),
  countBody: (tokens) => JSON.stringify({ totalTokens: tokens }),
  listPath: "/v1beta/models",
};

const RPC = "type.googleapis.com/google.rpc";

function formError(error: GatewayError, requestId: string): string {
  const metadata = { request_id: requestId, ...(error.param === null ? {} : { param: error.param }) };
  const details: unknown[] = [
    { "@type": `${RPC}.ErrorInfo`, reason: error.code.toUpperCase(), domain: "gateway", metadata },
  ];
  if (error.retrySeconds !== null) {
    details.push({ "@type": `${RPC}.RetryInfo`, retryDelay: `${Math.ceil(error.retrySeconds)}s` });
  }
  const { status, message } = error;
  return JSON.stringify({
    error: { code: status, message, status: ERROR_NAMES[error.code].content, details },
  });
}

export function formContentRecord(model: ModelEntry): Readonly<Record<string, unknown>> {
  const methods = ["generateContent", "countTokens"];
  return fillRecord(
    model,
    { name: `models/${model.id}` },
    { displayName: model.id, supportedGenerationMethods: methods },
  );
}
