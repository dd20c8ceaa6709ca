// Runs the commands of the ledger as a process of their own, on a ledger of known lines.

import { writeFileSync } from "node:fs";

import { encodeLine, GENESIS, hashLine, type LineDraft } from "../../../../src/billing/ledger/line.ts";
import { draftOf, newLedgerPath } from "../../../billing/ledger/ledger-samples.ts";
import { PROGRAM } from "../../../harness/program.ts";

export interface Ran {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

export function writeLedger(drafts: ReadonlyArray<Partial<LineDraft> & { id: string }>): string {
  const path = newLedgerPath();
  let prev = GENESIS;
  let bytes = "";
  for (const draft of drafts) {
    const text = encodeLine(draftOf(draft.id, draft), prev);
    prev = hashLine(text);
    bytes += `${text}\n`;
  }
  writeFileSync(path, bytes);
  return path;
}

export function spawnCommand(args: readonly string[]) {
  return Bun.spawn([...PROGRAM, ...args], {
    stdout: "pipe",
    stderr: "pipe",
    stdin: "ignore",
    env: { PATH: process.env["PATH"], HOME: "/nonexistent", TZ: "UTC" },
  });
}

export async function run(...args: string[]): Promise<Ran> {
  const child = spawnCommand(args);
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status, stdout, stderr };
}
