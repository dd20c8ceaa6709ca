// The marks of a ledger that its owner has not accepted.

import { parseJson } from "../../lib/json/json.ts";
import { type MarkDraft, markSchema, noteMark } from "../ledger/start/mark.ts";
import { type LedgerIndex, readLineAt } from "./ledger-index.ts";

/** What the rows of marks have in place of the id of a corrected request. */
export const MARK = "mark";

/** By id. */
export function listMarks(index: LedgerIndex): Map<string, MarkDraft> {
  const marks = new Map<string, MarkDraft>();
  const sql = `SELECT DISTINCT line, at FROM requests WHERE corrects = '${MARK}' ORDER BY line`;
  for (const [line, at] of index.parts.flatMap((part) => part.list(sql))) {
    const { data } = markSchema.safeParse(parseJson(readLineAt(index, Number(line), Number(at))?.text ?? ""));
    if (data !== undefined) noteMark(marks, data);
  }
  return marks;
}
