// A gateway's worth of load on a ledger, to be killed: run by ledger-crash.test.ts.
// Arguments: path, sync, bytes to rotate at. It prints what it has done:
// `o ID` once a request may be with an upstream, `d ID` before one is discarded.

import { writeSync } from "node:fs";

import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { draftOf, intentOf } from "./ledger-samples.ts";

const [path = "", sync = "", bytes = ""] = process.argv.slice(2);
const ledger = openLedger({
  path,
  sync: sync === "always" ? "always" : sync === "batch" ? "batch" : "never",
  rotate: { bytes: bytes === "" ? null : Number(bytes), monthly: false },
  report: () => undefined,
});
writeSync(1, "ready\n");

const CONNECTIONS = 64;
let next = 0;

async function serveRequests(): Promise<never> {
  for (;;) {
    next += 1;
    const id = `req_${process.pid}_${Date.now()}_${next}`;
    const number = next;
    await ledger.open(intentOf(id));
    writeSync(1, `o ${id}\n`);
    for (let turn = number % 5; turn > 0; turn -= 1)
      await new Promise<void>((resolve) => setImmediate(resolve));
    if (number % 7 === 0) ledger.attempt(id, "second");
    if (number % 11 === 0) {
      writeSync(1, `d ${id}\n`);
      ledger.discard(id);
    } else ledger.append(draftOf(id));
  }
}

await Promise.all(Array.from({ length: CONNECTIONS }, serveRequests));
