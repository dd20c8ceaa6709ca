// `gateway report`: a file about a session or a period that can be shown to others.

import { resolve } from "node:path";

import { reportEvidence } from "../../billing/reports/evidence.ts";
import { isPeriod } from "../../billing/reports/period.ts";
import { replaceFile } from "../../lib/files/own-file.ts";
import { writeHtml, writeMarkdown } from "../../web/report-file.ts";
import { fail, print, printJson } from "../terminal/terminal.ts";
import { readUsageQuery, reportUnreadable, type UsageFlags } from "./usage.ts";

export interface ReportFlags extends Pick<UsageFlags, "ledger" | "config" | "json" | "since" | "until"> {
  readonly output?: string;
  readonly markdown?: true;
  readonly labels?: true;
}

/** `what`: a period, or a session's id, its beginning or `last`. */
export function writeReport(what: string | undefined, flags: ReportFlags): void {
  const { output, markdown = false, labels: hasLabels = false, ...others } = flags;
  const named = nameScope(what, others);
  const { clock, period, only, ...opened } = readUsageQuery({ ...others, ...named, by: "session" });
  using table = opened.table;
  const report = reportEvidence(table, { ...period, only, hasLabels });
  if (flags.json === true) return printJson(report);
  if (report.total.requests === 0) return fail("There are no requests in this period.");
  const text = markdown ? writeMarkdown(report) : writeHtml(report);
  const path = output ?? (markdown ? "-" : `gateway-report-${clock.now.toISOString().slice(0, 10)}.html`);
  if (path === "-") for (const line of text.trimEnd().split("\n")) print(line);
  else {
    replaceFile(path, text, { mode: 0o644 });
    print(resolve(path));
  }
  reportUnreadable(report);
}

function nameScope(
  what: string | undefined,
  { since, until }: ReportFlags,
): Pick<UsageFlags, "period" | "session"> {
  if (what === undefined) return since === undefined && until === undefined ? { period: "7d" } : {};
  return isPeriod(what) ? { period: what } : { session: what };
}
