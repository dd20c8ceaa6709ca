// `gateway report`: a file about a session or a period, for others.

import { lstatSync } from "node:fs";
import { resolve } from "node:path";
import { reportEvidence } from "../../billing/reports/evidence.ts";
import { isPeriod } from "../../billing/reports/period.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { createFile, readPlain, replaceFile } from "../../lib/files/own-file.ts";
import { isUnchanged, nameFile, writeHtml, writeMarkdown } from "../../web/report-file.ts";
import { fail, refuseUsage } from "../terminal/terminal.ts";
import { type ReportFlags, type Shown, showReport } from "./show.ts";

export interface EvidenceFlags extends ReportFlags {
  readonly output?: string;
  readonly markdown?: true;
  readonly labels?: true;
}

export function writeReport(what: string | undefined, flags: EvidenceFlags): void {
  const { since, until, output, json, labels: hasLabels = false } = flags;
  if (output === "") refuseUsage("--output needs a file, or - for stdout.");
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
        const isMarkdown = flags.markdown ?? /\.(?:md|markdown)$/i.test(output ?? "");
        const text = isMarkdown ? writeMarkdown(document) : writeHtml(document);
        if (output === "-" || (output === undefined && isMarkdown)) return text.trimEnd().split("\n");
        return [output === undefined ? saveNew(text, nameFile(document)) : save(text, resolve(output))];
      },
    };
  });
}

const ADVICE = "name another file with -o, or - for stdout";

/** Adds a number if a report of the same second has the name. */
function saveNew(text: string, name: string): string {
  for (let count = 1; ; count += 1) {
    const path = resolve(count === 1 ? name : name.replace(".html", `-${count}.html`));
    try {
      createFile(path, text, { mode: 0o644 });
      return path;
    } catch (error) {
      if (codeOf(error) !== "EEXIST") return refuse(path, error);
    }
  }
}

function save(text: string, path: string): string {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found?.isFile() === false) return fail(`${path} is a folder, a link or a device: ${ADVICE}.`);
    if (found !== undefined && !isUnchanged(readPlain(path)))
      return fail(`${path} is not a report, or it was changed: ${ADVICE}.`);
    replaceFile(path, text, { mode: 0o644 });
    return path;
  } catch (error) {
    return refuse(path, error);
  }
}

function refuse(path: string, error: unknown): never {
  const [, why] = /^E[A-Z]+: ([^,]+)/.exec(messageOf(error)) ?? [];
  if (why === undefined) throw error;
  return fail(`The report cannot be written to ${path} (${why}): ${ADVICE}.`);
}
