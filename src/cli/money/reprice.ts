// `gateway ledger reprice`: appends corrections for requests whose amounts differ with current prices. A
// running gateway writes them.

import { getErrorMessage } from "../../lib/errors.ts";
import type { Repricing } from "../../billing/ledger/line.ts";
import { type DueCorrection, findCorrections } from "../../billing/reports/reprice.ts";
import { type Ledger, openLedger } from "../../billing/ledger/ledger.ts";
import { type FileLock, takeLock } from "../../lib/files/file-lock.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { tryGateway } from "../access/control.ts";
import { readCurrentPrices } from "./in-use.ts";
import { findLedger, type LedgerFlags, openTable } from "./ledger-place.ts";
import { openConfig } from "../access/config.ts";
import { readPeriod } from "../../billing/reports/period.ts";
import { fail, print, printJson, printNote } from "../terminal/terminal.ts";
import { z } from "zod";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { formatCount } from "../terminal/text.ts";

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

/** Corrections go to the ledger in batches: a gateway serves between them, and the disk keeps up. */
const BATCH_SIZE = 500;

export async function repriceLedger(flags: RepriceFlags) {
  const path = findLedger(flags);
  const loaded = openConfig(flags);
  const query = {
    ...readPeriod(flags, { zone: loaded.catalog.zone, now: new Date() }),
    ...readCurrentPrices(loaded),
  };
  const changes = new Map<string, ModelChange>();
  using table = openTable(path, flags);
  const corrections = findCorrections(table, query).map((draft): Repricing => {
    addChange(changes, draft);
    return { ...draft, id: `cor_${Bun.randomUUIDv7("hex").replaceAll("-", "")}` };
  });
  const isDry = flags.dryRun === true;
  if (isDry) for (const _ of corrections);
  else await write(path, corrections);
  return listChanges(changes, isDry);
}

/** One `reprice` at a time: two would correct the same requests twice. A running gateway writes for it. */
async function write(path: string, corrections: Iterator<Repricing>): Promise<void> {
  const lock = lockReprice(path);
  let ledger: Ledger | null = null;
  try {
    ledger = (await findRunning(path)) ? null : openToWrite(path);
    for (let batch = nextBatch(corrections); batch.length > 0; batch = nextBatch(corrections))
      if (ledger === null) await writeThrough(path, batch);
      else await writeAlone(ledger, batch);
  } finally {
    await ledger?.close();
    lock.release();
  }
  if (ledger !== null) requireWritten(ledger);
}

function nextBatch(corrections: Iterator<Repricing>): Repricing[] {
  return Iterator.from({ next: () => corrections.next() })
    .take(BATCH_SIZE)
    .toArray();
}

function lockReprice(path: string): FileLock {
  try {
    return takeLock(`${path}.reprice.lock`);
  } catch (error) {
    return fail(`Corrections cannot be written: ${getErrorMessage(error)}.`);
  }
}

export async function findRunning(path: string): Promise<boolean> {
  return (await tryGateway({ ledgerPath: path }, "GET", "reports/state")) !== null;
}

async function writeThrough(path: string, body: readonly Repricing[]): Promise<void> {
  const reply = await tryGateway({ ledgerPath: path, body }, "POST", "actions/correct-ledger");
  if (reply === null) fail("The gateway has ended. Repeat the command: it writes what is left.");
}

/** Without rotation, because files must keep their names while they are read. */
async function writeAlone(ledger: Ledger, corrections: readonly Repricing[]): Promise<void> {
  for (const draft of corrections) ledger.correct({ ...draft, time: new Date().toISOString() });
  await new Promise<void>((resolve) => setImmediate(resolve));
  requireWritten(ledger);
}

function requireWritten({ problem }: Ledger): void {
  if (problem !== null) fail(`Not all corrections were written: ${problem}.`);
}

export function openToWrite(path: string): Ledger {
  try {
    return openLedger({ path, rotate: { monthly: false }, report: (text) => printNote(text) });
  } catch (error) {
    return fail(
      `The ledger cannot be written: ${getErrorMessage(error)}. Stop the gateway first, or use --dry-run.`,
    );
  }
}

function addChange(
  changes: Map<string, ModelChange>,
  { model, was, charge_usd: charge }: DueCorrection,
): void {
  const change = changes.get(model) ?? { requests: 0, fresh: 0, was: ZERO_USD, now: ZERO_USD };
  changes.set(model, change);
  change.requests += 1;
  if (was.charge_usd === null) change.fresh += 1;
  else change.was = addUsd(change.was, parseUsd(was.charge_usd));
  change.now = addUsd(change.now, parseUsd(charge ?? "0"));
}

function listChanges(changes: ReadonlyMap<string, ModelChange>, isDry: boolean) {
  const rows = Array.from(changes, ([model, { requests, fresh, was, now }]) => ({
    model,
    requests,
    unpriced: fresh,
    was_usd: formatUsd(was),
    now_usd: formatUsd(now),
  }));
  const corrections = rows.reduce((sum, { requests }) => sum + requests, 0);
  const note = isDry
    ? "Dry run: nothing was written."
    : "A correction was appended for each of these requests.";
  return {
    rows,
    document: { dry_run: isDry, corrections, models: rows },
    empty: "Nothing to do: all amounts match current prices.",
    notes: [note],
  };
}

const reply = z.object({ accepted: z.array(z.string()) });

export async function acceptLedger(flags: LedgerFlags & { readonly json?: true }): Promise<void> {
  const path = findLedger(flags);
  const isRunning = await findRunning(path);
  const accepted = isRunning
    ? reply.parse(await tryGateway({ ledgerPath: path }, "POST", "actions/accept-ledger")).accepted
    : await acceptAlone(path);
  if (flags.json === true) return printJson({ accepted });
  for (const mark of accepted) print(escapeUnprintable(mark));
  printNote(
    accepted.length === 0
      ? "Nothing to accept: no start has found anything that is not accepted."
      : `${formatCount(accepted.length, "finding")} accepted. Limits count the ledger as it is.`,
  );
}

async function acceptAlone(path: string): Promise<readonly string[]> {
  const ledger = openToWrite(path);
  const accepted = ledger.acceptMarks().map(({ mark }) => mark);
  await ledger.close();
  return accepted;
}
