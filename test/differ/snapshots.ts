// Reads and writes the output of 0.2.0 for the stored ledgers: a file for each ledger, a line for each command.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  copyLedger,
  inLanes,
  listCommands,
  print,
  type Printed,
  type Run,
  runOf,
  STORED,
  listStored,
} from "./ledgers.ts";

const FOLDER = join(import.meta.dir, "snapshots");

/** The output, by command. */
export type Snapshot = ReadonlyMap<string, Printed>;

export async function printAll(run: Run, name: string, folder: string): Promise<Snapshot> {
  const copy = join(folder, name);
  copyLedger(join(STORED, name), copy);
  const commands = listCommands(copy, name === "0.2.0" ? "most" : "few");
  const printed = new Map<string, Printed>(
    commands.map((command) => [command, { status: -1, document: null }]),
  );
  await inLanes(commands, async (command) => {
    printed.set(command, await print(run, command, copy));
  });
  return printed;
}

export function readSnapshot(name: string): Snapshot {
  const lines = readFileSync(join(FOLDER, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n");
  return new Map(lines.map((line) => JSON.parse(line)));
}

export async function takeSnapshots(executable: string, folder: string): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  for (const name of listStored()) {
    const printed = await printAll(runOf(executable), name, folder);
    writeFileSync(
      join(FOLDER, `${name}.jsonl`),
      [...printed].map((entry) => `${JSON.stringify(entry)}\n`).join(""),
    );
  }
}
