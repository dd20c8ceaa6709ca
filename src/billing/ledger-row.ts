// What sums and reports need of a line, read by hand because a million of them
// are read at once. Whether the line is right in all its parts is verify's question.

import { statSync } from "node:fs";

import { isObject, parseJson } from "../lib/json.ts";
import type { Decimal, Usd } from "../lib/money.ts";
import { parseDecimal, parseUsd } from "../lib/money.ts";
import { readLines } from "./ledger-reader.ts";

export interface Amounts {
  /** Null: not known. */
  readonly official: Decimal | null;
  readonly charge: Usd | null;
}

export interface Row extends Amounts {
  /** The request's, also in a correction of it; as is the time. */
  readonly id: string;
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly usage: Readonly<Record<string, unknown>>;
  readonly basis: string;
  /** Null for a request's own line; else the amounts that this correction replaces. */
  readonly was: Amounts | null;
}

/** Null for what is neither a line nor a correction. */
export function readRow(line: Readonly<Record<string, unknown>>): Row | null {
  const names = readNames(line);
  const amounts = readAmounts(line);
  if (names === null || amounts === null) return null;
  if (line["corrects"] === undefined) return { ...names, ...amounts, was: null };
  const was = readAmounts(line["was"]);
  return was === null ? null : { ...names, ...amounts, was };
}

function readNames(line: Readonly<Record<string, unknown>>): Omit<Row, keyof Amounts | "was"> | null {
  const { key, group, channel, model, usage, basis } = line;
  const isCorrection = line["corrects"] !== undefined;
  const id = isCorrection ? line["corrects"] : line["id"];
  const time = isCorrection ? line["request_time"] : line["time"];
  if (!isText(id) || !isText(time) || !isText(key) || !isText(group)) return null;
  if (!isText(channel) || !isText(model) || !isObject(usage)) return null;
  return { id, time, key, group, channel, model, usage, basis: isText(basis) ? basis : "" };
}

function readAmounts(line: unknown): Amounts | null {
  if (!isObject(line)) return null;
  const { official_usd: official, charge_usd: charge } = line;
  if (!isAmount(official) || !isAmount(charge)) return null;
  try {
    return {
      official: official === null ? null : parseDecimal(official),
      charge: charge === null ? null : parseUsd(charge),
    };
  } catch {
    return null;
  }
}

function isAmount(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}

/** So much of the ledger's end is looked at: more than a minute's worth for any single person. */
const RECENT_BYTES = 1 << 20;

/** The requests since a moment, as far as the end of the last file has them. */
export function readRecent(files: readonly string[], since: string): Row[] {
  const last = files.at(-1);
  if (last === undefined) return [];
  const { size, mtime } = statSync(last);
  if (mtime.toISOString() < since) return [];
  const from = Math.max(0, size - RECENT_BYTES);
  const rows: Row[] = [];
  for (const { text } of readLines(last, from)) {
    const line = parseJson(text);
    const row = isObject(line) ? readRow(line) : null;
    if (row !== null && row.was === null && row.time >= since) rows.push(row);
  }
  return rows;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}
