// Writes a ledger on a disk that fills up and has room again. ledger.test.ts runs this in a
// process of its own, whose limit on the size of files stands for the disk.

import { readFileSync } from "node:fs";
import { openLedger } from "../../../src/billing/ledger/ledger.ts";
import { GatewayError } from "../../../src/lib/errors.ts";
import { draftOf, intentOf, optionsFor, readWholeLedger } from "./ledger-samples.ts";

const [path = ""] = process.argv.slice(2);
const reports: string[] = [];
const back = Promise.withResolvers<void>();
const ledger = openLedger(
  optionsFor(path, {
    report: (message) => {
      reports.push(message);
      if (message.includes("again")) back.resolve();
    },
  }),
);

const opened: string[] = [];
const refusal = await fillUp();
const problem = ledger.problem;
const endsWhole = readFileSync(path, "utf8").endsWith("\n");
// The ten requests that are still open end while the disk is full.
for (const id of opened.slice(-10)) ledger.append(draftOf(id));

Bun.spawnSync(["prlimit", "--pid", String(process.pid), "--fsize=unlimited"]);
await back.promise;
await ledger.open(intentOf("after"));
opened.push("after");
ledger.append(draftOf("after"));
await ledger.close();

const { count } = readWholeLedger(path);
console.log(
  JSON.stringify({
    code: refusal instanceof GatewayError ? refusal.code : String(refusal),
    problem,
    endsWhole,
    reports,
    problemAfter: ledger.problem,
    refusedHasLine: count.has("refused"),
    everyIdOnce: opened.every((id) => count.get(id) === 1) && count.size === opened.length,
  }),
);

/** Opens and ends requests until one is refused. Ten of them are always open. */
async function fillUp(): Promise<unknown> {
  const running: string[] = [];
  for (let number = 0; ; number += 1) {
    const id = ledger.problem === null ? `r${number}` : "refused";
    try {
      await ledger.open(intentOf(id));
    } catch (error) {
      if (id === "refused") {
        opened.push(...running);
        return error;
      }
      continue;
    }
    running.push(id);
    const oldest = running.length > 10 ? running.shift() : undefined;
    if (oldest === undefined) continue;
    opened.push(oldest);
    ledger.append(draftOf(oldest));
  }
}
