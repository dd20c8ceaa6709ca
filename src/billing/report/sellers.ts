// What sellers named as their own amounts, next to what the ledger makes of the same requests.

import {
  addDecimals,
  addUsd,
  type Decimal,
  formatDecimal,
  parseDecimal,
  type Usd,
  ZERO_DECIMAL,
  ZERO_USD,
} from "../../lib/money.ts";
import { differsFromSeller } from "../charge.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import { readRow, type Row } from "../ledger/row.ts";
import type { ReportPeriod } from "./period.ts";

export interface SellerSums {
  requests: number;
  named: Decimal;
  charged: Usd;
  /** How many requests the ledger makes more or less of. */
  differ: number;
}

const NAMED = "provider_usd";

/** Lines without such an amount, which are nearly all, are not read. */
export function sumSellers(path: string, { since, until }: ReportPeriod): SellerSums {
  const sums: SellerSums = { requests: 0, named: ZERO_DECIMAL, charged: ZERO_USD, differ: 0 };
  using held = holdLedgerFiles(path);
  for (const source of held.sources)
    for (const { bytes, whole } of readFile(source)) {
      if (!whole || bytes.indexOf(NAMED) < 0) continue;
      eachLine(bytes, (from, to) => {
        const text = bytes.subarray(from, to);
        const row = text.indexOf(NAMED) < 0 ? null : readRow(text.toString());
        if (row === null || row.was !== null) return;
        if ((since === null || row.time >= since) && (until === null || row.time < until)) add(sums, row);
      });
    }
  return sums;
}

function add(sums: SellerSums, { line, official, charge }: Row): void {
  const named = readAmount(line[NAMED]);
  if (named === null) return;
  sums.requests += 1;
  sums.named = addDecimals(sums.named, named);
  if (charge !== null) sums.charged = addUsd(sums.charged, charge);
  if (official === null || differsFromSeller(formatDecimal(official), formatDecimal(named))) sums.differ += 1;
}

/** Null: it is not what a line should have. */
function readAmount(value: unknown): Decimal | null {
  try {
    return typeof value === "string" ? parseDecimal(value) : null;
  } catch {
    return null;
  }
}
