// Fits sections of lines into the rows of a terminal, one below the other. Pure.

import { paint } from "../terminal/terminal.ts";
import { cutText } from "../terminal/text.ts";

export interface Section {
  readonly title: string;
  readonly lines: readonly string[];
  /** Whether to show how many lines did not fit. */
  readonly counts: boolean;
}

export interface Frame {
  readonly head: readonly string[];
  /** Earlier sections get rows first. */
  readonly sections: readonly Section[];
  readonly foot: string;
}

/** Everything, without a limit of rows. */
export function listFrame({ head, sections }: Frame): string[] {
  return [...head, ...sections.flatMap((section) => writeSection(section, section.lines.length))];
}

/** Exactly this many rows. The last one is the foot. */
export function fitFrame({ head, sections, foot }: Frame, rows: number, columns: number): string[] {
  const room = rows - head.length - 1;
  const shown = sections.slice(0, Math.max(0, Math.floor(room / (SECTION_HEAD_ROWS + 1))));
  const shares = shareRows(
    shown.map(({ lines }) => lines.length),
    room - shown.length * SECTION_HEAD_ROWS,
  );
  const body = shown.flatMap((section, index) => writeSection(section, shares[index] ?? 0));
  const lines = [...head, ...body].slice(0, rows - 1);
  const blank = Array.from({ length: Math.max(0, rows - 1 - lines.length) }, () => "");
  return [...lines, ...blank, paint("dim", cutText(foot, columns))];
}

/** A blank line and the title. */
const SECTION_HEAD_ROWS = 2;

function writeSection({ title, lines, counts }: Section, share: number): string[] {
  const hidden = lines.length - share;
  const shown =
    hidden <= 0 || !counts || share < 1
      ? lines.slice(0, share)
      : [...lines.slice(0, share - 1), paint("dim", `… and ${hidden + 1} more`)];
  return ["", paint("bold", title), ...shown];
}

/** Gives each section one row in turn, until all have enough or none is left. */
function shareRows(wanted: readonly number[], room: number): number[] {
  const shares = wanted.map(() => 0);
  let left = room;
  let given = true;
  while (given) {
    given = false;
    for (const [index, want] of wanted.entries()) {
      const share = shares[index] ?? 0;
      if (left <= 0 || share >= want) continue;
      shares[index] = share + 1;
      left -= 1;
      given = true;
    }
  }
  return shares;
}
