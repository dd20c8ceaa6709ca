// `gateway report`: a file about a session or a period that can be shown to others.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { reportEvidence } from "../../billing/reports/evidence.ts";
import { isPeriod } from "../../billing/reports/period.ts";
import { readPlain, replaceFile } from "../../lib/files/own-file.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { writeHtml, writeMarkdown } from "../../web/report-file.ts";
import { fail } from "../terminal/terminal.ts";
import { type ReportFlags, type Shown, showReport } from "./show.ts";

export interface EvidenceFlags extends ReportFlags {
  readonly output?: string;
  readonly markdown?: true;
  readonly labels?: true;
}

/** `what`: a period, or a session's id, its beginning or `last`. */
export function writeReport(what: string | undefined, flags: EvidenceFlags): void {
  const { since, until, output, markdown = false, labels: hasLabels = false } = flags;
  const usual = since === undefined && until === undefined ? "7d" : undefined;
  const named = what === undefined || isPeriod(what) ? { period: what ?? usual } : { session: what };
  showReport({ ...flags, ...named }, ({ table, scope, clock }): Shown => {
    const document = reportEvidence(table, scope, hasLabels);
    return {
      document,
      parts: () => {
        if (document.requests === 0) return fail("There are no requests in this period.");
        const text = markdown ? writeMarkdown(document) : writeHtml(document);
        const path =
          output ?? (markdown ? "-" : `gateway-report-${clock.now.toISOString().slice(0, 10)}.html`);
        if (path === "-") return text.trimEnd().split("\n");
        // Words of the user could be lost.
        if (existsSync(path) && !isUnchanged(readPlain(path)))
          return fail(`${path} exists, and is not an unchanged report: name another file, or remove it.`);
        replaceFile(path, seal(text), { mode: 0o644 });
        return [resolve(path)];
      },
    };
  });
}

/** Nobody sees the comment, in HTML or in Markdown. */
function seal(text: string): string {
  return `${text}<!-- gateway report ${sha256Hex(text)} -->\n`;
}

/** A report to which nobody has added a word, or an empty file. */
function isUnchanged(file: string): boolean {
  return file === "" || file === seal(file.slice(0, file.lastIndexOf("<!-- gateway report ")));
}
