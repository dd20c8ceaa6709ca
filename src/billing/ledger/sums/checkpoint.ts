// A file beside the ledger with sums of its lines, so that not all of them have to be read again. It begins with a hash:
// what was not written by `writeCheckpoint`, or not to its end, is never used.

import { z } from "zod";

import { readOwn, replaceFile, requireOwn } from "../../../lib/files/own-file.ts";
import { parseJson } from "../../../lib/json/json.ts";
import { hashLine } from "../line.ts";

/** The largest that is read or written. Sums of names that clients invent could grow beyond all bounds. */
const MAX_BYTES = 64 << 20;

/** What `parseUsd` and `parseDecimal` take. */
export const amountSchema = z
  .string()
  .max(64)
  .regex(/^-?\d+(?:\.\d+)?$/);

/** Writes it and returns its size. If that fails, only the next start is slower. */
export function writeCheckpoint(path: string, sums: unknown): number {
  const body = JSON.stringify(sums);
  try {
    if (body.length < MAX_BYTES) replaceFile(path, `${hashLine(body)}\n${body}\n`);
  } catch {
    // Only the next start is slower.
  }
  return body.length;
}

/** Null if there is none, or if it is not what `writeCheckpoint` wrote. */
export function readCheckpoint(path: string): unknown {
  try {
    if ((requireOwn(path)?.size ?? 0n) > BigInt(2 * MAX_BYTES)) return null;
    const [check, body] = (readOwn(path) ?? "").split("\n");
    return body === undefined || hashLine(body) !== check ? null : parseJson(body);
  } catch {
    return null;
  }
}
