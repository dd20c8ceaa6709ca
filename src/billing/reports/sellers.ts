// What sellers named as their own amounts, next to what the ledger makes of the same requests.

import { type Decimal } from "../../lib/money.ts";
import type { Table } from "../store/open.ts";
import { addAmount, describeScope, readList, type Scope } from "./sums.ts";

export interface SellerSums {
  readonly requests: number;
  readonly named: Decimal;
  readonly charged: Decimal;
  /** How many requests the ledger makes more or less of. */
  readonly differ: number;
}

/** By more than a millionth of a dollar and one percent. */
const DIFFERS =
  "official IS NULL OR (ABS(official - named) > 1000000 AND ABS(official - named) * 100 > named)";

export function sumSellers(table: Table, scope: Scope): SellerSums {
  const { sql, values } = describeScope(scope);
  const [[requests, named = null, charged = null, differ, text = null] = []] = table.list(
    `SELECT COUNT(*), SUM(named), SUM(charge), COUNT(*) FILTER (WHERE ${DIFFERS}),
       group_concat(exact)
     FROM requests WHERE named IS NOT NULL AND ${sql}`,
    values,
  );
  const exact = readList(text);
  return {
    requests: Number(requests),
    named: addAmount(named, exact, "named"),
    charged: addAmount(charged, exact, "charge"),
    differ: Number(differ),
  };
}
