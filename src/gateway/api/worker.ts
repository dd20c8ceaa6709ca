// The thread with the table of a gateway's ledger.

import { Table } from "../../billing/store/open.ts";
import { messageOf } from "../../lib/errors.ts";
import { Refusal } from "../../lib/refusal.ts";
import { createZone } from "../../lib/text/zone.ts";
import { findReport } from "./reports.ts";

/** This much is read in one go: 0.1 s of CPU. */
const STEP_BYTES = 4 << 20;

export interface ReportQuestion {
  readonly id: number;
  /** Null: brings the table up to date. */
  readonly name: string | null;
  readonly input: Readonly<Record<string, unknown>>;
  readonly ledgerPath: string;
  readonly timezone: string;
}

let table: Table | null = null;

function openTable(ledgerPath: string): Table {
  if (table?.isInMemory === true) table.advance();
  else {
    table?.[Symbol.dispose]();
    const report = (note: string): void => postMessage({ note });
    // The first report checks whether somebody has changed the file.
    table = new Table(ledgerPath, { report, most: STEP_BYTES, compares: table === null });
  }
  return table;
}

async function answer({ name, input, ledgerPath, timezone }: ReportQuestion): Promise<unknown> {
  const report = name === null ? null : findReport(name);
  if (report?.isPartial !== true) while (openTable(ledgerPath).read < 1) await Bun.sleep(0);
  const now = new Date();
  const document = report?.run(openTable(ledgerPath), input, { zone: createZone(timezone), now });
  return { ...document, as_of: now.toISOString() };
}

globalThis.addEventListener("message", ({ data }: MessageEvent<ReportQuestion>) => {
  const { id } = data;
  void answer(data).then(
    (found) => postMessage({ id, answer: found }),
    (error: unknown) =>
      postMessage({
        id,
        error: messageOf(error),
        ...(error instanceof Refusal && { isRefusal: true }),
      }),
  );
});
