// Which models a ledger has seen, and through which channels.

import { eachRow, type Row } from "../ledger/row.ts";

export interface SeenModel {
  readonly channel: string;
  /** As clients called it. */
  readonly model: string;
  /** As the answers to it call it, whose usage is known: they are priced by this name first. */
  readonly answeredBy: Set<string>;
  requests: number;
}

/** An upstream can invent a name for each answer. */
const MAX_ANSWERED_BY = 100;

/** Takes one request's line. */
export function noteModel(seen: Map<string, SeenModel>, row: Row): void {
  const { channel, model, answeredBy, basis } = row;
  const id = `${channel}\n${model}`;
  const known = seen.get(id) ?? { channel, model, answeredBy: new Set(), requests: 0 };
  known.requests += 1;
  if (answeredBy !== "" && basis !== "unknown" && known.answeredBy.size < MAX_ANSWERED_BY)
    known.answeredBy.add(answeredBy);
  seen.set(id, known);
}

/** An absent ledger has seen none. */
export function listSeenModels(path: string): readonly SeenModel[] {
  const seen = new Map<string, SeenModel>();
  eachRow(path, (row) => {
    if (row === null || row.was !== null || row.model === "") return;
    noteModel(seen, row);
  });
  return [...seen.values()];
}
