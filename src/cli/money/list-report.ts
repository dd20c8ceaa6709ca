// A report of the ledger as a command: its name in the running gateway, and which list of it is shown. This file is loaded
// with the table of commands, so it loads the rest when it is needed.

import type { PeriodReport, REPORTS } from "../../gateway/api/reports.ts";
import { drawRows, type ListColumn } from "../terminal/listing.ts";
import type { ReportFlags } from "./show.ts";

interface ListedReport<Document, Row> {
  readonly rows: (document: Document) => readonly Row[];
  readonly columns: ReadonlyArray<ListColumn<Row>>;
  readonly empty: string;
  readonly note: string;
}

export function listReport<Name extends PeriodReport, Row extends object>(
  name: Name,
  { rows, columns, empty, note }: ListedReport<ReturnType<(typeof REPORTS)[Name]["ofScope"]>, Row>,
) {
  return async (period: string | undefined, flags: ReportFlags): Promise<void> => {
    const { z } = await import("zod");
    const { showReport } = await import("./show.ts");
    const reports = (await import("../../gateway/api/reports.ts")).REPORTS;
    const known = z.custom<ReturnType<(typeof REPORTS)[Name]["ofScope"]>>();
    showReport({ ...flags, period }, ({ table, scope, clock }) => {
      const document = reports[name].ofScope(table, scope, clock);
      const found = rows(known.parse(document));
      return {
        document,
        parts: () => [drawRows(found, columns)],
        notes: () => [found.length === 0 ? empty : note],
      };
    });
  };
}
