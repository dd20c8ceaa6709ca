// A request's method and target → its endpoint. Only this folder reads paths.

import type { Platform } from "../config/schema.ts";
import { GatewayError } from "../lib/errors.ts";
import type { Exchange } from "../lib/http/exchange.ts";
import { content } from "./formats/content.ts";
import { type Dialect, type Endpoint, LISTS, type Target } from "./dialect.ts";
import {
  buildTable,
  type ClientKind,
  type EndpointTable,
  ERROR_PATHS,
  type ListedTarget,
  type ModelPaths,
  type Naming,
  type OwnPage,
  SHARED_DIALECTS,
  STORED_RESPONSE,
  VERBS,
} from "./endpoints.ts";
import { dropKey, correctPath, pathOf, queryOf, readModelId, RESPONSE_ID } from "./path.ts";
import { type OtherPath, readOther } from "./other-paths.ts";
import { PLATFORM_ROWS } from "./platforms.ts";
import { responses } from "./formats/responses.ts";

/** `dialect` is for errors before the key is known.
 *  `upgrade` asks for a WebSocket. */
export type Recognition = { readonly dialect: Dialect } & (
  | { readonly kind: "target" | "upgrade"; readonly target: Target; readonly query: string }
  | { readonly kind: "own"; readonly page: OwnPage }
  /** `other`: set if a group may forward the path. */
  | {
      readonly kind: "unknown";
      readonly error: GatewayError;
      readonly other: OtherPath | null;
      readonly query: string;
    }
);

type RequestHead = Pick<Exchange, "method" | "target" | "field">;

export const CONSOLE_PATH = "/console";
const RESPONSES_PATH = "/v1/responses";
const STORED_PATH = `${RESPONSES_PATH}/`;
const VERB = /^(.*)(?::|%3a)(.*)$/i;
/** An error repeats at most this much of a path. */
const MAX_SHOWN_CHARACTERS = 200;

interface Lookup {
  readonly request: RequestHead;
  readonly method: string;
  readonly table: EndpointTable;
  readonly query: string;
}

const tables = new WeakMap<Naming, EndpointTable>();

/** On a shared path, the key's group decides a list's dialect. */
export function listDialect(endpoint: Endpoint, platform: Platform): Dialect {
  return endpoint.platforms.length > 1 ? PLATFORM_ROWS[platform].dialect : endpoint.dialect;
}

/** Always pass the same `naming` object: its table is built once. */
export function recognise(request: RequestHead, naming: Naming): Recognition {
  const { target } = request;
  const path = pathOf(target);
  const table = tables.getOrInsertComputed(naming, buildTable);
  const lookup: Lookup = { request, method: request.method, table, query: queryOf(target) };
  const found = find(path, lookup);
  if (found !== null) return found;
  if (`${path}/`.startsWith(`${CONSOLE_PATH}/`)) return { kind: "own", page: "console", dialect: responses };
  const corrected = correctPath(path, lookup.table.relayPath);
  return (corrected === path ? null : find(corrected, lookup)) ?? refusePath(corrected, path, lookup);
}

/** HEAD works like GET for lists. */
function find(path: string, lookup: Lookup): Recognition | null {
  if (lookup.method === "GET" && path === RESPONSES_PATH && isUpgrade(lookup)) {
    const post = findRow(path, { ...lookup, method: "POST" });
    return post?.kind === "target" ? { ...post, kind: "upgrade" } : null;
  }
  if (lookup.method !== "HEAD") return findRow(path, lookup);
  const found = findRow(path, { ...lookup, method: "GET" });
  return found !== null && answersHead(found) ? found : null;
}

function answersHead(found: Recognition): boolean {
  if (found.kind !== "target") return found.kind === "own";
  return LISTS.has(found.target.endpoint.purpose);
}

function findRow(path: string, lookup: Lookup): Recognition | null {
  const rows = lookup.table.exact.get(path);
  if (rows === undefined) return findModel(path, lookup) ?? findStored(path, lookup);
  const row = rows.get(lookup.method) ?? null;
  return row?.kind === "target" ? formTarget(row.target, lookup) : row;
}

function formTarget(listed: ListedTarget, lookup: Lookup): Recognition {
  const { shared } = listed.endpoint;
  const dialect = shared?.[findClientKind(lookup) ?? "responses"] ?? listed.endpoint.dialect;
  const target = shared === undefined ? listed : { ...listed, endpoint: { ...listed.endpoint, dialect } };
  return { kind: "target", target, query: dropKey(lookup.query), dialect };
}

/** Null: headers and query do not show the client. */
function findClientKind({ request, table, query }: Lookup): ClientKind | null {
  const has = (name: string): boolean => request.field(name) !== undefined;
  if (has(table.vendorHeader) || dropKey(query) !== query) return "content";
  if (has("anthropic-version") || has("x-api-key")) return "messages";
  const isOpenai = has("originator") || /codex|openai/i.test(request.field("user-agent") ?? "");
  return isOpenai ? "responses" : null;
}

function findModel(path: string, lookup: Lookup): Recognition | null {
  const start = path.indexOf("/models/") + "/models/".length;
  const paths = lookup.table.models.get(path.slice(0, start));
  if (paths === undefined) return null;
  const named = readModelPath(path.slice(start), lookup, paths);
  const id = named === null ? null : readModelId(named.raw);
  if (named === null || id === null) return null;
  const { upstream } = paths;
  const { endpoint, raw, verb } = named;
  const model = { id, start: upstream.length, end: upstream.length + raw.length };
  // The client may have escaped the colon. Not every upstream understands that.
  const upstreamPath = verb === "" ? upstream + raw : `${upstream}${raw}:${verb}`;
  const stream = verb === "streamGenerateContent";
  return formTarget({ endpoint, path: upstreamPath, model, stream }, lookup);
}

function readModelPath(tail: string, { method }: Lookup, paths: ModelPaths) {
  const [, raw = "", verb = ""] = VERB.exec(tail) ?? [];
  const endpoint = paths.verbs.get(verb);
  if (method === "POST" && endpoint !== undefined) return { endpoint, raw, verb };
  if (method !== "GET" || endpoint !== undefined) return null;
  return { endpoint: paths.single, raw: tail, verb: "" };
}

function findStored(given: string, lookup: Lookup): Recognition | null {
  if (!given.startsWith(STORED_PATH)) return null;
  const path = given.replaceAll(/%(?:2d|3d|5f)/gi, (escape) => decodeURIComponent(escape));
  const slash = path.indexOf("/", STORED_PATH.length);
  const end = slash < 0 ? path.length : slash;
  if (!RESPONSE_ID.test(path.slice(STORED_PATH.length, end))) return null;
  const tail = path.slice(end);
  const stored = STORED_RESPONSE.find((row) => row[0] === lookup.method && row[1] === tail);
  if (stored === undefined) return null;
  return formTarget({ endpoint: stored[2], path, model: null, stream: null }, lookup);
}

function isUpgrade({ request }: Lookup): boolean {
  return request.field("upgrade")?.toLowerCase() === "websocket";
}

const METHODS = ["GET", "HEAD", "POST", "DELETE"];

function isListed(path: string, lookup: Lookup): boolean {
  const isVerb = VERBS.some(([verb]) => path.endsWith(`:${verb.toLowerCase()}`));
  const paths = [path, correctPath(path, lookup.table.relayPath)];
  const methods = [lookup.method, "POST"];
  return isVerb || paths.some((each) => methods.some((method) => find(each, { ...lookup, method }) !== null));
}

/** `given`: as the client wrote it. */
function refusePath(path: string, given: string, lookup: Lookup): Recognition {
  const { method } = lookup;
  const query = dropKey(lookup.query);
  // After a 426, Codex tries HTTP, and shows the error that it gets there.
  if (path.endsWith("/responses") && isUpgrade(lookup)) {
    const error = new GatewayError("upgrade_required", "This gateway speaks HTTP here, not WebSocket.");
    return { kind: "unknown", error, other: null, query, dialect: responses };
  }
  const allow = METHODS.filter((other) => {
    const kind = find(path, { ...lookup, method: other })?.kind;
    return kind === "target" || kind === "own";
  });
  const shown = path.slice(0, MAX_SHOWN_CHARACTERS);
  // In a GET, `m:unheardOf` is a model's name. In a POST, `unheardOf` is an unknown verb.
  const isUnknown = allow.length === 0 || (method === "POST" && /\/models\/.*:/.test(path));
  const isPassable = isUnknown && (method === "GET" || method === "POST");
  const isKnown = (each: string): boolean => isListed(each, lookup);
  const other = isPassable ? readOther(given, lookup.table.relayPath, isKnown) : null;
  const text = isUnknown
    ? `Unknown path: this gateway has no endpoint ${method} ${shown}. Check the base URL in the client's settings.`
    : `${shown} does not accept ${method}. Use ${allow.join(" or ")}.`;
  const error = isUnknown
    ? new GatewayError("unknown_path", text)
    : new GatewayError("method_not_allowed", text, { allow });
  return { kind: "unknown", error, other, query, dialect: chooseErrorDialect(path, lookup) };
}

function chooseErrorDialect(path: string, lookup: Lookup): Dialect {
  const { relayPath } = lookup.table;
  const relayed = path === relayPath || path.startsWith(`${relayPath}/`);
  const tail = relayed ? path.slice(relayPath.length) : path;
  if (lookup.method === "POST" && tail.startsWith("/v1/models/")) return content;
  const [, dialect] = ERROR_PATHS.find(([part]) => tail.includes(part)) ?? [];
  return dialect ?? SHARED_DIALECTS[findClientKind(lookup) ?? (relayed ? "messages" : "responses")];
}
