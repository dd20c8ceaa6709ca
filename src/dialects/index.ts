// A request's method and target → what it asks for. Nothing is decided here
// about keys or channels, and nothing beyond this folder reads a path.

import type { Platform } from "../config/schema.ts";
import { GatewayError } from "../lib/errors.ts";
import type { Exchange } from "../lib/http1/types.ts";
import { content } from "./content.ts";
import type { Dialect, Endpoint, Target } from "./dialect.ts";
import {
  buildTable,
  type Choice,
  MANNERS,
  type ModelPaths,
  type OwnPage,
  type Owner,
  OWNERS,
  RELAY_OWNERS,
  STORED,
  type Table,
} from "./endpoints.ts";
import { messages } from "./messages.ts";
import { dropKey, findVerb, forgivePath, isResponseId, readModelId } from "./path.ts";
import { relay } from "./relay.ts";
import { responses } from "./responses.ts";

/** The parts of a catalog that paths and headers depend on. */
export interface Naming {
  readonly relayPrefix: string;
  readonly vendor: string;
}

/** `dialect` is whose manners an answer has, before anything is known of the key. */
export type Recognised = { readonly dialect: Dialect } & (
  | { readonly kind: "target"; readonly target: Target; readonly query: string }
  | { readonly kind: "own"; readonly page: OwnPage }
  /** No endpoint, or another protocol on one: the error says so. */
  | { readonly kind: "unknown" | "upgrade"; readonly error: GatewayError }
);

type Request = Pick<Exchange, "method" | "target" | "field">;

const STORED_PATH = "/v1/responses/";
/** As much of an unknown path as an error repeats. */
const LONGEST_SHOWN = 200;

interface Asked {
  readonly request: Request;
  readonly table: Table;
  readonly query: string;
}

/** Kept with the catalog that it was built for. */
const tables = new WeakMap<Naming, Table>();

const DIALECT_OF: Readonly<Record<Platform, Dialect>> = { messages, responses, content, relay };

/** The dialect in which a platform's channels are asked for their models. */
export function dialectOf(platform: Platform): Dialect {
  return DIALECT_OF[platform];
}

/** The shape of a model list: where several platforms share a path, it follows the key's group. */
export function listDialect(endpoint: Endpoint, platform: Platform): Dialect {
  return endpoint.platforms.length > 1 ? DIALECT_OF[platform] : endpoint.dialect;
}

/** What a request asks for. `naming` is best the same object each time: its table is built once. */
export function recognise(request: Request, naming: Naming): Recognised {
  const { target } = request;
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const asked: Asked = { request, table: takeTable(naming), query: mark < 0 ? "" : target.slice(mark) };
  const found = find(path, asked);
  if (found !== null) return found;
  const meant = forgivePath(path, asked.table.relayPath);
  return (meant === path ? null : find(meant, asked)) ?? refusePath(meant, asked);
}

function takeTable(naming: Naming): Table {
  const known = tables.get(naming);
  if (known !== undefined) return known;
  const table = buildTable(naming.relayPrefix, naming.vendor);
  tables.set(naming, table);
  return table;
}

function find(path: string, asked: Asked): Recognised | null {
  const rows = asked.table.exact.get(path);
  if (rows === undefined) return findModel(path, asked) ?? findStored(path, asked);
  const row = rows.get(asked.request.method);
  if (row === undefined) return null;
  if (row.kind === "target") return aim(choose(row.targets, asked), asked);
  return row.kind === "own" ? { kind: "own", page: row.page, dialect: responses } : refuseUpgrade(asked);
}

function aim(target: Target, asked: Asked): Recognised {
  return { kind: "target", target, query: dropKey(asked.query), dialect: target.endpoint.dialect };
}

function choose<T>(choice: Choice<T>, asked: Asked): T {
  return "one" in choice ? choice.one : choice.by[readOwner(asked)];
}

/** Whose client asks, by the header fields that only it sends. */
function readOwner({ request, table, query }: Asked): Owner {
  if (request.field(table.vendorHeader) !== undefined || dropKey(query) !== query) return "content";
  const isMessages = request.field("anthropic-version") ?? request.field("x-api-key");
  return isMessages === undefined ? "responses" : "messages";
}

function findModel(path: string, asked: Asked): Recognised | null {
  const start = path.indexOf("/models/") + "/models/".length;
  const paths = asked.table.models.get(path.slice(0, start));
  if (paths === undefined) return null;
  const named = readModelPath(path.slice(start), asked, paths);
  const id = named === null ? null : readModelId(named.raw);
  if (named === null || id === null) return null;
  const { upstream } = paths;
  const { endpoint, raw, verb } = named;
  const model = { id, start: upstream.length, end: upstream.length + raw.length };
  // A verb's colon may come escaped; upstreams differ in whether they would understand it.
  const upstreamPath = verb === "" ? upstream + raw : `${upstream}${raw}:${verb}`;
  return aim({ endpoint, path: upstreamPath, model, stream: verb === "streamGenerateContent" }, asked);
}

interface NamedModel {
  readonly endpoint: Endpoint;
  readonly raw: string;
  readonly verb: string;
}

function readModelPath(rest: string, asked: Asked, paths: ModelPaths): NamedModel | null {
  const { method } = asked.request;
  if (method === "GET") return { endpoint: choose(paths.single, asked), raw: rest, verb: "" };
  const colon = method === "POST" ? findVerb(rest) : null;
  if (colon === null) return null;
  const verb = rest.slice(colon.end);
  const endpoint = paths.verbs.get(verb);
  return endpoint === undefined ? null : { endpoint, raw: rest.slice(0, colon.start), verb };
}

function findStored(path: string, asked: Asked): Recognised | null {
  if (!path.startsWith(STORED_PATH)) return null;
  const slash = path.indexOf("/", STORED_PATH.length);
  const end = slash < 0 ? path.length : slash;
  if (!isResponseId(path.slice(STORED_PATH.length, end))) return null;
  const tail = path.slice(end);
  const stored = STORED.find((row) => row[0] === asked.request.method && row[1] === tail);
  return stored === undefined ? null : aim({ endpoint: stored[2], path, model: null, stream: null }, asked);
}

function refuseUpgrade(asked: Asked): Recognised | null {
  if (asked.request.field("upgrade")?.toLowerCase() !== "websocket") return null;
  const text = "This gateway speaks HTTP here, not WebSocket.";
  return { kind: "upgrade", error: new GatewayError("upgrade_required", text), dialect: responses };
}

function refusePath(path: string, asked: Asked): Recognised {
  const { method } = asked.request;
  const rows = [...(asked.table.exact.get(path) ?? [])];
  const methods = rows.flatMap(([name, row]) => (row.kind === "upgrade" ? [] : [name]));
  const shown = path.slice(0, LONGEST_SHOWN);
  const text =
    methods.length === 0
      ? `This gateway has no endpoint ${method} ${shown}.`
      : `This gateway has no endpoint ${method} ${shown}: it takes ${methods.join(" and ")}.`;
  return {
    kind: "unknown",
    error: new GatewayError("unknown_path", text),
    dialect: pickManners(path, asked),
  };
}

function pickManners(path: string, asked: Asked): Dialect {
  const { relayPath } = asked.table;
  const relayed = path === relayPath || path.startsWith(`${relayPath}/`);
  const rest = relayed ? path.slice(relayPath.length) : path;
  const owner =
    asked.request.method === "POST" && rest.startsWith("/v1/models/") ? "content" : readOwner(asked);
  const manners = MANNERS.find(([start]) => rest.startsWith(start))?.[1];
  if (!relayed) return manners ?? OWNERS[owner];
  return manners === content ? content : RELAY_OWNERS[owner];
}
