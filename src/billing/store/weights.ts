// Checksums of the table's rows. They are noted when lines are read, and compared later.
// SQL adds up the numbers, and `weighText` hashes names and exact amounts.

import { getList, parseJson } from "../../lib/json/json.ts";
import { KIND_COLUMNS, NAMES, type TableDatabase } from "./schema.ts";

const PRIME = 1_000_000_007;

function weigh(names: readonly string[]): string {
  const sum = names.map((name, at) => `IFNULL(${name}, -1) * ${2 * at + 3}`).join(" + ");
  return `SUM((${sum}) % ${PRIME} * (at % 997 + line % 991 + 1) % ${PRIME})`;
}

/** SQL for the checksum of the amounts that limits depend on. */
export const PAID = {
  payer: "json_array(key, group_name, channel, paid_by)",
  amounts: weigh(["official", "charge", "counted"]),
  exact: "group_concat(IIF(exact IS NULL, NULL, json_array(line, at, exact)))",
};

function describeWeights(from: string): string {
  return `SELECT ${PAID.payer}, paid, exact, json_array(${NAMES.join(", ")}), own, more,
      first IS first_at AND last IS last_at
    FROM (SELECT who, ${PAID.amounts} AS paid, ${PAID.exact} AS exact, MIN(at) AS first, MAX(at) AS last,
        ${weigh([...KIND_COLUMNS, "missed", "hour", "missed_tokens"])} AS own,
        group_concat(IIF(more IS NULL, NULL, json_array(line, more))) AS more
      FROM ${from} GROUP BY who) CROSS JOIN names USING (who)`;
}

/** The weights of parts of a table add up to the weight of all rows, modulo 2^32.
 *  `hasTimes`: each row of `names` has the times of its first and last line. */
export function weighRows(database: TableDatabase, from: string, $line = 0) {
  const sum = { paid: 0, weight: 0, hasTimes: true };
  const rows = database.query(describeWeights(from)).values({ $line });
  for (const [payer, paid, exact, names, own, more, isRight] of rows) {
    sum.paid += weighText(payer, paid, exact);
    sum.weight += weighText(names, own, more);
    sum.hasTimes &&= isRight === 1;
  }
  return sum;
}

/** `rare` joins JSON arrays with commas: one for each row that has rare values. */
export function weighText(text: unknown, sum: unknown, rare: unknown): number {
  const hash = (row: unknown): number => Bun.hash.xxHash32(String(text) + JSON.stringify(row)) | 0;
  const rows = typeof rare === "string" ? getList(parseJson(`[${rare}]`)) : [];
  return rows.reduce<number>((all, row) => (all + hash(row)) | 0, Math.imul(Number(sum), hash(null)));
}

export function isZero(difference: number): boolean {
  return difference % 2 ** 32 === 0;
}
