// Compares the sums of the index with those of the lines. The index proves nothing, but reports have its sums.

import { addDecimals, addUsd, type Decimal, formatDecimal, formatUsd, type Usd } from "../../lib/money.ts";
import { subtractDecimals, subtractUsd, ZERO_DECIMAL, ZERO_USD } from "../../lib/money.ts";
import type { LedgerIndex } from "../index/ledger-index.ts";
import { openIndexFile } from "../index/open.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import { type Row, rowOf } from "../ledger/row.ts";
import { sumLedger } from "../report/report.ts";
import { INDEX_DIFFERS, type Problem } from "./finding.ts";

const NAMES = ["day", "key", "group", "channel", "model", "tool", "label"] as const;

function nameRow({ time, key, group, channel, model, client }: Row): string {
  const names = [time.slice(0, 10), key, group, channel, model, client?.tool, client?.label];
  return JSON.stringify(names.map((name) => name ?? ""));
}

interface Sum {
  requests: number;
  official: Decimal;
  charge: Usd;
}

export class IndexSums {
  readonly #index: LedgerIndex | null;
  readonly #sums = new Map<string, Sum>();
  #left: number;

  /** To be called before the ledger is read: lines that are written meanwhile are not compared. */
  constructor(path: string) {
    using held = holdLedgerFiles(path);
    this.#index = openIndexFile(path, held.sources, () => {});
    this.#left = this.#index?.progress.lines ?? 0;
  }

  add(line: unknown): void {
    if (this.#left === 0) return;
    this.#left -= 1;
    const row = rowOf(line);
    if (row === null || row.line["mark"] !== undefined) return;
    const open = (): Sum => ({ requests: 0, official: ZERO_DECIMAL, charge: ZERO_USD });
    const sum = this.#sums.getOrInsertComputed(nameRow(row), open);
    if (row.was === null) sum.requests += 1;
    const official = addDecimals(sum.official, row.official ?? ZERO_DECIMAL);
    sum.official = subtractDecimals(official, row.was?.official ?? ZERO_DECIMAL);
    sum.charge = subtractUsd(addUsd(sum.charge, row.charge ?? ZERO_USD), row.was?.charge ?? ZERO_USD);
  }

  findProblem(): Problem | null {
    if (this.#index === null) return null;
    using index = this.#index;
    const rows = listRows(index);
    if (rows === null) return INDEX_DIFFERS;
    const indexed = new Map(rows.map(({ names, totals }) => [JSON.stringify(names), describe(totals)]));
    const real = Array.from(this.#sums, ([name, sum]) => [name, describe(sum)] as const);
    const isSame = real.length === indexed.size && real.every(([name, text]) => indexed.get(name) === text);
    return isSame ? null : INDEX_DIFFERS;
  }
}

/** Null: the index is damaged. */
function listRows(index: LedgerIndex): ReturnType<typeof sumLedger>["rows"] | null {
  try {
    return sumLedger(index, { by: NAMES, since: null, until: null }).rows;
  } catch {
    return null;
  }
}

function describe({ requests, official, charge }: Sum): string {
  return `${requests} ${formatDecimal(official)} ${formatUsd(charge)}`;
}
