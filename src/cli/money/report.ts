// `gateway report`: a file about a session or a period that can be shown to others.

import { writeFileSync } from "node:fs";
import { resolve } from "node:path";

import { reportEvidence } from "../../billing/reports/evidence.ts";
import { isPeriod, readPeriodWord } from "../../billing/reports/period.ts";
import { writeHtml, writeMarkdown } from "../../web/report-file.ts";
import { fail, print, printJson } from "../terminal/terminal.ts";
import { findSession, readUsageQuery, reportUnreadable, type UsageFlags } from "./usage.ts";

export interface ReportFlags extends Pick<UsageFlags, "ledger" | "config" | "json"> {
  readonly output?: string;
  readonly markdown?: true;
  readonly labels?: true;
}

/** `words`: a period, or a session's id, its beginning or `last`. */
export function writeReport(words: string, flags: ReportFlags): void {
  const { output, markdown = false, labels: hasLabels = false, ...others } = flags;
  const { clock, ...opened } = readUsageQuery({ ...others, by: "session" });
  using table = opened.table;
  const period = isPeriod(words, clock) ? readPeriodWord(words, clock) : null;
  const scope = period ?? { since: null, until: null, only: { session: findSession(table, words) } };
  const report = reportEvidence(table, { ...scope, hasLabels });
  if (flags.json === true) return printJson(report);
  if (report.total.requests === 0) return fail("There are no requests in this period.");
  const text = markdown ? writeMarkdown(report) : writeHtml(report);
  const path = output ?? (markdown ? "-" : `gateway-report-${clock.now.toISOString().slice(0, 10)}.html`);
  if (path === "-") for (const line of text.trimEnd().split("\n")) print(line);
  else {
    writeFileSync(path, text);
    print(resolve(path));
  }
  reportUnreadable(report);
}
