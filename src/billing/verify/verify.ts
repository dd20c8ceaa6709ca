// Proves a ledger from its bytes: every line is whole and has the hash of the one
// before, across all files. Each request has one line. Each amount is derived again.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { REPORTED } from "../charge.ts";
import { holdLedgerFiles, nameOf } from "../ledger/rotation.ts";
import { GENESIS, hashLine, parseLine } from "../ledger/line.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import type { Anchor } from "./anchor.ts";
import {
  ANCHOR_MISSED,
  describeBreak,
  describeFault,
  describeMark,
  type Finding,
  NO_LINE,
  OLDER_MISSING,
  type Problem,
  TORN_END,
  TORN_IN_MIDDLE,
  TWICE,
  UNENDED,
} from "./finding.ts";
import { END_GONE } from "../ledger/start/mark.ts";
import { findFault } from "../ledger/check.ts";
import { IndexSums } from "./index-sums.ts";
import { NotedEnds } from "./noted-ends.ts";

export interface Verdict {
  readonly files: number;
  readonly lines: number;
  readonly corrections: number;
  readonly findings: number;
  /** What could not be checked, in words for people. */
  readonly notes: readonly string[];
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
  const ends = new NotedEnds(path, options.running);
  const verifier = new Verifier(options, { ends, indexed: new IndexSums(path) }, report);
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    verifier.begin(nameOf(source, path));
    for (const { bytes, whole } of readFile(source)) {
      if (whole) eachLine(bytes, (from, to) => verifier.check(bytes, from, to));
      else if (typeof source === "string") verifier.reportTorn(TORN_IN_MIDDLE);
      else if (!options.running) verifier.checkEnd(bytes);
    }
  }
  verifier.end();
  const { verdict } = verifier;
  return {
    files: held.sources.length,
    ...verdict,
    notes: verdict.lines === 0 ? [] : [...ends.listNotes(), ...verifier.listNotes()],
  };
}

/** What is beside the ledger. */
interface Evidence {
  readonly ends: NotedEnds;
  readonly indexed: IndexSums;
}

class Verifier {
  readonly #options: VerifyOptions;
  readonly #ends: NotedEnds;
  readonly #indexed: IndexSums;
  readonly #report: (finding: Finding) => void;
  /** The current charge of every line read so far, by the line's id. */
  readonly #charges = new Map<string, string | null>();
  /** The hash of the last line: the next line's `prev` must be the same. */
  #prev = GENESIS;
  #isAnchored: boolean;
  /** Marks that no later line accepts, by id. */
  readonly #marks = new Map<string, Finding>();
  #file = "";
  #line = 0;
  /** Where the last line of the earlier files is. */
  #before = "";
  #lines = 0;
  /** Those with the amount that their seller named. */
  #reported = 0;
  #corrections = 0;
  #findings = 0;

  constructor(options: VerifyOptions, { ends, indexed }: Evidence, report: (finding: Finding) => void) {
    this.#options = options;
    this.#ends = ends;
    this.#indexed = indexed;
    this.#report = report;
    this.#isAnchored = options.anchor === undefined || options.anchor === null;
    this.#meetLine();
  }

  get verdict(): Omit<Verdict, "files" | "notes"> {
    return { lines: this.#lines, corrections: this.#corrections, findings: this.#findings };
  }

  listNotes(): string[] {
    if (this.#reported === 0) return [];
    const lines = this.#reported === 1 ? "1 line has" : `${this.#reported} lines have`;
    return [
      `${lines} the amount that the seller named (price_source: ${REPORTED}). Nothing derives such an amount: only its multiplication was checked.`,
    ];
  }

  begin(file: string): void {
    if (this.#line > 0) this.#before = `${this.#file}:${this.#line}`;
    this.#file = file;
    this.#line = 0;
  }

  #meetLine(): void {
    this.#ends.meet(this.#prev);
    const { anchor, partial } = this.#options;
    // Without the oldest files, nobody knows the number of a line.
    if (anchor?.hash === this.#prev && (partial || anchor.lines === this.#lines)) this.#isAnchored = true;
  }

  check(bytes: Buffer, from: number, to: number): void {
    this.#line += 1;
    this.#lines += 1;
    const line = parseJson(bytes.toString("utf8", from, to));
    this.#checkLine(line);
    this.#indexed.add(line);
    this.#prev = hashLine(bytes.subarray(from, to));
    this.#meetLine();
  }

  #checkLine(line: unknown): void {
    if (!isObject(line)) {
      this.#find(null, NO_LINE);
      return;
    }
    const id = typeof line["id"] === "string" ? line["id"] : null;
    const charge = readCharge(line);
    if (line["price_source"] === REPORTED) this.#reported += 1;
    const isCorrection = line["corrects"] !== undefined;
    this.#checkPlace(line["prev"], this.#ends.findUnnamed(line), id);
    if (id !== null && this.#charges.has(id)) this.#find(id, TWICE);
    else if (id !== null) this.#charges.set(id, charge);
    const fault = findFault(line);
    if (fault !== null) this.#find(id, describeFault(fault));
    if (id !== null && isCorrection) this.#checkCorrection(line, id, charge);
    if (id !== null && line["mark"] !== undefined) this.#checkMark(line, id);
  }

  #checkPlace(prev: unknown, unnamed: Problem | null, id: string | null): void {
    if (prev !== this.#prev) {
      this.#ends.meet(String(prev));
      // The first line of a part follows a line that is kept elsewhere.
      if (!this.#options.partial || this.#lines > 1) this.#find(id, this.#nameBreak());
    }
    if (unnamed !== null) this.#find(id, unnamed);
  }

  reportTorn(torn: Problem): void {
    this.#line += 1;
    this.#find(null, torn);
  }

  /** Checks the bytes after the last newline. */
  checkEnd(text: Buffer): void {
    if (parseLine(text) === null) return this.reportTorn(TORN_END);
    this.check(text, 0, text.length);
    this.#find(null, UNENDED);
  }

  end(): void {
    for (const problem of this.#ends.listProblems()) this.#find(null, problem);
    if (!this.#isAnchored) this.#find(null, ANCHOR_MISSED);
    for (const finding of this.#marks.values()) {
      this.#findings += 1;
      this.#report(finding);
    }
    const differs = this.#indexed.findProblem();
    if (differs !== null) this.#find(null, differs);
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

  #checkMark({ mark, accepts }: Readonly<Record<string, unknown>>, id: string): void {
    if (typeof accepts === "string") this.#marks.delete(accepts);
    else if (mark !== END_GONE)
      this.#marks.set(id, { file: this.#file, line: this.#line, id, ...describeMark(String(mark)) });
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
