// A request's method and target → the endpoint that it calls. Keys and channels are not decided here. No other folder
// reads a path.

import type { Platform } from "../config/schema.ts";
import { GatewayError } from "../lib/errors.ts";
import type { Exchange } from "../lib/http1/types.ts";
import { content } from "./content.ts";
import type { Dialect, Endpoint, Target } from "./dialect.ts";
import {
  buildTable,
  type ByClient,
  type Choice,
  type ClientKind,
  DIALECT_PATHS,
  DIALECTS,
  type EndpointTable,
  type ModelPaths,
  type OwnPage,
  RELAY_DIALECTS,
  SHARED_DIALECTS,
  STORED_RESPONSE,
} from "./endpoints.ts";
import { dropKey, findVerb, correctPath, isResponseId, readModelId } from "./path.ts";
import { PLATFORM_ROWS } from "./platforms.ts";
import { responses } from "./responses.ts";

/** The parts of the config that paths and headers depend on. */
export interface Naming {
  readonly relayPrefix: string;
  readonly vendor: string;
}

/** `dialect` is the one for errors: it follows from the path, before the key is known. */
export type Recognition = { readonly dialect: Dialect } & (
  | { readonly kind: "target"; readonly target: Target; readonly query: string }
  | { readonly kind: "own"; readonly page: OwnPage }
  /** No endpoint, or an endpoint with another protocol. The error says which. */
  | { readonly kind: "unknown" | "upgrade"; readonly error: GatewayError }
);

type Request = Pick<Exchange, "method" | "target" | "field">;

const STORED_PATH = "/v1/responses/";
/** An error repeats this much of an unknown path. */
const MAX_SHOWN_CHARACTERS = 200;

interface Lookup {
  readonly request: Request;
  readonly table: EndpointTable;
  readonly query: string;
}

/** One table for each config. */
const tables = new WeakMap<Naming, EndpointTable>();

/** The dialect in which the gateway asks a platform's channels for their models. */
export function dialectOf(platform: Platform): Dialect {
  return PLATFORM_ROWS[platform].dialect;
}

/** The shape of a model list. On a path that several platforms share, it follows the key's group. */
export function listDialect(endpoint: Endpoint, platform: Platform): Dialect {
  return endpoint.platforms.length > 1 ? PLATFORM_ROWS[platform].dialect : endpoint.dialect;
}

/** Pass the same `naming` object for each request: its table is built once. */
export function recognise(request: Request, naming: Naming): Recognition {
  const { target } = request;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const lookup: Lookup = { request, table: getTable(naming), query: mark < 0 ? "" : target.slice(mark) };
  const found = find(path, lookup);
  if (found !== null) return found;
  const corrected = correctPath(path, lookup.table.relayPath);
  return (corrected === path ? null : find(corrected, lookup)) ?? refusePath(corrected, lookup);
}

function getTable(naming: Naming): EndpointTable {
  const known = tables.get(naming);
  if (known !== undefined) return known;
  const table = buildTable(naming.relayPrefix, naming.vendor);
  tables.set(naming, table);
  return table;
}

function find(path: string, lookup: Lookup): Recognition | null {
  const rows = lookup.table.exact.get(path);
  if (rows === undefined) return findModel(path, lookup) ?? findStored(path, lookup);
  const row = rows.get(lookup.request.method);
  if (row === undefined) return null;
  if (row.kind === "target") return formTarget(choose(row.targets, lookup), lookup);
  return row.kind === "own" ? { kind: "own", page: row.page, dialect: responses } : refuseUpgrade(lookup);
}

function formTarget(target: Target, lookup: Lookup): Recognition {
  return { kind: "target", target, query: dropKey(lookup.query), dialect: target.endpoint.dialect };
}

function choose<T>(choice: Choice<T>, lookup: Lookup): T {
  return "one" in choice ? choice.one : choice.by[readClientKind(lookup)];
}

interface ClientSign {
  readonly kind: ClientKind;
  isSeen(lookup: Lookup): boolean;
}

/** What only the clients of one dialect send. The first sign that is seen decides. */
const CLIENT_SIGNS: ByClient<ClientSign> = {
  content: {
    kind: "content",
    isSeen: ({ request, table, query }) =>
      request.field(table.vendorHeader) !== undefined || dropKey(query) !== query,
  },
  messages: {
    kind: "messages",
    isSeen: ({ request }) => (request.field("anthropic-version") ?? request.field("x-api-key")) !== undefined,
  },
  responses: { kind: "responses", isSeen: () => true },
};

function readClientKind(lookup: Lookup): ClientKind {
  return Object.values(CLIENT_SIGNS).find((sign) => sign.isSeen(lookup))?.kind ?? "responses";
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
  // A client may escape the verb's colon. Not every upstream would understand that.
  const upstreamPath = verb === "" ? upstream + raw : `${upstream}${raw}:${verb}`;
  return formTarget(
    { endpoint, path: upstreamPath, model, stream: verb === "streamGenerateContent" },
    lookup,
  );
}

interface NamedModel {
  readonly endpoint: Endpoint;
  readonly raw: string;
  readonly verb: string;
}

function readModelPath(tail: string, lookup: Lookup, paths: ModelPaths): NamedModel | null {
  const { method } = lookup.request;
  if (method === "GET") return { endpoint: choose(paths.single, lookup), raw: tail, verb: "" };
  const colon = method === "POST" ? findVerb(tail) : null;
  if (colon === null) return null;
  const verb = tail.slice(colon.end);
  const endpoint = paths.verbs.get(verb);
  return endpoint === undefined ? null : { endpoint, raw: tail.slice(0, colon.start), verb };
}

function findStored(path: string, lookup: Lookup): Recognition | null {
  if (!path.startsWith(STORED_PATH)) return null;
  const slash = path.indexOf("/", STORED_PATH.length);
  const end = slash < 0 ? path.length : slash;
  if (!isResponseId(path.slice(STORED_PATH.length, end))) return null;
  const tail = path.slice(end);
  const stored = STORED_RESPONSE.find((row) => row[0] === lookup.request.method && row[1] === tail);
  return stored === undefined
    ? null
    : formTarget({ endpoint: stored[2], path, model: null, stream: null }, lookup);
}

function refuseUpgrade(lookup: Lookup): Recognition | null {
  if (lookup.request.field("upgrade")?.toLowerCase() !== "websocket") return null;
  const text = "This gateway speaks HTTP here, not WebSocket.";
  return { kind: "upgrade", error: new GatewayError("upgrade_required", text), dialect: responses };
}

function refusePath(path: string, lookup: Lookup): Recognition {
  const { method } = lookup.request;
  const rows = [...(lookup.table.exact.get(path) ?? [])];
  const methods = rows.flatMap(([name, row]) => (row.kind === "upgrade" ? [] : [name]));
  const shown = path.slice(0, MAX_SHOWN_CHARACTERS);
  const text =
    methods.length === 0
      ? `This gateway has no endpoint ${method} ${shown}.`
      : `This gateway has no endpoint ${method} ${shown}: it takes ${methods.join(" and ")}.`;
  return {
    kind: "unknown",
    error: new GatewayError("unknown_path", text),
    dialect: chooseErrorDialect(path, lookup),
  };
}

function chooseErrorDialect(path: string, lookup: Lookup): Dialect {
  const { relayPath } = lookup.table;
  const relayed = path === relayPath || path.startsWith(`${relayPath}/`);
  const tail = relayed ? path.slice(relayPath.length) : path;
  const client =
    lookup.request.method === "POST" && tail.startsWith("/v1/models/") ? "content" : readClientKind(lookup);
  const dialect = Object.values(DIALECTS).find(({ name }) => tail.startsWith(DIALECT_PATHS[name]));
  if (!relayed) return dialect ?? SHARED_DIALECTS[client];
  return dialect === content ? content : RELAY_DIALECTS[client];
}
