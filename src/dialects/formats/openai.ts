// What responses and chat share.

import type { GatewayError } from "../../lib/errors.ts";
import type { Field } from "../../lib/http/fields.ts";
import { isObject } from "../../lib/json/json.ts";
import type { Dialect, ModelEntry } from "../dialect.ts";
import { ERROR_NAMES } from "../errors.ts";
import { fillRecord } from "../listing.ts";
import { MINUTE_MS } from "../prompt/layouts.ts";

export interface WireError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string | null;
  /** Seconds since 1970. Codex shows it as a time of day. */
  readonly resets_at?: number;
}

export function formWireError({ code: name, message, param, wireCode, resetsAt }: GatewayError): WireError {
  const [type, code] = ERROR_NAMES[name].openai;
  const error = { message, type, param, code: wireCode ?? code };
  return resetsAt === null ? error : { ...error, resets_at: Math.ceil(resetsAt / 1000) };
}

const MAX_REASON_LENGTH = 500;

/** Only this header tells Codex why a limit is spent. */
export function reasonFields({ code, message }: GatewayError): Field[] {
  if (code !== "limit_spent") return [];
  const reason = message
    .replace(/\.$/, "")
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .slice(0, MAX_REASON_LENGTH);
  return [["x-codex-promo-message", reason]];
}

type SharedParts = Omit<Dialect, "name" | "errorEvent" | "openMeter" | "capNames" | "promptLayout">;

export const OPENAI_PARTS: SharedParts = {
  sign: (credential) => ["authorization", `Bearer ${credential}`],
  errorBody: (error) => JSON.stringify({ error: formWireError(error) }),
  reasonFields,
  eventCloser: "\n\n",
  resetAfterErrorEvent: false,
  listBody(models, query) {
    const list = { object: "list", data: models.map(formRecord) };
    return JSON.stringify(query.has("client_version") ? { ...list, models: pickCodexRecords(models) } : list);
  },
  modelBody: (model) => JSON.stringify(formRecord(model)),
  countBody: (tokens) => JSON.stringify({ object: "response.input_tokens", input_tokens: tokens }),
  listPath: "/v1/models",
};

function formRecord(model: ModelEntry): Readonly<Record<string, unknown>> {
  return fillRecord(model, { id: model.id, object: "model" }, { created: 0, owned_by: "gateway" });
}

/** Codex needs the instructions that only an upstream has. */
function pickCodexRecords(models: readonly ModelEntry[]): unknown[] {
  return models.flatMap(({ raw }) =>
    isObject(raw) && "slug" in raw && "base_instructions" in raw ? [raw] : [],
  );
}

/** https://platform.openai.com/docs/guides/prompt-caching. Prompts are kept
 * for five to ten minutes, or for half an hour if the upstream reports cache writes. */
export const OPENAI_CACHE = {
  byBlock: false,
  rules: {
    marked: false,
    blockTokens: 128,
    minimumTokens: () => 1024,
    lifetimeMs: 5 * MINUTE_MS,
    reportedLifetimeMs: 30 * MINUTE_MS,
  },
} as const;

export const CACHED_MEMBERS = {
  tools: "tools",
  tool_choice: "setting",
  parallel_tool_calls: "setting",
  prompt_cache_key: "setting",
  service_tier: "tier",
  prompt_cache_retention: "lifetime",
  prompt_cache_options: "lifetime",
} as const;
