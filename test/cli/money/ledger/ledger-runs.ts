// Runs commands on a ledger of known lines.

import { writeFileSync } from "node:fs";
import { encodeLine, GENESIS, hashLine, type LineDraft } from "../../../../src/billing/ledger/line.ts";
import { draftOf, newLedgerPath } from "../../../billing/ledger/ledger-samples.ts";
import { type Outcome, runHere } from "../../driving.ts";

export function writeLedger(drafts: ReadonlyArray<Partial<LineDraft> & { id: string }>): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  let bytes = "";
  for (const draft of drafts) {
    const text = encodeLine(draftOf(draft.id, draft), prev);
    prev = hashLine(text);
    bytes += `${text}\n`;
  }
  writeFileSync(path, bytes);
  return path;
}

/** In these circumstances, a command finds no config unless its arguments name one. */
export const AROUND = { folder: "/", env: { GATEWAY_CONFIG: "" } };

export function run(...args: string[]): Promise<Outcome> {
  return runHere(AROUND, ...args);
}
