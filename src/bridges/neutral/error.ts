// Writes an upstream's failure for a client. Agents react to exact words.

import type { DialectName } from "../../dialects/dialect.ts";
import { type ErrorKind, findError, kindOfName } from "../../dialects/upstream-errors.ts";
import { type ErrorCode, GatewayError } from "../../lib/errors.ts";
import { getField, isObject, parseJson } from "../../lib/json/json.ts";

export interface UpstreamError {
  readonly kind: ErrorKind;
  readonly status: number;
  readonly message: string;
  readonly code: string | null;
  readonly param: string | null;
  /** Null: the upstream does not say. */
  readonly tokens: { readonly used: number; readonly most: number } | null;
}

/** https://github.com/Menci/Floway has the error texts of many servers.
 *  The first match counts. */
const WORDS: readonly (readonly [RegExp, ErrorKind])[] = [
  [/tokens? \(\d+ in the messages, \d+ in the completion\)|requested \d+ output tokens/i, "output_overflow"],
  [/prompt (?:is )?too long|input is too long|maximum context length/i, "overflow"],
  [/exceeds? the (?:available )?context (?:window|size)|exceeds max context window/i, "overflow"],
  [/context the overflows|ContextWindowExceeded|exceeds the maximum number of tokens/i, "overflow"],
  [
    /invalid [`'"]?signature|encrypted content.{0,40}(?:could not be|invalid)|invalid_encrypted/i,
    "signature",
  ],
];

const TOKENS: readonly RegExp[] = [
  /(?<used>\d+) tokens? (?:>|exceeds max context window of) (?<most>\d+)/i,
  /\((?<used>\d+)\) exceeds the maximum number of tokens allowed \((?<most>\d+)\)/i,
  /maximum context length is (?<most>\d+)\D+(?<used>\d+) tokens/i,
  /\((?<used>\d+) tokens\) exceeds the available context size \((?<most>\d+)/i,
];

const MAX_SHOWN_CHARACTERS = 2000;

export function readUpstreamError(status: number, body: unknown): UpstreamError {
  const value = typeof body === "string" ? parseJson(body) : body;
  const outer: unknown = Array.isArray(value) ? value[0] : value;
  const error = findError(outer) ?? outer;
  const text = readMessage(error) || readMessage(outer) || (typeof body === "string" ? body.trim() : "");
  const message = text.slice(0, MAX_SHOWN_CHARACTERS) || "The upstream failed without saying why.";
  const kind = chooseKind(status, error, message);
  const [code, param] = [getField(error, "code"), getField(error, "param")];
  return {
    kind,
    status: chooseStatus(kind, status),
    message,
    code: typeof code === "string" ? code.slice(0, MAX_SHOWN_CHARACTERS) : null,
    param: typeof param === "string" ? param.slice(0, MAX_SHOWN_CHARACTERS) : null,
    tokens: readTokens(error, message),
  };
}

export function blameAnswer(message: string, status = 502): UpstreamError {
  return { kind: "server", status, message, code: null, param: null, tokens: null };
}

/** An unknown reason may be anything but a normal end. */
export function blameEnd(reason: unknown): UpstreamError {
  const word = (typeof reason === "string" ? reason : "none").slice(0, 40).replaceAll(/\W/g, "_");
  return blameAnswer(`The upstream ended its answer for an unknown reason: ${word}.`);
}

function readMessage(value: unknown): string {
  if (typeof value === "string") return value;
  const inside = getField(getField(value, "base_resp"), "status_msg");
  const found = [getField(value, "message"), getField(value, "detail"), getField(value, "error"), inside];
  return found.find((text): text is string => typeof text === "string") ?? "";
}

function chooseKind(status: number, error: unknown, message: string): ErrorKind {
  for (const name of [getField(error, "code"), getField(error, "type"), getField(error, "status")]) {
    const kind = kindOfName(name);
    // `refused` says less than the message, and `server` less than a status like 400.
    const isVague = kind === "refused" || (kind === "server" && status >= 400 && status < 500);
    if (kind !== undefined && !isVague) return kind;
  }
  const said = WORDS.find(([pattern]) => pattern.test(message))?.[1];
  return said ?? kindOf(readCode(error) ?? (status < 400 ? (isRefused(error) ? 400 : 500) : status));
}

/** Google writes the HTTP status as the code of an error. */
function readCode(error: unknown): number | null {
  const code = getField(error, "code");
  return typeof code === "number" && code >= 400 && code < 600 ? code : null;
}

function isRefused(error: unknown): boolean {
  return ["code", "type"].some((name) => kindOfName(getField(error, name)) === "refused");
}

function kindOf(status: number): ErrorKind {
  if (status === 429) return "rate";
  if (status === 503 || status === 529) return "overloaded";
  if (status >= 500) return "server";
  return status === 404 ? "unknown_model" : "refused";
}

const STATUSES: Readonly<Partial<Record<ErrorKind, number>>> = {
  overflow: 400,
  output_overflow: 400,
  signature: 400,
  rate: 429,
  quota: 503,
  unknown_model: 404,
};

function chooseStatus(kind: ErrorKind, status: number): number {
  const fixed = STATUSES[kind];
  if (fixed !== undefined) return fixed;
  if (kind === "refused") return status >= 400 && status < 500 ? status : 400;
  return status >= 500 ? status : kind === "overloaded" ? 529 : 502;
}

function readTokens(error: unknown, message: string): UpstreamError["tokens"] {
  const [used, most] = [getField(error, "n_prompt_tokens"), getField(error, "n_ctx")];
  if (typeof used === "number" && typeof most === "number") return { used, most };
  for (const pattern of TOKENS) {
    const groups = pattern.exec(message)?.groups;
    if (groups !== undefined) return { used: Number(groups["used"]), most: Number(groups["most"]) };
  }
  return null;
}

const ERROR_CODES: Readonly<Record<ErrorKind, ErrorCode>> = {
  overflow: "bad_request",
  output_overflow: "bad_request",
  signature: "bad_request",
  rate: "rate_limited",
  overloaded: "overloaded",
  quota: "unavailable",
  unknown_model: "unknown_model",
  refused: "bad_request",
  server: "upstream_failed",
};

/** The field that has a client's conversation. */
export const PROMPTS: Readonly<Record<DialectName, string>> = {
  messages: "messages",
  responses: "input",
  chat: "messages",
  content: "contents",
};

export function toClientError(failure: UpstreamError, client: DialectName): GatewayError {
  const { kind } = failure;
  const isOverflow = kind === "overflow" || kind === "output_overflow";
  // A quota gets no code: it is the quota of the gateway's owner, not of the client.
  const wireCode = isOverflow ? "context_length_exceeded" : kind === "quota" ? null : failure.code;
  return new GatewayError(ERROR_CODES[kind], (EXPLAIN[client] ?? explain)(failure), {
    status: failure.status,
    wireCode,
    param: isOverflow ? PROMPTS[client] : failure.param,
  });
}

/** `translate` returns null if the client's dialect has no such field. */
export function nameFields(
  failure: UpstreamError,
  translate: (path: string) => string | null,
): UpstreamError {
  const message = failure.message.replaceAll(QUOTED_PATH, (found, path: string) => {
    const name = translate(path);
    return name === null ? found : `'${name}'`;
  });
  const named = message.replaceAll(PLACE, (found) => translate(found) ?? found);
  return { ...failure, message: named, param: failure.param && translate(failure.param) };
}

const QUOTED_PATH = /'([a-z_]{2,40}(?:\.[a-z_]{2,40}|\[\d{1,5}\]){0,8})'/g;
const PLACE = /\b(?:input|messages|contents)(?:\[\d{1,5}\]|\.\d{1,5})(?:\[\d{1,5}\]|\.\w{1,40}){0,8}/g;

function explain({ kind, message }: UpstreamError): string {
  return kind === "quota" ? "The upstream's quota is used up. Try again later." : message;
}

const EXPLAIN: Partial<Record<DialectName, (failure: UpstreamError) => string>> = {
  messages: explainToMessages,
  content: explainToContent,
};

/** Claude Code compares these texts. */
function explainToMessages(failure: UpstreamError): string {
  const { kind, message, tokens } = failure;
  if (kind === "overflow") {
    if (/^prompt is too long/i.test(message)) return message;
    const numbers = tokens === null ? "" : `: ${tokens.used} tokens > ${tokens.most} maximum`;
    return `prompt is too long${numbers} — ${message}`;
  }
  if (kind === "output_overflow") {
    const [, used, output] = /\((\d+) in the messages, (\d+) in the completion\)/.exec(message) ?? [];
    const most = tokens?.most;
    const numbers = used === undefined || most === undefined ? "" : `: ${used} + ${output} > ${most}`;
    return `input length and \`max_tokens\` exceed context limit${numbers} — ${message}`;
  }
  if (kind === "signature") return `invalid signature in thinking block — ${message}`;
  return explain(failure);
}

function explainToContent(failure: UpstreamError): string {
  const { kind, message, tokens } = failure;
  if (kind !== "overflow" || message.startsWith("The input token count")) return explain(failure);
  const [used, most] = tokens === null ? ["", ""] : [` (${tokens.used})`, ` (${tokens.most})`];
  return `The input token count${used} exceeds the maximum number of tokens allowed${most}. ${message}`;
}

export function isError(event: unknown): boolean {
  if (!isObject(event)) return false;
  return event["type"] === "error" || (event["error"] ?? null) !== null;
}
