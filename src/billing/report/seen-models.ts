// Which models a ledger has seen, and through which channels.

import { holdLedgerFiles } from "../ledger/rotation.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { readRow } from "../ledger/scan/row.ts";
import { LineScanner } from "../ledger/scan/scan.ts";

export interface SeenModel {
  readonly channel: string;
  /** As clients called it. */
  readonly model: string;
  requests: number;
}

/** An absent ledger has seen none. */
export function listSeenModels(path: string): readonly SeenModel[] {
  const seen = new Map<string, SeenModel>();
  const scanner = new LineScanner();
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { bytes, whole } of readFile(source)) {
      if (!whole) continue;
      eachLine(bytes, (from, to) => {
        const row = readRow(bytes, from, to, scanner);
        if (row === null || row.was !== null || row.model === "") return;
        const { channel, model } = row;
        const id = `${channel}\n${model}`;
        const known = seen.get(id) ?? { channel, model, requests: 0 };
        known.requests += 1;
        seen.set(id, known);
      });
    }
  }
  return [...seen.values()];
}
