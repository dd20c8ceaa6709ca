// An error of the gateway itself. Each dialect has its own names for the codes.

const STATUS_OF = {
  key_missing: 401,
  key_unknown: 401,
  key_disabled: 401,
  key_expired: 401,
  login_missing: 401,
  wrong_platform: 403,
  plan_inactive: 403,
  credential_refused: 403,
  host_refused: 403,
  origin_refused: 403,
  foreign_client: 403,
  unknown_path: 404,
  method_not_allowed: 405,
  unknown_model: 404,
  bad_request: 400,
  unsupported: 400,
  body_too_large: 413,
  upgrade_required: 426,
  rate_limited: 429,
  limit_spent: 429,
  /** Waiting does not help:
   *  the owner has to add a price, or to change the limits. */
  limit_unenforceable: 403,
  internal: 500,
  upstream_failed: 502,
  unavailable: 503,
  ledger_unwritable: 503,
  upstream_timeout: 504,
  overloaded: 529,
  /** Only logged: the client is gone. */
  client_gone: 499,
} as const;

export type ErrorCode = keyof typeof STATUS_OF;

export interface ErrorDetails {
  /** The path of the field at fault. */
  readonly param?: string | null;
  /** A more specific code, for responses and chat errors. */
  readonly wireCode?: string | null;
  readonly retrySeconds?: number | null;
  /** When the spent limit begins anew, in epoch milliseconds. Null: never. */
  readonly resetsAt?: number | null;
  readonly allow?: readonly string[];
  readonly status?: number;
  readonly cause?: unknown;
}

export class GatewayError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly wireCode: string | null;
  readonly retrySeconds: number | null;
  readonly resetsAt: number | null;
  readonly allow: readonly string[];
  readonly status: number;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, { cause: details.cause });
    this.name = "GatewayError";
    this.code = code;
    this.param = details.param ?? null;
    this.wireCode = details.wireCode ?? null;
    this.retrySeconds = details.retrySeconds ?? null;
    this.resetsAt = details.resetsAt ?? null;
    this.allow = details.allow ?? [];
    this.status = details.status ?? STATUS_OF[code];
  }
}

export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
