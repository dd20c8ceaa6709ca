// What the model lists of all dialects have in common: reading an upstream's
// list, completing a record, cutting a page. Each dialect's own shape is in its file.

import { GatewayError } from "../lib/errors.ts";
import { fieldOf, isObject, listOf, nameOf, parseJson } from "../lib/json/json.ts";
import type { ModelEntry } from "./dialect.ts";

/** No dialect gives more in one page. */
const LARGEST_PAGE = 1000;

type Row = Readonly<Record<string, unknown>>;

export interface Page {
  readonly models: readonly ModelEntry[];
  readonly hasMore: boolean;
}

/** An upstream's list, in whichever dialect's shape it comes: relays and local servers mix them. */
export function readModelList(body: string): { models: ModelEntry[]; nextQuery: string | null } {
  const parsed = parseJson(body);
  const rows = [fieldOf(parsed, "data"), fieldOf(parsed, "models"), parsed].find(Array.isArray);
  if (rows === undefined) throw new GatewayError("upstream_failed", "The upstream's model list is not one.");
  const models = listOf(rows).flatMap((row) => readRow(row) ?? []);
  return { models, nextQuery: readNextQuery(parsed) };
}

function readRow(row: unknown): ModelEntry | null {
  if (!isObject(row)) return null;
  const id = nameOf(row["id"]) ?? nameOf(row["name"])?.replace(/^models\//, "") ?? nameOf(row["slug"]);
  return id === undefined ? null : { id, raw: row };
}

function readNextQuery(parsed: unknown): string | null {
  const token = readNextToken(parsed);
  if (token !== null)
    return String(new URLSearchParams({ pageSize: String(LARGEST_PAGE), pageToken: token }));
  const last = nameOf(fieldOf(parsed, "last_id"));
  if (fieldOf(parsed, "has_more") !== true || last === undefined) return null;
  return String(new URLSearchParams({ limit: String(LARGEST_PAGE), after_id: last }));
}

function readNextToken(parsed: unknown): string | null {
  const token = fieldOf(parsed, "nextPageToken");
  return typeof token === "string" && token !== "" ? token : null;
}

/** The upstream's own record, with what its shape lacks added and the name that the client knows. */
export function fillRecord(model: ModelEntry, identity: Row, defaults: Row): Row {
  return { ...model.raw, ...defaults, ...model.raw, ...identity };
}

/** The models after the one called `after`, at most `size` of them. */
export function takeAfter(models: readonly ModelEntry[], after: string | null, size: number): Page {
  const start = after === null ? 0 : findPlace(models, after) + 1;
  return { models: models.slice(start, start + size), hasMore: start + size < models.length };
}

/** The models just before the one called `before`. */
export function takeBefore(models: readonly ModelEntry[], before: string, size: number): Page {
  const end = findPlace(models, before);
  const start = Math.max(0, end - size);
  return { models: models.slice(start, end), hasMore: start > 0 };
}

function findPlace(models: readonly ModelEntry[], id: string): number {
  const place = models.findIndex((model) => model.id === id);
  if (place < 0)
    throw new GatewayError("bad_request", `The page to follow on, "${id}", is not in the list any more.`);
  return place;
}

/** The page size that a query asks for; without one, or with a senseless one, everything goes in one page. */
export function readPageSize(query: URLSearchParams, name: string): number {
  const size = Number(query.get(name) ?? Number.NaN);
  return Number.isInteger(size) && size > 0 ? Math.min(size, LARGEST_PAGE) : Number.POSITIVE_INFINITY;
}
