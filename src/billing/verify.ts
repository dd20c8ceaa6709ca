// Proves a ledger from its bytes: every line whole, each bearing the hash of the
// one before across all files, each request there once, each amount derived again.

import { basename } from "node:path";

import { isObject, parseJson } from "../lib/json.ts";
import { listLedgerFiles, locate } from "./ledger-files.ts";
import { GENESIS, hashLine } from "./ledger-line.ts";
import { readLines } from "./ledger-reader.ts";
import { LineScanner } from "./ledger-scan.ts";
import { readCheckpoint } from "./ledger-sums.ts";
import { AmountChecker } from "./verify-amounts.ts";
import { SeenIds } from "./verify-ids.ts";
import { findFault } from "./verify-line.ts";

export interface Finding {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly id: string | null;
  readonly problem: string;
}

export interface Verdict {
  readonly files: number;
  readonly lines: number;
  readonly corrections: number;
  readonly findings: number;
}

export interface VerifyOptions {
  /** The oldest files are kept elsewhere: the first line may follow one that is not here. */
  readonly partial: boolean;
  /** A gateway writes at this moment: its last line may not be whole yet. */
  readonly running: boolean;
}

export function verifyLedger(
  path: string,
  options: VerifyOptions,
  report: (finding: Finding) => void,
): Verdict {
  const files = listLedgerFiles(path);
  const verifier = new Verifier(options, report);
  for (const file of files) {
    verifier.begin(file);
    for (const { text, whole } of readLines(file)) {
      if (whole) verifier.check(text);
      else if (!options.running || file !== path) verifier.reportTorn();
    }
  }
  const checkpoint = readCheckpoint(`${path}.sums`);
  if (checkpoint !== null && locate(files, checkpoint.from) === null) verifier.reportCut();
  return { files: files.length, ...verifier.verdict };
}

class Verifier {
  readonly #options: VerifyOptions;
  readonly #report: (finding: Finding) => void;
  readonly #scanner = new LineScanner();
  readonly #ids = new SeenIds();
  readonly #amounts = new AmountChecker();
  #prev: string | null;
  #file = "";
  #line = 0;
  #lines = 0;
  #corrections = 0;
  #findings = 0;

  constructor(options: VerifyOptions, report: (finding: Finding) => void) {
    this.#options = options;
    this.#report = report;
    this.#prev = options.partial ? null : GENESIS;
  }

  get verdict(): Omit<Verdict, "files"> {
    return { lines: this.#lines, corrections: this.#corrections, findings: this.#findings };
  }

  begin(file: string): void {
    this.#file = file;
    this.#line = 0;
  }

  check(text: string): void {
    this.#line += 1;
    this.#lines += 1;
    const scanned = this.#scanner.scan(text);
    if (scanned !== null && this.#amounts.isRight(scanned)) {
      this.#checkPlace(scanned.id, scanned.prev, scanned.charge);
    } else this.#checkClosely(text);
    this.#prev = hashLine(text);
  }

  #checkClosely(text: string): void {
    const line = parseJson(text);
    if (!isObject(line)) {
      this.#find(null, "this is no JSON object: the line is torn or overwritten");
      return;
    }
    const id = typeof line["id"] === "string" ? line["id"] : null;
    const charge = readCharge(line);
    this.#checkPlace(id, line["prev"], charge);
    const fault = findFault(line);
    if (fault !== null) this.#find(id, fault);
    if (id !== null && line["corrects"] !== undefined) this.#checkCorrection(line, id, charge);
  }

  #checkPlace(id: string | null, prev: unknown, charge: string | null): void {
    if (this.#prev !== null && prev !== this.#prev) this.#find(id, this.#describeBreak());
    if (id !== null && !this.#ids.add(id, charge)) this.#find(id, "this id has a line already");
  }

  reportTorn(): void {
    this.#line += 1;
    this.#find(null, "the last line is torn: it has no end");
  }

  /** The gateway noted how far it had written. */
  reportCut(): void {
    this.#find(
      null,
      "the gateway had written on from another line than the ones here: lines at the end are missing or changed",
    );
  }

  #describeBreak(): string {
    if (this.#lines === 1) return "the first line follows one that is not here: older lines are missing";
    return "this line does not follow the one before: that one was changed, or lines between them are missing";
  }

  #checkCorrection(line: Readonly<Record<string, unknown>>, id: string, charge: string | null): void {
    this.#corrections += 1;
    const { corrects, was } = line;
    if (typeof corrects !== "string" || !isObject(was)) return;
    const agrees = this.#ids.hasCharge(corrects, readCharge(was));
    if (agrees === false)
      this.#find(id, `it replaces another charge of ${corrects} than the one that was in force`);
    if (agrees === null && this.#ids.isComplete && !this.#options.partial) {
      this.#find(id, `it corrects ${corrects}, which has no line before it`);
    }
    this.#ids.setCharge(corrects, charge);
  }

  #find(id: string | null, problem: string): void {
    this.#findings += 1;
    this.#report({ file: basename(this.#file), line: this.#line, id, problem });
  }
}

function readCharge(line: Readonly<Record<string, unknown>>): string | null {
  const charge = line["charge_usd"];
  return typeof charge === "string" ? charge : null;
}
