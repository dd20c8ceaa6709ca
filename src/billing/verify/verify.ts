// Proves a ledger from its bytes: every line is whole and has the hash of the one
// before, across all files. Each request has one line. Each amount is derived again.

import { isObject, parseJson } from "../../lib/json/json.ts";
import { type Bytes, viewBytes } from "../ledger/scan/bytes.ts";
import { readJournal } from "../ledger/journal.ts";
import { judgeEnd, type NotedEnd } from "../ledger/noted-end.ts";
import { holdLedgerFiles, nameOf, type Position } from "../ledger/rotation.ts";
import { GENESIS, hashLine, parseLine } from "../ledger/line.ts";
import { eachLine, readFile } from "../ledger/reader.ts";
import { readCheckpoint } from "../ledger/sums.ts";
import type { Anchor } from "./anchor.ts";
import {
  ANCHOR_MISSED,
  describeBreak,
  describeFault,
  END_MISSING,
  END_NOT_NOTED,
  END_REMOVED,
  type Finding,
  JOURNAL_CUT,
  NO_JOURNAL,
  NO_LINE,
  OLDER_MISSING,
  type Problem,
  SUMS_MISSING,
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
  const verifier = new Verifier(options, report);
  // The gateway notes its last line in two files, so that the deletion of one of them hides nothing. They are read first:
  // a gateway that runs writes a line before it notes it.
  const checkpoint = readCheckpoint(`${path}.sums`);
  const journal = readJournal(`${path}.open`);
  for (const noted of [checkpoint?.noted, journal.noted]) if (noted) verifier.expect(noted);
  if (journal.noted !== null && !options.running) verifier.expectNamed(journal.noted.end, journal.named);
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
  if (journal.noted === null && checkpoint?.hasJournal === true && !options.running)
    verifier.reportNoJournal();
  const { verdict } = verifier;
  const notes =
    verdict.lines === 0
      ? []
      : listNotes({ hasSums: checkpoint !== null, hasJournal: journal.noted !== null });
  return { files: held.sources.length, ...verdict, notes };
}

/** What could not be checked. */
function listNotes({ hasSums, hasJournal }: { hasSums: boolean; hasJournal: boolean }): string[] {
  if (!hasSums && !hasJournal) return [END_NOT_NOTED];
  return hasSums ? [] : [SUMS_MISSING];
}

class Verifier {
  readonly #options: VerifyOptions;
  readonly #report: (finding: Finding) => void;
  /** The current charge of every line read so far, by the line's id. */
  readonly #charges = new Map<string, string | null>();
  /** The hash of the last line: the next line's `prev` must be the same. */
  #prev = GENESIS;
  readonly #noted: NotedEnd[] = [];
  /** The hashes of lines that must be there and were not found yet. */
  readonly #expected = new Set<string>();
  /** The lines after the one of this hash are of requests that the journal names. */
  #named: { readonly after: string; readonly ids: ReadonlySet<string> } | null = null;
  #isAfterNoted = false;
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

  get verdict(): Omit<Verdict, "files" | "notes"> {
    return { lines: this.#lines, corrections: this.#corrections, findings: this.#findings };
  }

  begin(file: string): void {
    if (this.#line > 0) this.#before = `${this.#file}:${this.#line}`;
    this.#file = file;
    this.#line = 0;
  }

  /** The lines that the gateway noted as written must be there. */
  expect(noted: NotedEnd): void {
    this.#noted.push(noted);
    this.#expected.add(noted.end.prev);
    if (noted.synced !== null) this.#expected.add(noted.synced.prev);
    this.#meetExpected();
  }

  /** The journal has the end of the ledger, and names every request that got its line later. */
  expectNamed(end: Position, ids: ReadonlySet<string>): void {
    this.#named = { after: end.prev, ids };
    this.#meetExpected();
  }

  #meetExpected(): void {
    this.#expected.delete(this.#prev);
    if (this.#named?.after === this.#prev) this.#isAfterNoted = true;
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
    if (this.#options.partial && this.#lines === 1) this.#expected.delete(String(line["prev"]));
    else if (line["prev"] !== this.#prev) this.#find(id, this.#nameBreak());
    const isUnnamed = this.#isAfterNoted && id !== null && this.#named?.ids.has(id) === false;
    if (isUnnamed && line["corrects"] === undefined) this.#find(id, JOURNAL_CUT);
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
    const isThere = ({ prev }: Position): boolean => !this.#expected.has(prev);
    const states = this.#noted.map((noted) => judgeEnd(noted, isThere));
    if (states.includes("unexplained")) this.#find(null, END_REMOVED);
    else if (states.includes("taken by a power cut")) this.#find(null, END_MISSING);
    if (!this.#isAnchored) this.#find(null, ANCHOR_MISSED);
  }

  reportNoJournal(): void {
    this.#find(null, NO_JOURNAL);
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
