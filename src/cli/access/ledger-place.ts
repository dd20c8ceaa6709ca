// Finds a command's ledger: that of --ledger, or the config's.

import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { Table } from "../../billing/store/open.ts";
import { listLedgerFiles } from "../../billing/ledger/rotation.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { followLinks } from "../../lib/files/links.ts";
import { type ConfigFlags, openConfig } from "./config.ts";
import { fail, printNote } from "../terminal/terminal.ts";

export interface LedgerFlags extends ConfigFlags {
  readonly ledger?: string;
}

export function locateLedger(flags: LedgerFlags): string {
  return flags.ledger === undefined
    ? openConfig(flags).catalog.ledger.path
    : followLinks(resolve(flags.ledger));
}

export function findLedger(flags: LedgerFlags): string {
  const path = locateLedger(flags);
  return hasFiles(path) ? path : fail(describeMissing(path, flags));
}

/** The config's ledger may be missing. `loaded` is null only if --ledger names a ledger. */
export function findLedgerOrEmpty(loaded: LoadedConfig | null, flags: LedgerFlags): string {
  if (loaded === null || flags.ledger !== undefined) return findLedger(flags);
  const { path } = loaded.catalog.ledger;
  if (!hasFiles(path)) printNote(describeMissing(path, flags));
  return path;
}

/** `isCopy` is true if --ledger names the ledger: nothing is written next to it. */
export function useLedger(config: LoadedConfig, flags: LedgerFlags) {
  if (flags.ledger === undefined) return { ...config, isCopy: false };
  const ledger = { ...config.catalog.ledger, path: findLedger(flags) };
  return {
    ...config,
    catalog: { ...config.catalog, ledger },
    isCopy: true,
  };
}

export function openTable(path: string, { ledger }: LedgerFlags): Table {
  return new Table(path, { report: printNote, isCopy: ledger !== undefined });
}

function hasFiles(path: string): boolean {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
    fail(`${path} is a folder, not a ledger.`);
  return listLedgerFiles(path).length > 0;
}

function describeMissing(path: string, flags: LedgerFlags): string {
  if (existsSync(`${path}.open`))
    return `The ledger ${path} was removed, but its journal was not. Restore it from a backup.`;
  const why = flags.ledger === undefined ? " yet. The first request creates it" : "";
  return `There is no ledger at ${path}${why}.`;
}
