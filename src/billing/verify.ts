// Proves a ledger from its bytes: every line whole, each bearing the hash of the
// one before across all files, each request there once, each amount derived again.

import { isObject, parseJson } from "../lib/json.ts";
import { type Bytes, viewBytes } from "./ledger-bytes.ts";
import { holdLedgerFiles, nameOf } from "./ledger-files.ts";
import { parseLine } from "./ledger-line.ts";
import { eachLine, readFile } from "./ledger-reader.ts";
import { idOf, LineScanner } from "./ledger-scan.ts";
import { readCheckpoint } from "./ledger-sums.ts";
import { AmountChecker } from "./verify-amounts.ts";
import { ChainEnd } from "./verify-chain.ts";
import { SeenIds } from "./verify-ids.ts";
import {
  describeBreak,
  describeFault,
  END_MISSING,
  type Finding,
  NO_LINE,
  OLDER_MISSING,
  type Problem,
  TORN_END,
  TORN_IN_MIDDLE,
  TWICE,
  UNENDED,
} from "./verify-finding.ts";
import { findFault } from "./verify-line.ts";

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
  const checkpoint = readCheckpoint(`${path}.sums`);
  const verifier = new Verifier(options, report);
  if (checkpoint !== null) verifier.expect(checkpoint.from.prev);
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    verifier.begin(nameOf(source, path));
    for (const { bytes, whole } of readFile(source)) {
      if (whole) eachLine(bytes, (from, to) => verifier.check(bytes, from, to));
      else if (typeof source === "string") verifier.reportTorn(TORN_IN_MIDDLE);
      else if (!options.running) verifier.checkEnd(bytes.buffer);
    }
  }
  verifier.end();
  return { files: held.sources.length, ...verifier.verdict };
}

class Verifier {
  readonly #options: VerifyOptions;
  readonly #report: (finding: Finding) => void;
  readonly #scanner = new LineScanner();
  readonly #ids = new SeenIds();
  readonly #amounts = new AmountChecker();
  readonly #chain = new ChainEnd();
  /** Null: met, or there is none. */
  #expected: Buffer | null = null;
  #file = "";
  #line = 0;
  /** Where the last line of the files before stands. */
  #before = "";
  #lines = 0;
  #corrections = 0;
  #findings = 0;

  constructor(options: VerifyOptions, report: (finding: Finding) => void) {
    this.#options = options;
    this.#report = report;
  }

  get verdict(): Omit<Verdict, "files"> {
    return { lines: this.#lines, corrections: this.#corrections, findings: this.#findings };
  }

  begin(file: string): void {
    if (this.#line > 0) this.#before = `${this.#file}:${this.#line}`;
    this.#file = file;
    this.#line = 0;
  }

  /** The gateway noted that it had written on from the line of this hash: that has to be met. */
  expect(hash: string): void {
    this.#expected = Buffer.from(hash, "hex");
    this.#meetExpected();
  }

  #meetExpected(): void {
    if (this.#expected !== null && this.#chain.equals(this.#expected)) this.#expected = null;
  }

  check(bytes: Bytes, from: number, to: number): void {
    this.#line += 1;
    this.#lines += 1;
    const scanned = this.#scanner.scan(bytes, from, to);
    if (scanned !== null && this.#chain.isBorneBy(bytes.buffer, to) && this.#amounts.isRight(scanned)) {
      const { idFrom, idTo, charge } = scanned;
      if (!this.#ids.add(bytes.buffer, idFrom, idTo, charge)) this.#find(idOf(scanned), TWICE);
    } else this.#checkClosely(bytes.buffer.toString("utf8", from, to));
    this.#chain.follow(bytes.buffer.subarray(from, to));
    this.#meetExpected();
  }

  #checkClosely(text: string): void {
    const line = parseJson(text);
    if (!isObject(line)) {
      this.#find(null, NO_LINE);
      return;
    }
    const id = typeof line["id"] === "string" ? line["id"] : null;
    const charge = readCharge(line);
    const isFirst = this.#options.partial && this.#lines === 1;
    if (!isFirst && line["prev"] !== String(this.#chain)) this.#find(id, this.#nameBreak());
    if (id !== null && !this.#ids.addText(id, charge)) this.#find(id, TWICE);
    const fault = findFault(line);
    if (fault !== null) this.#find(id, describeFault(fault));
    if (id !== null && line["corrects"] !== undefined) this.#checkCorrection(line, id, charge);
  }

  reportTorn(torn: Problem): void {
    this.#line += 1;
    this.#find(null, torn);
  }

  /** What stands behind the last newline. */
  checkEnd(text: Buffer): void {
    if (parseLine(text) === null) return this.reportTorn(TORN_END);
    this.check(viewBytes(Buffer.concat([text, Buffer.from("\n")])), 0, text.length);
    this.#find(null, UNENDED);
  }

  end(): void {
    if (this.#expected !== null) this.#find(null, END_MISSING);
  }

  #nameBreak(): Problem {
    if (this.#lines === 1) return OLDER_MISSING;
    return describeBreak(this.#line === 1 ? this.#before : `line ${this.#line - 1}`);
  }

  #checkCorrection(line: Readonly<Record<string, unknown>>, id: string, charge: string | null): void {
    this.#corrections += 1;
    const { corrects, was } = line;
    if (typeof corrects !== "string" || !isObject(was)) return;
    const comparison = this.#ids.compareCharge(corrects, readCharge(was));
    if (comparison === "other")
      this.#find(
        id,
        describeFault(`it replaces another charge of ${corrects} than the one that was in force`),
      );
    if (comparison === "absent" && !this.#options.partial)
      this.#find(id, describeFault(`it corrects ${corrects}, which has no line before it`));
    this.#ids.setCharge(corrects, charge);
  }

  #find(id: string | null, problem: Problem): void {
    this.#findings += 1;
    this.#report({ file: this.#file, line: this.#line, id, ...problem });
  }
}

function readCharge(line: Readonly<Record<string, unknown>>): string | null {
  const charge = line["charge_usd"];
  return typeof charge === "string" ? charge : null;
}
