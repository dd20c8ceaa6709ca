// Reads and changes the config.
// commands/ must not import it: zod and yaml load slowly.

import { z } from "zod";
import type { Catalog, Group } from "../../config/catalog.ts";
import { findConfig } from "../../config/file/find.ts";
import { type LoadedConfig, loadConfig } from "../../config/file/load.ts";
import { type ConfigFile, editConfig } from "../../config/file/replace.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Edit } from "../../config/yaml/edit.ts";
import { isSameFile } from "../terminal/own-command.ts";
import { confirmRemoval, printNote } from "../terminal/terminal.ts";
import { tryGateway } from "./control.ts";

export interface ConfigFlags {
  readonly config?: string;
}

export interface ListFlags extends ConfigFlags {
  readonly json?: true;
}

export interface RemoveFlags extends ConfigFlags {
  readonly yes?: true;
}

/** Variables may be unset, because the callers send no requests. */
export function openConfig(flags: ConfigFlags): LoadedConfig & ConfigFile {
  const loaded = loadConfig(findConfig(flags.config, process.env), process.env, { missing: "keep" });
  return { ...loaded, ...openConfigFile(loaded.path) };
}

/** Returns null if an optional config cannot be used, unless a flag names it. */
export function openConfigUnless(isOptional: boolean, flags: ConfigFlags): LoadedConfig | null {
  try {
    return openConfig(flags);
  } catch (error) {
    if (!isOptional || flags.config !== undefined) throw error;
    return null;
  }
}

/** `plan` throws if something needs the entry. */
export async function removeEntry(
  what: string,
  flags: RemoveFlags,
  plan: (catalog: Catalog) => Edit[],
  more = "",
): Promise<void> {
  const config = openConfig(flags);
  plan(config.catalog);
  await confirmRemoval(what, flags);
  await config.edit(plan);
  printNote(`Removed ${what}.${more}`);
}

const MAX_WAIT_MS = 2000;

export function openConfigFile(path: string): ConfigFile {
  return {
    path,
    edit: async (decide) => {
      const { catalog, sha256 } = await editConfig(path, process.env, decide);
      await waitForGateway(path, catalog, { kind: "config", sha256 });
      return catalog;
    },
  };
}

const replySchema = z.object({
  config: z.string().nullable(),
  outcome: z.object({ kind: z.string(), message: z.string().default("") }).nullable(),
});

type Changed = { readonly kind: "config"; readonly sha256: string } | { readonly kind: "prices" };

export async function waitForGateway(
  path: string,
  { ledger }: Pick<Catalog, "ledger">,
  changed: Changed,
): Promise<void> {
  try {
    const call = {
      ledgerPath: ledger.path,
      timeoutMs: MAX_WAIT_MS,
      body: changed,
    };
    const reply = await tryGateway(call, "POST", `actions/apply-${changed.kind}`);
    if (reply === null) return;
    const { config, outcome } = replySchema.parse(reply);
    if (config === null || !isSameFile(config, path))
      printNote(`The running gateway uses another config (${config}): it does not follow this change.`);
    else if (outcome?.kind === "refused") {
      // No `fail`: the command may have a secret to print.
      process.exitCode = 1;
      printNote(`The change is in the file, but the running gateway refuses it: ${outcome.message}`);
    }
  } catch (error) {
    printNote(`The running gateway has not confirmed that it uses the change. ${messageOf(error)}`);
  }
}

export function describeGroup({ platform, multiplier }: Group): string {
  return `${platform}, ×${multiplier}`;
}
