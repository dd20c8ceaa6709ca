// Proves a ledger from its bytes: every line is whole and has the hash of the one
// before, across all files. Each request has one line. Each amount is derived again.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { type Bytes, viewBytes } from "../ledger/scan/bytes.ts";
import { readJournal } from "../ledger/journal.ts";
import { holdLedgerFiles, nameOf } from "../ledger/rotation.ts";
import { GENESIS, hashLine, parseLine } from "../ledger/line.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { readCheckpoint } from "../ledger/sums/sums.ts";
import type { Anchor } from "./anchor.ts";
import {
  ANCHOR_MISSED,
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
} from "./finding.ts";
import { findFault } from "./line.ts";

export interface Verdict {
  readonly files: number;
  readonly lines: number;
  readonly corrections: number;
  readonly findings: number;
}

export interface VerifyOptions {
  /** The oldest files are kept elsewhere: the first line may follow a line that is not here. */
  readonly partial: boolean;
  /** A gateway is writing: its last line may not be whole yet. */
  readonly running: boolean;
  /** The ledger has to contain the lines of this anchor. */
  readonly anchor?: Anchor | null;
}

export function verifyLedger(
  path: string,
  options: VerifyOptions,
  report: (finding: Finding) => void,
): Verdict {
  const verifier = new Verifier(options, report);
  // The gateway notes its last line in two files, so that the deletion of one of them hides nothing.
  for (const position of [readCheckpoint(`${path}.sums`)?.from, readJournal(`${path}.open`).from])
    if (position !== undefined && position !== null) verifier.expect(position.prev);
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
  /** The current charge of every line read so far, by the line's id. */
  readonly #charges = new Map<string, string | null>();
  /** The hash of the last line: the next line's `prev` must be the same. */
  #prev = GENESIS;
  /** The hashes of lines that must be there and were not found yet. */
  readonly #expected = new Set<string>();
  #isAnchored: boolean;
  #file = "";
  #line = 0;
  /** Where the last line of the earlier files is. */
  #before = "";
  #lines = 0;
  #corrections = 0;
  #findings = 0;

  constructor(options: VerifyOptions, report: (finding: Finding) => void) {
    this.#options = options;
    this.#report = report;
    this.#isAnchored = options.anchor === undefined || options.anchor === null;
    this.#meetExpected();
  }

  get verdict(): Omit<Verdict, "files"> {
    return { lines: this.#lines, corrections: this.#corrections, findings: this.#findings };
  }

  begin(file: string): void {
    if (this.#line > 0) this.#before = `${this.#file}:${this.#line}`;
    this.#file = file;
    this.#line = 0;
  }

  /** A line of this hash must be there: the gateway noted that it had written it. */
  expect(hash: string): void {
    this.#expected.add(hash);
    this.#meetExpected();
  }

  #meetExpected(): void {
    this.#expected.delete(this.#prev);
    const { anchor, partial } = this.#options;
    // Without the oldest files, nobody knows the number of a line.
    if (anchor?.hash === this.#prev && (partial || anchor.lines === this.#lines)) this.#isAnchored = true;
  }

  check(bytes: Bytes, from: number, to: number): void {
    this.#line += 1;
    this.#lines += 1;
    this.#checkLine(parseJson(bytes.buffer.toString("utf8", from, to)));
    this.#prev = hashLine(bytes.buffer.subarray(from, to));
    this.#meetExpected();
  }

  #checkLine(line: unknown): void {
    if (!isObject(line)) {
      this.#find(null, NO_LINE);
      return;
    }
    const id = typeof line["id"] === "string" ? line["id"] : null;
    const charge = readCharge(line);
    const isFirst = this.#options.partial && this.#lines === 1;
    if (!isFirst && line["prev"] !== this.#prev) this.#find(id, this.#nameBreak());
    if (id !== null && this.#charges.has(id)) this.#find(id, TWICE);
    else if (id !== null) this.#charges.set(id, charge);
    const fault = findFault(line);
    if (fault !== null) this.#find(id, describeFault(fault));
    if (id !== null && line["corrects"] !== undefined) this.#checkCorrection(line, id, charge);
  }

  reportTorn(torn: Problem): void {
    this.#line += 1;
    this.#find(null, torn);
  }

  /** Checks the bytes after the last newline. */
  checkEnd(text: Buffer): void {
    if (parseLine(text) === null) return this.reportTorn(TORN_END);
    this.check(viewBytes(Buffer.concat([text, Buffer.from("\n")])), 0, text.length);
    this.#find(null, UNENDED);
  }

  end(): void {
    if (this.#expected.size > 0) this.#find(null, END_MISSING);
    if (!this.#isAnchored) this.#find(null, ANCHOR_MISSED);
  }

  #nameBreak(): Problem {
    if (this.#lines === 1) return OLDER_MISSING;
    return describeBreak(this.#line === 1 ? this.#before : `line ${this.#line - 1}`);
  }

  #checkCorrection(line: Readonly<Record<string, unknown>>, id: string, charge: string | null): void {
    this.#corrections += 1;
    const { corrects, was } = line;
    if (typeof corrects !== "string" || !isObject(was)) return;
    const inForce = this.#charges.get(corrects);
    if (inForce === undefined) {
      if (this.#options.partial) return;
      this.#find(id, describeFault(`it corrects ${corrects}, which has no line before it`));
      return;
    }
    if (inForce !== readCharge(was)) {
      const problem = `it replaces a charge of ${corrects} that is not the one in force`;
      this.#find(id, describeFault(problem));
    }
    this.#charges.set(corrects, charge);
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
