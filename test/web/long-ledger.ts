// A ledger of a million lines in a few seconds: the same lines again and again, each with a time of its own. Reports
// read it like any other. Its chain of hashes is not right, which only verify notices.

import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { sumLedger } from "../../src/billing/report/report.ts";
import { formatUsd, type Usd, ZERO_USD, addUsd } from "../../src/lib/money.ts";
import { readIndex } from "../billing/ledger/ledger-samples.ts";
import { makeLedger } from "../billing/ledger/ledger-make.ts";

const TEMPLATE_LINES = 5000;
const TIME = '"time":"';
const TIME_CHARACTERS = 24;

/** Returns the sum of all charges, a decimal in USD. `start` and `end` are the times of the first and last request. */
export function makeLongLedger(
  path: string,
  repeats: number,
  [start, end]: readonly [number, number],
): string {
  makeLedger(path, TEMPLATE_LINES, { start, stepMs: 1, keys: ["messages", "responses", "relay"] });
  const charge = sumLedger(readIndex(path), { by: ["model"], since: null, until: null }).total.charge;
  const parts = readFileSync(path, "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => {
      const at = line.indexOf(TIME) + TIME.length;
      return [line.slice(0, at), `${line.slice(at + TIME_CHARACTERS)}\n`] as const;
    });
  const fd = openSync(path, "w", 0o600);
  const step = (end - start) / (repeats * TEMPLATE_LINES);
  let time = start;
  let total: Usd = ZERO_USD;
  for (let round = 0; round < repeats; round += 1) {
    const lines = parts.map(([head, tail]) => {
      time += step;
      return head + new Date(time).toISOString() + tail;
    });
    writeSync(fd, lines.join(""));
    total = addUsd(total, charge);
  }
  closeSync(fd);
  return formatUsd(total);
}
