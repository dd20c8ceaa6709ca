// Which ledger a command reads: the one that --ledger names, or the config's.

import { statSync } from "node:fs";
import { resolve } from "node:path";

import { listLedgerFiles } from "../billing/ledger-files.ts";
import { followLinks } from "../lib/links.ts";
import { type ConfigFlags, openConfig } from "./opening.ts";
import { fail } from "./terminal.ts";

export interface LedgerFlags extends ConfigFlags {
  readonly ledger?: string;
}

/** It need not be there. */
export function locateLedger(flags: LedgerFlags): string {
  return flags.ledger === undefined
    ? openConfig(flags).catalog.ledger.path
    : followLinks(resolve(flags.ledger));
}

export function findLedger(flags: LedgerFlags): string {
  const path = locateLedger(flags);
  if (listLedgerFiles(path).length === 0)
    return fail(`There is no ledger at ${path}: it begins with the first request.`);
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    return fail(`${path} is a folder, not a ledger.`);
  return path;
}
