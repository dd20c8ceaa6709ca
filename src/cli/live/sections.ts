// Sections of lines over each other, in as many rows as a terminal has. Pure.

import { paint } from "../terminal.ts";
import { cutText } from "../text.ts";

export interface Section {
  readonly title: string;
  readonly lines: readonly string[];
  /** Lines that there was no room for are counted; else they go unsaid. */
  readonly counts: boolean;
}

export interface Frame {
  readonly head: readonly string[];
  /** The first gets what room there is before the last does. */
  readonly sections: readonly Section[];
  readonly foot: string;
}

/** All of it, below each other. */
export function listFrame({ head, sections }: Frame): string[] {
  return [...head, ...sections.flatMap((section) => writeSection(section, section.lines.length))];
}

/** No more than so many rows, of them the last for the foot. */
export function fitFrame({ head, sections, foot }: Frame, rows: number, columns: number): string[] {
  const room = rows - head.length - 1;
  const shown = sections.slice(0, Math.max(0, Math.floor(room / (FRAME_ROWS + 1))));
  const shares = shareRows(
    shown.map(({ lines }) => lines.length),
    room - shown.length * FRAME_ROWS,
  );
  const body = shown.flatMap((section, index) => writeSection(section, shares[index] ?? 0));
  const lines = [...head, ...body].slice(0, rows - 1);
  const blank = Array.from({ length: Math.max(0, rows - 1 - lines.length) }, () => "");
  return [...lines, ...blank, paint("dim", cutText(foot, columns))];
}

/** A blank line and the title. */
const FRAME_ROWS = 2;

function writeSection({ title, lines, counts }: Section, share: number): string[] {
  const hidden = lines.length - share;
  const shown =
    hidden <= 0 || !counts || share < 1
      ? lines.slice(0, share)
      : [...lines.slice(0, share - 1), paint("dim", `… and ${hidden + 1} more`)];
  return ["", paint("bold", title), ...shown];
}

/** A row for each in turn, until all have what they want or none is left. */
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
