// A mark in the chain: something unexplained that a start found. Until the owner accepts
// it, `verify` and each start report it, and limits count the cost of the lost lines.

import { existsSync, statSync } from "node:fs";

import { parseJson } from "../../lib/json/json.ts";
import { formatUsd, roundUsd } from "../../lib/money.ts";
import { readLine } from "./check.ts";
import { hashLine, type Mark, type MarkDraft } from "./line.ts";
import { addAmount, readList } from "../reports/sums.ts";
import { nameTable, Table } from "../store/open.ts";
import type { Recovery } from "./recovery.ts";
import { listLedgerFiles } from "./rotation.ts";

export function listMarks(table: Table): Mark[] {
  return table.list("SELECT text FROM marks ORDER BY rowid").flatMap(([text]) => {
    const line = readLine(parseJson(String(text)));
    return line !== null && "mark" in line ? [line] : [];
  });
}

const NOT_NAMED = "the journal does not name this line, so it may not be the gateway's";
/** `verify` reports the gap until the owner accepts it or the lines are back. */
export const END_GONE = "a start found that lines were gone or changed, so their charges may be in no amount";

/** A mark's sums of lost requests, by key and day. */
export type Lost = Pick<MarkDraft, "request_time" | "key" | "group" | "limit_usd">;

/** Sums up the lines that the growing file lost. The requests in `others` are left out:
 *  limits count them anyway. */
export function listLost(path: string, others: readonly string[]): Lost[] {
  if (!existsSync(nameTable(path))) return [];
  try {
    using table = new Table(path, { report: () => {}, isAsItWas: true });
    const { files } = table.position;
    const size = existsSync(path) ? statSync(path).size : null;
    if (files.length !== listLedgerFiles(path).length + (size === null ? 1 : 0)) return [];
    const found = table.list(
      `SELECT key, group_name, MAX(at), SUM(counted), group_concat(exact) FROM requests
       WHERE line >= $first AND place >= $size AND id NOT IN (SELECT value FROM json_each($others))
       GROUP BY key, group_name, at / 86400000`,
      { $first: files.at(-1)?.first ?? 0, $size: size ?? 0, $others: JSON.stringify(others) },
    );
    return found.map(([key, group, at, counted = null, exact = null]) => ({
      request_time: new Date(Number(at)).toISOString(),
      key: String(key ?? ""),
      group: String(group ?? ""),
      limit_usd: formatUsd(roundUsd(addAmount(counted, readList(exact, table), "counted"))),
    }));
  } catch {
    // Without these sums, the ledger still shows the gap.
    return [];
  }
}

export function draftMarks(
  doubts: Recovery["doubts"],
  prev: string,
  time: string,
  lost: readonly Lost[],
): MarkDraft[] {
  const unknown = { request_time: time, key: "", group: "" };
  const gone = (lost.length === 0 ? [unknown] : lost).map((each) => ({ mark: END_GONE, ...each }));
  const unnamed = doubts.unnamed.map(({ id }) => ({ mark: `${String(id)}: ${NOT_NAMED}`, ...unknown }));
  const marks = doubts.isEndGone ? [...gone, ...unnamed] : unnamed;
  return marks.map((mark, index) => ({
    id: `mark_${hashLine(`${prev} ${index}`).slice(0, 24)}`,
    time,
    ...mark,
  }));
}

export function draftAcceptance(mark: MarkDraft, time: string): MarkDraft {
  const { id, request_time, key, group, client, limit_usd: limit } = mark;
  return {
    id: `accept_${id.replace(/^mark_/, "")}`,
    time,
    mark: "the owner accepted it",
    accepts: id,
    request_time,
    key,
    group,
    client,
    replaces: limit === undefined ? undefined : { id, time: request_time, limit_usd: limit },
  };
}
