// `gateway doctor` on the ledger: whether it can be written, who writes it, whether its end is complete, and free disk
// space. `gateway ledger verify` checks amounts and the chain.

import { getErrorMessage } from "../../lib/errors.ts";
import { accessSync, closeSync, constants, existsSync, fstatSync, statfsSync, statSync } from "node:fs";
import { basename, dirname } from "node:path";
import { listMarks } from "../../billing/index/ledger-index.ts";
import { openIndex } from "../../billing/index/open.ts";
import { parseLine } from "../../billing/ledger/line.ts";
import { readBackToNewline } from "../../billing/ledger/reader.ts";
import { requireJournal } from "../../billing/ledger/journal.ts";
import { countUnfinished, judgeLedger } from "../../billing/ledger/start/recovery.ts";
import { countGaps, sumLedger } from "../../billing/report/report.ts";
import type { Catalog } from "../../config/catalog.ts";
import { LockHeld, takeLock } from "../../lib/files/file-lock.ts";
import { openPlain, requireOwn } from "../../lib/files/own-file.ts";
import { PLATFORM } from "../../lib/files/platform.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import type { RunningGateway } from "../access/running.ts";
import { bad, type Finding, good, note } from "./finding.ts";
import { formatBytes, formatCount } from "../terminal/text.ts";

export function checkLedger({ ledger }: Catalog, running: RunningGateway | null): Finding[] {
  const { path } = ledger;
  const broken =
    findUnwritable(path) ?? findForeign(path) ?? findHolder(path, running) ?? findProblem(path, running);
  if (broken !== null) return [broken];
  const findings = [...checkFile(path), ...(running === null ? findLeftovers(path) : [])];
  if (findings.some(({ state }) => state === "wrong")) return findings;
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  const state = size === undefined ? "not created yet" : formatBytes(size);
  return [good("ledger", `${path} (${state})`), ...findings];
}

/** Nothing if it is not created yet. */
function checkFile(path: string): Finding[] {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return [];
  const isOpen = PLATFORM.hasModes && (stats.mode & 0o077) !== 0;
  const readable = note("ledger", "other users of this machine can read it", PLATFORM.keepOut(path));
  return [...(isOpen ? [readable] : []), ...tryFindDamage(path)];
}

function tryFindDamage(path: string): Finding[] {
  try {
    return findDamage(path);
  } catch (error) {
    return [
      bad("ledger", `it cannot be read: ${getErrorMessage(error)}`, `ls -l ${quoteWord(dirname(path))}`),
    ];
  }
}

/** What every report would leave out. */
function findDamage(path: string): Finding[] {
  using index = openIndex(path, () => {});
  const { unreadable, rows } = sumLedger(index, { by: ["model"], since: null, until: null });
  const unpriced = rows.flatMap(({ names, totals }) => {
    const count = countGaps(totals).unpriced;
    if (count <= 0) return [];
    const detail = `${formatCount(count, "request")} ${count === 1 ? "has no price and is" : "have no price and are"} in no amount`;
    return [note(`model ${names.join()}`, detail, ADD_PRICE)];
  });
  const marks = listMarks(index).size;
  if (marks > 0) {
    const found = `starts have found ${formatCount(marks, "thing")} that nothing explains`;
    unpriced.unshift(bad("ledger", found, `${VERIFY}, then gateway ledger accept`));
  }
  if (unreadable === 0) return unpriced;
  const lines = `${formatCount(unreadable, "line")} cannot be read and ${unreadable === 1 ? "is" : "are"} missing from all amounts`;
  return [bad("ledger", lines, VERIFY), ...unpriced];
}

const VERIFY = "gateway ledger verify";
const ADD_PRICE = "gateway prices set MODEL input=… output=…, then gateway ledger reprice --since DAY";

function findUnwritable(path: string): Finding | null {
  const place = existsSync(path) ? path : nearestFolder(path);
  try {
    accessSync(place, constants.W_OK);
    return null;
  } catch {
    return bad("ledger", `this user cannot write ${place}`, `chown or chmod ${place}, or change ledger.path`);
  }
}

/** Something at the path of one of the gateway's files is not the gateway's own. The gateway does not write to it. */
function findForeign(path: string): Finding | null {
  for (const tail of ["", ".lock", ".open", ".torn"]) {
    try {
      requireOwn(path + tail, tail === "");
      if (tail === ".open") requireJournal(path + tail);
    } catch (error) {
      return bad("ledger", getErrorMessage(error), `ls -li ${quoteWord(path + tail)}`);
    }
  }
  return null;
}

function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) || folder === path ? folder : nearestFolder(folder);
}

/** A process that does not answer holds the lock. */
function findHolder(path: string, running: RunningGateway | null): Finding | null {
  const lock = `${path}.lock`;
  if (running !== null || !existsSync(lock)) return null;
  try {
    takeLock(lock).release();
    return null;
  } catch (error) {
    if (!(error instanceof LockHeld))
      return bad(
        "ledger",
        `its lock cannot be acquired: ${getErrorMessage(error)}`,
        `ls -l ${quoteWord(lock)}`,
      );
    const { holder } = error;
    if (holder === null) return bad("ledger", "another process is writing it", `fuser ${quoteWord(lock)}`);
    return bad(
      "ledger",
      `process ${holder.pid} has been writing it since ${holder.since}, but does not answer`,
      PLATFORM.end(holder.pid),
    );
  }
}

function findProblem(path: string, running: RunningGateway | null): Finding | null {
  const problem = running?.ledger.problem ?? null;
  if (problem === null) return null;
  const look = `ls -l ${quoteWord(path)}; df -h ${quoteWord(dirname(path))}`;
  return bad("ledger", `the running gateway cannot write it: ${problem}`, look);
}

/** What a killed gateway has left behind. The next start repairs it. */
function findLeftovers(path: string): Finding[] {
  const findings: Finding[] = [];
  const end = readIncompleteEnd(path);
  if (end.length > 0) {
    const torn = `its last line is incomplete (${end.length} bytes): the next start moves it to ${basename(path)}.torn`;
    const whole = "its last line has no newline: the next start adds it";
    findings.push(note("ledger", parseLine(end) === null ? torn : whole));
  }
  const { endState, doubts } = judgeLedger(path);
  if (endState === "unexplained")
    findings.push(bad("ledger", "lines at its end are missing or changed", VERIFY));
  if (doubts.unnamed.length > 0)
    findings.push(
      bad(
        "ledger",
        `${formatCount(doubts.unnamed.length, "line")} at its end may not be the gateway's`,
        VERIFY,
      ),
    );
  if (doubts.isJournalGone) findings.push(bad("ledger", "its journal is missing or damaged", VERIFY));
  const open = countUnfinished(path);
  if (open > 0)
    findings.push(
      note("ledger", `${open} unfinished from before: the next start writes a line for each request`),
    );
  return findings;
}

/** The bytes after the last newline. */
function readIncompleteEnd(path: string): Buffer {
  if (!existsSync(path)) return Buffer.alloc(0);
  const fd = openPlain(path);
  try {
    return readBackToNewline(fd, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}

const MIN_FREE_BYTES = 100e6;
const LOW_FREE_BYTES = 1e9;

export function checkDisk(ledgerPath: string): Finding {
  const folder = nearestFolder(ledgerPath);
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const text = `${formatBytes(free)} free in ${folder}`;
  if (free < MIN_FREE_BYTES)
    return bad("disk", `${text}: writing the ledger will soon fail`, `df -h ${quoteWord(folder)}`);
  return free < LOW_FREE_BYTES ? note("disk", text) : good("disk", text);
}
