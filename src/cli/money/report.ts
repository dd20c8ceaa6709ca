// `gateway report`: a file about a session or a period, for others.

import { existsSync, lstatSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { reportEvidence } from "../../billing/reports/evidence.ts";
import { isPeriod } from "../../billing/reports/period.ts";
import { getErrorCode } from "../../lib/errors.ts";
import { readPlain, replaceFile } from "../../lib/files/own-file.ts";
import { isUnchanged, nameFile, writeHtml, writeMarkdown } from "../../web/report-file.ts";
import { fail, refuseUsage } from "../terminal/terminal.ts";
import { type ReportFlags, type Shown, showReport } from "./show.ts";

export interface EvidenceFlags extends ReportFlags {
  readonly output?: string;
  readonly markdown?: true;
  readonly labels?: true;
}

/** `what`: a period, or a session's id, its beginning or `last`. */
export function writeReport(what: string | undefined, flags: EvidenceFlags): void {
  const { since, until, output, json, markdown = false, labels: hasLabels = false } = flags;
  if (output === "") refuseUsage("--output needs the name of a file, or - for stdout.");
  if (json === true && (output ?? flags.markdown) !== undefined)
    refuseUsage("--json writes to stdout: it excludes --output and --markdown.");
  const usual = since === undefined && until === undefined ? "7d" : undefined;
  const named = what === undefined || isPeriod(what) ? { period: what ?? usual } : { session: what };
  showReport({ ...flags, ...named }, ({ table, scope }): Shown => {
    const document = reportEvidence(table, scope, hasLabels);
    return {
      document,
      parts: () => {
        if (document.requests === 0) return fail("There are no requests in this period.");
        const text = markdown ? writeMarkdown(document) : writeHtml(document);
        const path = output ?? (markdown ? "-" : nameFile(document));
        return path === "-" ? text.trimEnd().split("\n") : [save(text, resolve(path))];
      },
    };
  });
}

/** A file with the user's words stays, and so does a link. */
function save(text: string, path: string): string {
  const folder = dirname(path);
  if (!existsSync(folder)) return fail(`There is no folder ${folder}.`);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() === false)
    return fail(`${path} is a folder, a link or a device: name a file, or - for stdout.`);
  if (found !== undefined && !isUnchanged(readPlain(path)))
    return fail(`${path} exists, and is not an unchanged report: name another file, or remove it.`);
  try {
    replaceFile(path, text, { mode: 0o644 });
    return path;
  } catch (error) {
    return fail(`The report cannot be written to ${path} (${getErrorCode(error)}).`);
  }
}
