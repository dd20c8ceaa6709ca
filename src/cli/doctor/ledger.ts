// The ledger in `gateway doctor`. `ledger verify` checks more.

import { accessSync, constants, existsSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describeWarning, findWarning, listLimitUses } from "../../billing/limits/alerts.ts";
import { openSums } from "../../billing/limits/spending.ts";
import { listMarks } from "../../billing/ledger/mark.ts";
import { judgeLedger } from "../../billing/ledger/recovery.ts";
import { ALL, sumRequests } from "../../billing/reports/sums.ts";
import { reportVersions } from "../../billing/reports/versions.ts";
import { describeChange } from "../../billing/reports/words.ts";
import { Table } from "../../billing/store/open.ts";
import type { Catalog } from "../../config/catalog.ts";
import { messageOf } from "../../lib/errors.ts";
import { LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import { requireOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { formatBytes, formatCount } from "../terminal/text.ts";
import { bad, type Check, type Examined, type DoctorFinding, good, note } from "./finding.ts";

const VERIFY = "gateway ledger verify";

export const checkLedger: Check = (examined) => {
  const { path } = examined.catalog.ledger;
  const broken = findUnwritable(path) ?? findHolder(examined) ?? findProblem(examined);
  if (broken !== null) return broken;
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return good("ledger", `${path} (not created yet)`);
  if (PLATFORM.hasModes && (stats.mode & 0o077) !== 0)
    return note("ledger", "other users of this machine can read it", PLATFORM.keepOut(path));
  return good("ledger", `${path} (${formatBytes(stats.size)})`);
};

export const checkOwnFiles: Check = ({ path, catalog: { ledger } }) => {
  const ends = ["", ".lock", ".open", ".torn"].map((end) => ledger.path + end);
  return [join(dirname(path), `.${basename(path)}.lock`), ...ends].flatMap((file) => {
    try {
      requireOwn(file, file === ledger.path);
      return [];
    } catch (error) {
      return [bad("files", messageOf(error), `ls -li ${quoteWord(file)}`)];
    }
  });
};

function findUnwritable(path: string): DoctorFinding | null {
  let place = path;
  while (!existsSync(place)) place = dirname(place);
  try {
    accessSync(place, constants.W_OK);
    return null;
  } catch {
    const fix = `chown or chmod ${place}, or change ledger.path`;
    return bad("ledger", `this user cannot write ${place}`, fix);
  }
}

function findHolder({ running, catalog }: Examined): DoctorFinding | null {
  const lock = `${catalog.ledger.path}.lock`;
  if (running !== null || !existsSync(lock)) return null;
  try {
    takeLock(lock).release();
    return null;
  } catch (error) {
    const untaken = `its lock cannot be taken: ${messageOf(error)}`;
    if (!(error instanceof LockHeld) || error.holder === null)
      return bad("ledger", untaken, `fuser ${quoteWord(lock)}`);
    const { pid, since } = error.holder;
    const detail = `process ${pid} has been writing it since ${since}, but does not answer`;
    return bad("ledger", detail, PLATFORM.end(pid));
  }
}

function findProblem({ running, catalog: { ledger } }: Examined): DoctorFinding | null {
  const problem = running?.ledger.problem ?? null;
  if (problem === null) return null;
  const look = `ls -l ${quoteWord(ledger.path)}; df -h ${quoteWord(dirname(ledger.path))}`;
  return bad("ledger", `the running gateway cannot write it: ${problem}`, look);
}

export const checkEnd: Check = ({ running, catalog: { ledger } }) => {
  if (running !== null || !existsSync(ledger.path)) return null;
  try {
    const { endState, doubts } = judgeLedger(ledger.path);
    const unnamed = formatCount(doubts.unnamed.length, "line");
    return [
      ...(endState === "unexplained" ? ["lines at its end are missing or changed"] : []),
      ...(doubts.unnamed.length > 0 ? [`${unnamed} at its end may not be the gateway's`] : []),
    ].map((text) => bad("ledger", text, VERIFY));
  } catch (error) {
    return bad("ledger", messageOf(error), `ls -li ${quoteWord(`${ledger.path}*`)}`);
  }
};

export const checkAmounts: Check = ({ catalog, isCopy }) => {
  const { path } = catalog.ledger;
  if (!existsSync(path)) return null;
  try {
    using table = new Table(path, { report: () => {}, isCopy });
    return [...describeAmounts(table, catalog), ...describeLimits(catalog, isCopy)];
  } catch (error) {
    const look = `ls -l ${quoteWord(dirname(path))}`;
    return bad("ledger", `it cannot be read: ${messageOf(error)}`, look);
  }
};

export function describeLimits(catalog: Catalog, isCopy = false): DoctorFinding[] {
  const now = Date.now();
  return listLimitUses(catalog.keys.values(), openSums(catalog, now, isCopy), now).flatMap((use) => {
    const warning = findWarning(use, catalog.alerts.at);
    return warning === null ? [] : note("limits", describeWarning(warning));
  });
}

export function describeAmounts(table: Table, { zone }: Catalog): DoctorFinding[] {
  const { unreadable } = table;
  const { unpriced } = sumRequests(table, {
    ...ALL,
    by: [],
    of: ["unpriced"],
  }).total.totals;
  const marks = listMarks(table).length;
  const are = unreadable === 1 ? "is" : "are";
  const lines = `${formatCount(unreadable, "line")} cannot be read and ${are} missing from all amounts`;
  const found = `starts of the gateway found ${formatCount(marks, "thing")} that nothing explains`;
  const lack = unpriced === 1 ? "has no price and is" : "have no price and are";
  const gaps = `${formatCount(unpriced, "request")} ${lack} in no amount`;
  const advice = "gateway usage --by model, then gateway prices check";
  return [
    ...(unreadable > 0 ? [bad("ledger", lines, VERIFY)] : []),
    ...(marks > 0 ? [bad("ledger", found, `${VERIFY}, then gateway ledger accept`)] : []),
    ...(unpriced > 0 ? [note("prices", gaps, advice)] : []),
    ...reportVersions(table, { zone, now: new Date() }).map((change) =>
      note("versions", describeChange(change)),
    ),
  ];
}
