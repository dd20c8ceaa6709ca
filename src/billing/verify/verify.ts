// Proves a ledger from its bytes, in one walk. It checks that each line is whole and has
// the hash of the line before, that no request has two lines, that the amounts follow
// from the prices, and that the last line in the journal is there.

import { isObject, parseJson, textIn } from "../../lib/json/json.ts";
import { REPORTED } from "../charge.ts";
import { findFault } from "../ledger/check.ts";
import { GENESIS, hashLine } from "../ledger/line.ts";
import { judgeLedger } from "../ledger/recovery.ts";
import { readLines } from "../ledger/reader.ts";
import { holdLedgerFiles, nameOf } from "../ledger/rotation.ts";
import { END_GONE } from "../ledger/mark.ts";
import { isIntact, type Table } from "../store/open.ts";

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly id: string | null;
  readonly problem: string;
  readonly advice: string;
}

export interface VerifyOptions {
  /** The oldest files are not here. */
  readonly partial: boolean;
  /** A gateway is writing: the last line may be incomplete. */
  readonly running: boolean;
  readonly anchor?: Anchor | null;
  /** The id of the first line to check, or its day. */
  readonly since?: string | undefined;
}

export function verifyLedger(path: string, options: VerifyOptions, report: (finding: Finding) => void) {
  const verifier = new Verifier(path, options, report);
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    verifier.begin(nameOf(source, path));
    for (const { text, whole } of readLines(source)) {
      if (whole) verifier.check(text);
      else if (typeof source === "string") verifier.reportTorn("the file ends in a torn line", RESTORE);
      else if (!options.running) verifier.checkEnd(text);
    }
  }
  return { files: held.sources.length, ...verifier.end() };
}

export type Verdict = ReturnType<typeof verifyLedger>;

const RESTORE =
  "Compare these lines with a backup and restore them: a line cannot be computed from the others.";
const REPORT =
  "Compare the line with a backup. If the backup has the same line, the gateway wrote it: please report it as a bug.";

const ACCEPT =
  "Compare the lines before it with a backup. `gateway ledger accept` accepts the ledger as it is.";
const END_MISSING = "the ledger lacks the end that the gateway noted: the last lines are missing or changed";
const WHY_MISSING = {
  "taken by a power cut":
    "If a power cut took them, the lines are lost, and the next start of the gateway continues here.",
  unexplained:
    "No power cut took these lines. The gateway's next line keeps the gap visible until `gateway ledger accept`.",
} as const;

type ParsedLine = Readonly<Record<string, unknown>>;

class Verifier {
  readonly #options: VerifyOptions;
  readonly #path: string;
  readonly #report: (finding: Finding) => void;
  readonly #judged: ReturnType<typeof judgeLedger>;
  readonly #unnamed: ReadonlySet<unknown>;
  readonly #charges = new Map<string, string | null>();
  #prev = GENESIS;
  #isAnchored: boolean;
  #hasBegun: boolean;
  /** Faults that the owner has not accepted, by the mark's id. */
  readonly #marks = new Map<string, Finding>();
  #file = "";
  #line = 0;
  /** The last line of the earlier files. */
  #before = "";
  readonly #counts = { lines: 0, corrections: 0, findings: 0, unchecked: 0 };
  #reported = 0;

  constructor(path: string, options: VerifyOptions, report: (finding: Finding) => void) {
    this.#options = options;
    this.#report = report;
    this.#judged = judgeLedger(path);
    // The journal was read before a running gateway named its newest lines.
    this.#unnamed = new Set(options.running ? [] : this.#judged.doubts.unnamed.map(({ prev }) => prev));
    this.#path = path;
    this.#isAnchored = options.anchor === undefined || options.anchor === null;
    this.#hasBegun = options.since === undefined;
    this.#meet();
  }

  begin(file: string): void {
    if (this.#line > 0) this.#before = `${this.#file}:${this.#line}`;
    this.#file = file;
    this.#line = 0;
  }

  check(text: string): void {
    this.#line += 1;
    this.#counts.lines += 1;
    const line = parseJson(text);
    const { since = "" } = this.#options;
    const isDay = /^\d{4}-\d\d-\d\d$/.test(since);
    this.#hasBegun ||= isObject(line) && (line["id"] === since || (isDay && textIn(line, "time") >= since));
    if (isObject(line)) this.#checkLine(line);
    else if (this.#hasBegun)
      this.#find(null, "this is not a ledger line: it is torn or overwritten", RESTORE);
    if (!this.#hasBegun) this.#counts.unchecked += 1;
    this.#prev = hashLine(text);
    this.#meet();
  }

  #meet(): void {
    const { anchor, partial } = this.#options;
    // `partial`: the oldest files are missing, so lines cannot be counted from the first.
    if (anchor?.hash === this.#prev && (partial || anchor.lines === this.#counts.lines))
      this.#isAnchored = true;
  }

  #checkLine(line: ParsedLine): void {
    const id = typeof line["id"] === "string" ? line["id"] : null;
    const isKnown = id !== null && this.#charges.has(id);
    if (id !== null && !isKnown) this.#charges.set(id, readCharge(line));
    if (line["corrects"] !== undefined) this.#checkCorrection(line, id);
    if (this.#hasBegun) this.#checkOne(line, id, isKnown);
  }

  #checkOne(line: ParsedLine, id: string | null, isKnown: boolean): void {
    if (line["price_source"] === REPORTED) this.#reported += 1;
    this.#checkPlace(line, id);
    if (isKnown) this.#find(id, "this request has a line already", REPORT);
    const fault = findFault(line);
    if (fault !== null) this.#find(id, fault, REPORT);
    if (id !== null && line["mark"] !== undefined) this.#checkMark(line, id);
  }

  #checkPlace(line: ParsedLine, id: string | null): void {
    const { partial } = this.#options;
    // With `partial`, the first line follows a line that is not here.
    const isBroken = line["prev"] !== this.#prev && (!partial || this.#counts.lines > 1);
    // A marked fault stays until the owner accepts it.
    if (isBroken && id !== null && line["mark"] === END_GONE)
      this.#marks.set(id, this.#place(id, ...this.#nameBreak()));
    else if (isBroken) this.#find(id, ...this.#nameBreak());
    if (this.#unnamed.has(line["prev"]))
      this.#find(
        id,
        "the journal does not name this line, so another program wrote it, or the journal has lost records",
        "Compare the line with a backup, and restore the journal, whose name ends in .open, if it was changed.",
      );
  }

  #nameBreak(): [problem: string, advice: string] {
    if (this.#counts.lines === 1)
      return [
        "it follows a line that is missing: older lines are not here",
        "Put the older files back next to this one. If they are kept elsewhere, run this again with --partial.",
      ];
    const before = this.#line === 1 ? this.#before : `line ${this.#line - 1}`;
    return [
      `it does not follow ${before}: that line was changed, lines between them are missing, or this one does not belong here`,
      RESTORE,
    ];
  }

  #checkCorrection(line: ParsedLine, id: string | null): void {
    this.#counts.corrections += 1;
    const { corrects, was } = line;
    if (typeof corrects !== "string" || !isObject(was)) return;
    const inForce = this.#charges.get(corrects);
    if (inForce === undefined && this.#options.partial) return;
    this.#charges.set(corrects, readCharge(line));
    if (!this.#hasBegun || inForce === readCharge(was)) return;
    const problem =
      inForce === undefined
        ? `it corrects ${corrects}, which has no line before it`
        : `it replaces a charge of ${corrects} that is not the one in force`;
    this.#find(id, problem, REPORT);
  }

  #checkMark({ mark, accepts }: ParsedLine, id: string): void {
    if (typeof accepts === "string") this.#marks.delete(accepts);
    else if (mark !== END_GONE)
      this.#marks.set(id, this.#place(id, `a start of the gateway found: ${String(mark)}`, ACCEPT));
  }

  reportTorn(problem: string, advice: string): void {
    this.#line += 1;
    this.#find(null, problem, advice);
  }

  checkEnd(text: string): void {
    if (!isObject(parseJson(text)))
      return this.reportTorn(
        "the last line is torn: its end is missing",
        "The next start of the gateway removes the torn line and keeps it in a file that ends in .torn.",
      );
    this.check(text);
    this.#find(null, "the last line lacks its newline", "The next start of the gateway adds it.");
  }

  end() {
    const { endState: state } = this.#judged;
    if (state !== "whole")
      this.#find(null, END_MISSING, `Restore the end from a backup. ${WHY_MISSING[state]}`);
    if (!this.#isAnchored)
      this.#find(
        null,
        "the ledger does not contain the anchor's line at its place: lines were changed, removed or added before it",
        "Compare the ledger with a backup from the time of the anchor.",
      );
    for (const finding of this.#marks.values()) this.#say(finding);
    if (!isIntact(this.#path))
      this.#find(
        null,
        "the index has other sums than the ledger, so reports may be wrong",
        "Remove the index, the file whose name ends in .index. It is made again from the ledger.",
      );
    const notes = this.#counts.lines === 0 ? [] : [...this.#listNotes()];
    return { ...this.#counts, notes };
  }

  *#listNotes(): Generator<string> {
    if (this.#judged.ends.length === 0)
      yield "The journal is not next to this ledger. Lines that were removed at its end would not be found.";
    const { unchecked } = this.#counts;
    if (unchecked > 0) yield `Lines before ${this.#options.since} that were not checked: ${unchecked}.`;
    if (this.#reported > 0)
      yield `Lines with the amount that the seller named (price_source: ${REPORTED}): ${this.#reported}. Of these, only the multiplication was checked.`;
  }

  #find(id: string | null, problem: string, advice: string): void {
    this.#say(this.#place(id, problem, advice));
  }

  #place(id: string | null, problem: string, advice: string): Finding {
    return { file: this.#file, line: this.#line, id, problem, advice };
  }

  #say(finding: Finding): void {
    this.#counts.findings += 1;
    this.#report(finding);
  }
}

function readCharge(line: ParsedLine): string | null {
  return textIn(line, "charge_usd") || null;
}

/** The number of a ledger's lines, and the last line's hash, which covers all lines before it.
 *  It proves that they are unchanged, if it is kept away from everybody who can change the ledger. */
export type Anchor = ReturnType<typeof takeAnchor>;

export function takeAnchor({ position: { lines, files } }: Table) {
  return { lines, hash: files.findLast(({ offset }) => offset > 0)?.prev ?? GENESIS };
}

export function formatAnchor({ lines, hash }: Anchor): string {
  return `${lines}:${hash}`;
}

export function parseAnchor(text: string): Anchor | null {
  const [, lines = "", hash = ""] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text.trim().toLowerCase()) ?? [];
  return hash === "" ? null : { lines: Number(lines), hash };
}
