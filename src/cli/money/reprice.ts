// `gateway ledger reprice` and `accept`.
// A running gateway writes what they append.

import { z } from "zod";
import { type Ledger, openLedger } from "../../billing/ledger/ledger.ts";
import type { Repricing } from "../../billing/ledger/line.ts";
import { type PeriodFlags, readPeriod } from "../../billing/reports/period.ts";
import { findCorrections } from "../../billing/reports/reprice.ts";
import { messageOf } from "../../lib/errors.ts";
import { type FileLock, takeLock } from "../../lib/files/file-lock.ts";
import { addUsd, formatUsd, parseUsd, ZERO_USD } from "../../lib/money.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { openConfig } from "../access/config.ts";
import { tryGateway } from "../access/control.ts";
import { findRunning } from "../access/running.ts";
import { fail, print, printJson, printNote, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";
import { readCurrentPrices } from "./in-use.ts";
import { findLedger, type LedgerFlags, openTable } from "../access/ledger-place.ts";

export interface RepriceFlags extends LedgerFlags, PeriodFlags {
  readonly dryRun?: true;
}

export async function repriceLedger(flags: RepriceFlags) {
  if ((flags.period ?? flags.since) === undefined)
    refuseUsage("Name the period whose requests get today's prices, such as 7d or --since 2026-11-20.");
  const path = findLedger(flags);
  // Two runs at once would correct requests twice.
  const lock = flags.dryRun === true ? null : lockReprice(path);
  try {
    return await repriceLocked(path, flags);
  } finally {
    lock?.release();
  }
}

async function repriceLocked(path: string, flags: RepriceFlags) {
  const loaded = openConfig(flags);
  const period = readPeriod(flags, { zone: loaded.catalog.zone, now: new Date() });
  const changes = new Map<string, ReturnType<typeof openChange>>();
  using table = openTable(path, flags);
  const found = findCorrections(table, period, readCurrentPrices(loaded)).map((draft): Repricing => {
    const { model, was, charge_usd: charge } = draft;
    const change = changes.getOrInsertComputed(model, () => openChange(model));
    change.requests += 1;
    const { charge_usd: before } = was;
    if (before === null) change.fresh += 1;
    change.was = addUsd(change.was, parseUsd(before ?? "0"));
    change.now = addUsd(change.now, parseUsd(charge));
    return { ...draft, id: `cor_${Bun.randomUUIDv7("hex").replaceAll("-", "")}` };
  });
  const isDry = flags.dryRun === true;
  const corrections = isDry ? found.toArray().length : await writeCorrections(path, found);
  const rows = Array.from(changes.values(), ({ was, now, fresh, ...change }) => {
    return {
      ...change,
      unpriced: fresh,
      was_usd: formatUsd(was),
      now_usd: formatUsd(now),
    };
  });
  return {
    rows,
    document: { dry_run: isDry, corrections, models: rows },
    empty: "Nothing to do: all amounts match current prices.",
    notes: [isDry ? "Dry run: nothing was written." : "A correction was appended for each request."],
  };
}

function openChange(model: string) {
  return {
    model,
    requests: 0,
    fresh: 0,
    was: ZERO_USD,
    now: ZERO_USD,
  };
}

/** Between two batches, the gateway serves requests. */
const BATCH_SIZE = 500;

async function writeCorrections(path: string, corrections: Iterator<Repricing>): Promise<number> {
  let ledger: Ledger | null = null;
  let count = 0;
  try {
    ledger = (await findRunning(path)) === null ? openToWrite(path) : null;
    for (;;) {
      const batch = Iterator.from({ next: () => corrections.next() })
        .take(BATCH_SIZE)
        .toArray();
      if (batch.length === 0) break;
      count += batch.length;
      if (ledger === null) await writeThrough(path, batch);
      else await writeAlone(ledger, batch);
    }
  } finally {
    await ledger?.close();
  }
  if (ledger !== null) requireWritten(ledger);
  return count;
}

function lockReprice(path: string): FileLock {
  try {
    return takeLock(`${path}.reprice.lock`);
  } catch (error) {
    return fail(`Corrections cannot be written: ${messageOf(error)}.`);
  }
}

async function writeThrough(path: string, body: readonly Repricing[]): Promise<void> {
  const reply = await tryGateway({ ledgerPath: path, body }, "POST", "actions/correct-ledger");
  if (reply === null) fail("The gateway has ended. Repeat the command: it writes what is left.");
}

async function writeAlone(ledger: Ledger, corrections: readonly Repricing[]): Promise<void> {
  for (const draft of corrections) ledger.correct({ ...draft, time: new Date().toISOString() });
  await new Promise<void>((resolve) => setImmediate(resolve));
  requireWritten(ledger);
}

function requireWritten({ problem }: Ledger): void {
  if (problem !== null) fail(`Not all corrections were written: ${problem}.`);
}

/** Opens the ledger without rotation, because its files are being read. */
function openToWrite(path: string): Ledger {
  try {
    return openLedger({
      path,
      rotate: { monthly: false },
      report: (text) => printNote(text),
    });
  } catch (error) {
    const why = messageOf(error);
    return fail(`The ledger cannot be written: ${why}. Stop the gateway first, or use --dry-run.`);
  }
}

const reply = z.object({ accepted: z.array(z.string()) });

export async function acceptLedger(flags: LedgerFlags & { readonly json?: true }): Promise<void> {
  const path = findLedger(flags);
  const answer =
    (await findRunning(path)) !== null
      ? await tryGateway({ ledgerPath: path }, "POST", "actions/accept-ledger")
      : await acceptAlone(path);
  const { accepted } = reply.parse(answer);
  if (flags.json === true) return printJson({ accepted });
  for (const mark of accepted) print(escapeText(mark));
  const count = formatCount(accepted.length, "finding");
  printNote(
    accepted.length === 0
      ? "Nothing to accept: no start has found a fault."
      : `${count} accepted. Limits count the ledger as it is.`,
  );
}

async function acceptAlone(path: string) {
  const ledger = openToWrite(path);
  const accepted = ledger.acceptMarks().map(({ mark }) => mark);
  await ledger.close();
  return { accepted };
}
