// Which ledger a command reads: the one that --ledger names, or the config's.

import { statSync } from "node:fs";
import { resolve } from "node:path";

import { listLedgerFiles } from "../../billing/ledger/rotation.ts";
import { followLinks } from "../../lib/links.ts";
import { type ConfigFlags, openConfig } from "../config-access.ts";
import { fail, tell } from "../terminal.ts";

export interface LedgerFlags extends ConfigFlags {
  readonly ledger?: string;
}

/** It need not be there. */
export function locateLedger(flags: LedgerFlags): string {
  return flags.ledger === undefined
    ? openConfig(flags).catalog.ledger.path
    : followLinks(resolve(flags.ledger));
}

/** It is there. */
export function findLedger(flags: LedgerFlags): string {
  const path = locateLedger(flags);
  return isBegun(path) ? path : fail(describeMissing(path, flags));
}

/** Before the first request, the config's is an empty one. */
export function findReported(flags: LedgerFlags): string {
  if (flags.ledger !== undefined) return findLedger(flags);
  const path = locateLedger(flags);
  if (!isBegun(path)) tell(describeMissing(path, flags));
  return path;
}

function isBegun(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    fail(`${path} is a folder, not a ledger.`);
  return listLedgerFiles(path).length > 0;
}

function describeMissing(path: string, flags: LedgerFlags): string {
  const why = flags.ledger === undefined ? " yet: it begins with the first request" : "";
  return `There is no ledger at ${path}${why}.`;
}
