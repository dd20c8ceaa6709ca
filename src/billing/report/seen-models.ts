// Which models a ledger has seen, and through which channels.

import { eachRow } from "../ledger/scan/row.ts";

export interface SeenModel {
  readonly channel: string;
  /** As clients called it. */
  readonly model: string;
  requests: number;
}

/** An absent ledger has seen none. */
export function listSeenModels(path: string): readonly SeenModel[] {
  const seen = new Map<string, SeenModel>();
  eachRow(path, (row) => {
    if (row === null || row.was !== null || row.model === "") return;
    const { channel, model } = row;
    const id = `${channel}\n${model}`;
    const known = seen.get(id) ?? { channel, model, requests: 0 };
    known.requests += 1;
    seen.set(id, known);
  });
  return [...seen.values()];
}
