// How fast the ledger is read: whole runs of `ledger verify` and `usage`, with all their threads on one core.

import { spawnSync } from "bun";
import { join } from "node:path";
import { makeLedger } from "../../billing/ledger/ledger-make.ts";
import type { Sample } from "../bench.ts";
import { type Cores, type Folder, makeFolder, pin } from "../machine.ts";

export interface Book {
  readonly path: string;
  readonly lines: number;
  readonly folder: Folder;
}

/** The goals are for this many lines: with fewer, the start of the process matters too much. */
export const LONG_LEDGER = 400_000;
export const SHORT_LEDGER = 50_000;

const REPORTS = { "ledger verify": ["ledger", "verify"], usage: ["usage"] } as const;

export function makeBook(lines: number): Book {
  const folder = makeFolder();
  const path = join(folder.path, "ledger.jsonl");
  makeLedger(path, lines);
  return { path, lines, folder };
}

export function measureReports(command: readonly string[], book: Book, cores: Cores | null): Sample {
  const of = book.lines < LONG_LEDGER ? `, of a short ledger` : "";
  const samples = Object.entries(REPORTS).map(([name, words]) => {
    const asked = pin([...command, ...words, "--ledger", book.path], cores?.proxy ?? null);
    const began = performance.now();
    const { success, resourceUsage, stderr } = spawnSync(asked);
    const seconds = (performance.now() - began) / 1000;
    if (!success) throw new Error(`${name} failed: ${stderr.toString()}`);
    return {
      [`${name} lines/s${of}`]: book.lines / seconds,
      [`memory MB, ${name}${of}`]: (resourceUsage?.maxRSS ?? 0) / 2 ** 20,
    };
  });
  return Object.assign({}, ...samples);
}
