// Reads model lists of all dialects.

import { GatewayError } from "../lib/errors.ts";
import { getField, isObject, getList, getName, getText, parseJson } from "../lib/json/json.ts";
import type { ModelEntry } from "./dialect.ts";

const MAX_PAGE_MODELS = 1000;

type ModelRecord = Readonly<Record<string, unknown>>;

/** Reads all shapes: relays and local servers mix them. */
export function readModelList(body: string): { models: ModelEntry[]; nextQuery: string | null } {
  const parsed = parseJson(body);
  const rows = [getField(parsed, "data"), getField(parsed, "models"), parsed].find(Array.isArray);
  if (rows === undefined)
    throw new GatewayError("upstream_failed", "The upstream's answer is not a model list.");
  const models = getList(rows).flatMap((row) => readRow(row) ?? []);
  return { models, nextQuery: readNextQuery(parsed) };
}

function readRow(row: unknown): ModelEntry | null {
  if (!isObject(row)) return null;
  const id = getName(row["id"]) ?? getName(row["name"])?.replace(/^models\//, "") ?? getName(row["slug"]);
  return id === undefined ? null : { id, raw: row };
}

function readNextQuery(parsed: unknown): string | null {
  const token = getText(getField(parsed, "nextPageToken"));
  if (token !== "")
    return String(new URLSearchParams({ pageSize: String(MAX_PAGE_MODELS), pageToken: token }));
  const last = getName(getField(parsed, "last_id"));
  if (getField(parsed, "has_more") !== true || last === undefined) return null;
  return String(new URLSearchParams({ limit: String(MAX_PAGE_MODELS), after_id: last }));
}

export function fillRecord(model: ModelEntry, identity: ModelRecord, defaults: ModelRecord): ModelRecord {
  const record: Record<string, unknown> = { ...model.raw };
  for (const [field, value] of Object.entries(defaults)) if (!(field in record)) record[field] = value;
  return Object.assign(record, identity);
}
