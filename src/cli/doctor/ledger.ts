// `gateway doctor` on the ledger: whether it can be written, by whom, how its end looks, and the room it has. Whether
// its amounts and its chain are right is `gateway ledger verify`.

import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  statfsSync,
  statSync,
} from "node:fs";
import { basename, dirname } from "node:path";
import { parseLine } from "../../billing/ledger/line.ts";
import { readBackToNewline } from "../../billing/ledger/reader.ts";
import { countUnfinished } from "../../billing/ledger/recovery.ts";
import type { Catalog } from "../../config/catalog.ts";
import { LockHeld, takeLock } from "../../lib/file-lock.ts";
import { requireOwn } from "../../lib/own-file.ts";
import { quoteWord } from "../../lib/shell-word.ts";
import type { Running } from "./port.ts";
import { bad, type Finding, good, note } from "./finding.ts";
import { describe } from "../config-access.ts";

export function checkLedger({ ledger }: Catalog, running: Running | null): Finding[] {
  const { path } = ledger;
  const broken =
    findUnwritable(path) ?? findForeign(path) ?? findHolder(path, running) ?? findProblem(running);
  if (broken !== null) return [broken];
  const size = statSync(path, { throwIfNoEntry: false })?.size;
  const state = size === undefined ? "will be made at the first request" : formatBytes(size);
  const mode = size === undefined ? 0 : statSync(path).mode;
  const findings = [good("ledger", `${path} (${state})`)];
  if (process.platform !== "win32" && (mode & 0o077) !== 0)
    findings.push(note("ledger", "it can be read by others on this machine", `chmod 600 ${quoteWord(path)}`));
  return running === null ? [...findings, ...findLeftovers(path)] : findings;
}

function findUnwritable(path: string): Finding | null {
  const place = existsSync(path) ? path : nearestFolder(path);
  try {
    accessSync(place, constants.W_OK);
    return null;
  } catch {
    return bad(
      "ledger",
      `${place} cannot be written by this user`,
      `chown or chmod ${place}, or change ledger.path`,
    );
  }
}

/** Something in the place of a file of the ledger's, to which the gateway does not write. */
function findForeign(path: string): Finding | null {
  for (const tail of ["", ".lock", ".open", ".torn"]) {
    try {
      requireOwn(path + tail, tail === "");
    } catch (error) {
      return bad("ledger", describe(error), `ls -li ${quoteWord(path + tail)}`);
    }
  }
  return null;
}

function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) || folder === path ? folder : nearestFolder(folder);
}

/** Somebody holds it who does not answer for it. */
function findHolder(path: string, running: Running | null): Finding | null {
  const lock = `${path}.lock`;
  if (running !== null || !existsSync(lock)) return null;
  try {
    takeLock(lock).release();
    return null;
  } catch (error) {
    if (!(error instanceof LockHeld))
      return bad("ledger", `its lock cannot be taken: ${describe(error)}`, `ls -l ${quoteWord(lock)}`);
    const { holder } = error;
    if (holder === null) return bad("ledger", "another process writes it", `fuser ${quoteWord(lock)}`);
    return bad(
      "ledger",
      `process ${holder.pid} writes it since ${holder.since}, and is no gateway that answers`,
      `kill ${holder.pid}`,
    );
  }
}

function findProblem(running: Running | null): Finding | null {
  const problem = running?.ledger.problem ?? null;
  return problem === null
    ? null
    : bad("ledger", `the running gateway cannot write it: ${problem}`, "df -h; then it goes on by itself");
}

/** What a gateway that was killed left behind; the next start mends it. */
function findLeftovers(path: string): Finding[] {
  const findings: Finding[] = [];
  const end = readUnended(path);
  if (end.length > 0) {
    const torn = `its end is torn (${end.length} bytes): the next start takes them off, into ${basename(path)}.torn`;
    const whole = "its last line lacks its newline: the next start adds it";
    findings.push(note("ledger", parseLine(end) === null ? torn : whole));
  }
  const open = countUnfinished(path);
  if (open > 0)
    findings.push(
      note("ledger", `${open} unfinished from before: the next start gives each request its line`),
    );
  return findings;
}

/** What stands behind the last newline. */
function readUnended(path: string): Buffer {
  if (!existsSync(path)) return Buffer.alloc(0);
  const fd = openSync(path, "r");
  try {
    return readBackToNewline(fd, fstatSync(fd).size);
  } finally {
    closeSync(fd);
  }
}

const SCARCE_BYTES = 100e6;
const LITTLE_BYTES = 1e9;

export function checkDisk(ledgerPath: string): Finding {
  const folder = nearestFolder(ledgerPath);
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  const text = `${formatBytes(free)} free in ${folder}`;
  if (free < SCARCE_BYTES)
    return bad("disk", `${text}: the ledger will soon not be written`, `df -h ${quoteWord(folder)}`);
  return free < LITTLE_BYTES ? note("disk", text) : good("disk", text);
}

function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  for (; size >= 1000 && unit < units.length - 1; unit += 1) size /= 1000;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
