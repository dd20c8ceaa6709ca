// Turns drafts into lines, in the chain's order, and adds them to the sums. Drafts wait until the lines or the sums
// are needed, mostly until the end of a turn: encoding many at once costs much less than one by one.

import { parseDecimal, parseUsd } from "../../lib/money.ts";
import { type CorrectionDraft, encodeCorrection, encodeLine, hashLine, type LineDraft } from "./line.ts";
import { encodeMark, type MarkDraft } from "./start/mark.ts";
import { type Entry, entryOf } from "./sums/entry.ts";
import type { Sums } from "./sums/sums.ts";

type Names = Pick<LineDraft, "key" | "group" | "client" | "paid_by"> & {
  readonly channel?: string;
  readonly model?: string;
};

/** What a draft says of money. */
interface Says {
  readonly time: string;
  readonly usage: Entry["usage"] & {};
  readonly official: string | null;
  readonly charge: string | null;
  readonly was: { readonly official_usd: string | null; readonly charge_usd: string | null } | null;
  readonly limit?: string | undefined;
  readonly windows?: Entry["windows"];
  readonly replaces?: { readonly time: string; readonly limit_usd: string } | undefined;
}

interface Draft {
  readonly entry: Entry;
  readonly encode: (prev: string) => string;
}

export class LedgerChain {
  #sums: Sums;
  /** Hash of the last line, written or not. */
  #prev: string;
  #lines: string[] = [];
  #drafts: Draft[] = [];

  constructor(sums: Sums, prev: string) {
    this.#sums = sums;
    this.#prev = prev;
  }

  /** Throws at once if an amount is malformed: later, it would take the lines of other requests with it. */
  addLine(draft: LineDraft): void {
    const { time, usage, limit_usd: limit, replaces, windows } = draft;
    const { official_usd: official, charge_usd: charge } = draft;
    this.#add(draft, { time, usage, official, charge, was: null, limit, replaces, windows }, (prev) =>
      encodeLine(draft, prev),
    );
  }

  addCorrection(draft: CorrectionDraft): void {
    const { request_time: time, usage, was, official_usd: official, charge_usd: charge } = draft;
    const replaces = was.limit_usd === undefined ? undefined : { time, limit_usd: was.limit_usd };
    this.#add(draft, { time, usage, official, charge, was, limit: draft.limit_usd, replaces }, (prev) =>
      encodeCorrection(draft, prev),
    );
  }

  addMark(draft: MarkDraft): void {
    const { request_time: time, limit_usd: limit, replaces } = draft;
    const was = { official_usd: null, charge_usd: null };
    this.sums.noteMark(draft);
    this.#add(draft, { time, usage: {}, official: null, charge: null, was, limit, replaces }, (prev) =>
      encodeMark(draft, prev),
    );
  }

  #add(names: Names, says: Says, encode: (prev: string) => string): void {
    const { key, group, channel = "", model = "", client, paid_by: paidBy } = names;
    const { time, usage, official, charge, was, limit, replaces, windows } = says;
    const readOfficial = (text: string | null) =>
      text === null || paidBy === undefined ? null : parseDecimal(text);
    const entry = entryOf({
      time,
      key,
      group,
      channel,
      model,
      paidBy,
      usage,
      client: client ?? null,
      windows,
      official: readOfficial(official),
      charge: parseUsd(charge ?? "0"),
      was: was && { official: readOfficial(was.official_usd), charge: parseUsd(was.charge_usd ?? "0") },
      limit: limit === undefined ? null : parseUsd(limit),
      replaced: replaces === undefined ? null : { time: replaces.time, limit: parseUsd(replaces.limit_usd) },
    });
    this.#drafts.push({ entry, encode });
  }

  get sums(): Sums {
    this.#encode();
    return this.#sums;
  }

  /** The same sums by the days of another time zone. `read` reads those of the lines that are in the files. */
  replaceSums(read: () => Sums): void {
    this.#encode();
    const sums = read();
    sums.addLines(this.#lines);
    this.#sums = sums;
  }

  /** The lines since the last `forgetLines`. */
  get lines(): readonly string[] {
    this.#encode();
    return this.#lines;
  }

  /** The hash of the last of `lines`. */
  get prev(): string {
    return this.#prev;
  }

  /** No line waits to be written. */
  get isWritten(): boolean {
    return this.#drafts.length === 0 && this.#lines.length === 0;
  }

  /** To be called when the lines have been written. */
  clearLines(): void {
    this.#lines = [];
  }

  #encode(): void {
    const drafts = this.#drafts;
    this.#drafts = [];
    for (const { entry, encode } of drafts) {
      this.#sums.add(entry);
      const line = encode(this.#prev);
      this.#lines.push(line);
      this.#prev = hashLine(line);
    }
  }
}
