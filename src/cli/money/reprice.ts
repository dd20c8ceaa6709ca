// `gateway ledger reprice`: appends corrections for requests whose amounts differ with current prices.

import { findCorrections, type Repricing } from "../../billing/report/reprice.ts";
import { type Ledger, openLedger } from "../../billing/ledger/ledger.ts";
import { createZone } from "../../lib/text/zone.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { readCurrentPrices } from "./current-prices.ts";
import { findLedger, type LedgerFlags } from "./ledger-place.ts";
import { describe, openConfig } from "../config-access.ts";
import { readPeriod } from "./period.ts";
import { printTable } from "../terminal/table.ts";
import { fail, printJson, printNote } from "../terminal/terminal.ts";

export interface RepriceFlags extends LedgerFlags {
  readonly since: string;
  readonly until?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

interface ModelChange {
  requests: number;
  /** Requests that had no amounts before. */
  fresh: number;
  was: Usd;
  now: Usd;
}

/** Lines wait in memory until they are written. After this many, the loop pauses for the disk. */
const LINES_PER_PAUSE = 1000;

export async function repriceLedger(flags: RepriceFlags): Promise<void> {
  const path = findLedger(flags);
  const loaded = openConfig(flags);
  const query = {
    ...readPeriod(flags, { zone: createZone(loaded.catalog.timezone), now: new Date() }),
    ...readCurrentPrices(loaded),
  };
  const changes = new Map<string, ModelChange>();
  const ledger = flags.dryRun === true ? null : openForCorrections(path);
  let count = 0;
  for (const draft of findCorrections(path, query)) {
    count += 1;
    addChange(changes, draft);
    ledger?.correct({
      id: `cor_${Bun.randomUUIDv7("hex").replaceAll("-", "")}`,
      time: new Date().toISOString(),
      ...draft,
    });
    if (count % LINES_PER_PAUSE === 0) await new Promise<void>((resolve) => setImmediate(resolve));
    if (ledger !== null && ledger.problem !== null) break;
  }
  await ledger?.close();
  if (ledger !== null && ledger.problem !== null)
    fail(`Not all corrections were written: ${ledger.problem}.`);
  printChanges(changes, flags);
}

/** Without rotation, because files must keep their names while they are read. */
function openForCorrections(path: string): Ledger {
  try {
    return openLedger({ path, sync: "batch", rotate: { bytes: null, monthly: false }, report: printNote });
  } catch (error) {
    return fail(
      `Corrections cannot be written: ${describe(error)}. Stop the gateway first, or use --dry-run.`,
    );
  }
}

function addChange(changes: Map<string, ModelChange>, { model, was, charge_usd: charge }: Repricing): void {
  const change = changes.get(model) ?? { requests: 0, fresh: 0, was: ZERO_USD, now: ZERO_USD };
  changes.set(model, change);
  change.requests += 1;
  if (was.charge_usd === null) change.fresh += 1;
  else change.was = addUsd(change.was, parseUsd(was.charge_usd));
  change.now = addUsd(change.now, parseUsd(charge ?? "0"));
}

function printChanges(changes: ReadonlyMap<string, ModelChange>, { dryRun, json }: RepriceFlags): void {
  const rows = Array.from(changes, ([model, { requests, fresh, was, now }]) => ({
    model,
    requests,
    unpriced: fresh,
    was_usd: formatUsd(was),
    now_usd: formatUsd(now),
  }));
  if (json === true) {
    printJson({
      dry_run: dryRun === true,
      corrections: rows.reduce((sum, { requests }) => sum + requests, 0),
      models: rows,
    });
    return;
  }
  if (rows.length === 0) {
    printNote("Nothing to do: all amounts match current prices.");
    return;
  }
  printTable(
    [
      { title: "MODEL", name: true },
      { title: "REQUESTS", align: "right" },
      { title: "UNPRICED", align: "right" },
      { title: "WAS $", align: "right" },
      { title: "NOW $", align: "right" },
    ],
    rows.map((row) => [row.model, String(row.requests), String(row.unpriced), row.was_usd, row.now_usd]),
  );
  printNote(
    dryRun === true
      ? "Dry run: nothing was written."
      : "A correction was appended for each of these requests.",
  );
}
