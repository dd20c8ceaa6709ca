// Which models a ledger has seen, and through which channels.

import { getList, parseJson } from "../../lib/json/json.ts";
import type { Table } from "../store/open.ts";

export interface SeenModel {
  readonly channel: string;
  /** As clients called it. */
  readonly model: string;
  /** As the answers to it call it, whose usage is known: they are priced by this name first. */
  readonly answeredBy: ReadonlySet<string>;
  readonly requests: number;
}

/** An upstream can invent a name for each answer. */
const MAX_ANSWERED_BY = 100;

export function listSeenModels(table: Table): SeenModel[] {
  const found = table.list(
    `SELECT channel, model, COUNT(*),
       json_group_array(DISTINCT answered) FILTER (WHERE answered IS NOT NULL AND basis <> 'unknown')
     FROM requests WHERE model <> '' GROUP BY channel, model ORDER BY MIN(line)`,
  );
  return found.map(([channel, model, requests, answered]) => ({
    channel: String(channel),
    model: String(model),
    answeredBy: new Set(
      getList(parseJson(String(answered)))
        .map(String)
        .slice(0, MAX_ANSWERED_BY),
    ),
    requests: Number(requests),
  }));
}
