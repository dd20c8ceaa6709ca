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
  if (flags.dryRun === true) {
    for (const draft of findCorrections(table, query)) addChange(changes, draft);
  } else {
    await using writer = await openWriter(path);
    let batch: Repricing[] = [];
    for (const draft of findCorrections(table, query)) {
      addChange(changes, draft);
      batch.push({ ...draft, id: `cor_${Bun.randomUUIDv7("hex").replaceAll("-", "")}` });
      if (batch.length < BATCH_SIZE) continue;
      await writer.write(batch);
      batch = [];
    }
    if (batch.length > 0) await writer.write(batch);
  }
  return listChanges(changes, flags.dryRun === true);
}

interface CorrectionWriter extends AsyncDisposable {
  write(corrections: readonly Repricing[]): Promise<void>;
}

/** One `reprice` at a time: two would correct the same requests twice. A running gateway writes for it. */
async function openWriter(path: string): Promise<CorrectionWriter> {
  const lock = lockReprice(path);
  try {
    const write = (await findRunning(path)) ? writeThrough(path) : writeAlone(path);
    return { write: write.write, [Symbol.asyncDispose]: () => write.close().finally(() => lock.release()) };
  } catch (error) {
    lock.release();
    throw error;
  }
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

interface Writing {
  readonly write: (corrections: readonly Repricing[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

function writeThrough(path: string): Writing {
  return {
    write: async (body) => {
      const reply = await tryGateway({ ledgerPath: path, body }, "POST", "actions/correct-ledger");
      if (reply === null) fail("The gateway has ended. Repeat the command: it writes what is left.");
    },
    close: async () => {},
  };
}

/** Without rotation, because files must keep their names while they are read. */
function writeAlone(path: string): Writing {
  const ledger = openToWrite(path);
  const requireWritten = (): void => {
    if (ledger.problem !== null) fail(`Not all corrections were written: ${ledger.problem}.`);
  };
  return {
    write: async (corrections) => {
      for (const draft of corrections) {
        ledger.correct({ ...draft, time: new Date().toISOString() });
      }
      await new Promise<void>((resolve) => setImmediate(resolve));
      requireWritten();
    },
    close: async () => {
      await ledger.close();
      requireWritten();
    },
  };
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
  const accepted = (await findRunning(path)) ? await acceptThrough(path) : await acceptAlone(path);
  if (flags.json === true) return printJson({ accepted });
  for (const mark of accepted) print(escapeUnprintable(mark));
  printNote(
    accepted.length === 0
      ? "Nothing to accept: no start has found anything that is not accepted."
      : `${formatCount(accepted.length, "finding")} accepted. Limits count the ledger as it is.`,
  );
}

async function acceptThrough(path: string): Promise<readonly string[]> {
  return reply.parse(await tryGateway({ ledgerPath: path }, "POST", "actions/accept-ledger")).accepted;
}

async function acceptAlone(path: string): Promise<readonly string[]> {
  const ledger = openToWrite(path);
  const accepted = ledger.acceptMarks().map(({ mark }) => mark);
  await ledger.close();
  return accepted;
}
