// Writes to a ledger like a busy gateway, until it is killed. Its argument is the ledger's path.

import { writeSync } from "node:fs";
import { nextTurn } from "../../../src/lib/time/next-turn.ts";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { draftOf, intentOf, optionsFor } from "./ledger-samples.ts";

const ledger = openLedger(optionsFor(process.argv[2] ?? ""));
writeSync(1, "ready\n");
for (let next = 0; ; next += 1) {
  await ledger.open(intentOf(`req_${next}`));
  ledger.append(draftOf(`req_${next}`));
  // Syncs run only if the event loop turns.
  await nextTurn();
}
