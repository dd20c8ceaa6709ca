// The secrets of keys that `gateway run` created. The config has only their hashes.
// Secrets that fit no key are ignored.

import { basename, dirname, join } from "node:path";
import { z } from "zod";
import type { Catalog } from "../catalog.ts";
import { parseJson } from "../../lib/json/json.ts";
import { resolveLinks } from "../../lib/files/links.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";
import { sha256Hex } from "../../lib/secret.ts";

const entrySchema = z.lazy(() => z.object({ tool: z.string(), key: z.string(), secret: z.string() }));
const fileSchema = z.lazy(() => z.object({ keys: z.array(entrySchema) }));

export type ToolSecret = z.infer<typeof entrySchema>;

export function listToolKeys(tool: string, configPath: string, catalog: Catalog) {
  return readEntries(configPath)
    .filter((entry) => entry.tool === tool)
    .flatMap((entry) => matchKey(entry, catalog));
}

export function findStoredSecret(name: string, configPath: string, catalog: Catalog): string | null {
  const own = readEntries(configPath).filter(({ key }) => key === name);
  return own.find((entry) => matchKey(entry, catalog).length > 0)?.secret ?? null;
}

export function storeToolSecret(entry: ToolSecret, configPath: string): void {
  change(configPath, (entries) => [entry, ...entries.filter(({ key }) => key !== entry.key)]);
}

export function replaceToolSecret(key: string, secret: string, configPath: string): void {
  change(configPath, (entries) => entries.map((entry) => (entry.key === key ? { ...entry, secret } : entry)));
}

export function removeToolSecrets(names: readonly string[], configPath: string): void {
  change(configPath, (entries) => entries.filter(({ key }) => !names.includes(key)));
}

/** The caller holds the config's lock. */
function change(configPath: string, plan: (entries: readonly ToolSecret[]) => ToolSecret[]): void {
  const entries = readEntries(configPath);
  const keys = plan(entries);
  if (Bun.deepEquals(keys, entries)) return;
  replaceFile(placeFile(configPath), `${JSON.stringify({ keys }, null, 2)}\n`, {
    durable: true,
    secret: true,
  });
}

function matchKey({ key: name, secret }: ToolSecret, { keysBySha256 }: Catalog) {
  const key = keysBySha256.get(sha256Hex(secret));
  return key?.name === name ? [{ key, secret }] : [];
}

/** If the config's path is a link, the file is next to the link's target. */
function placeFile(configPath: string): string {
  const file = resolveLinks(configPath);
  return join(dirname(file), `.${basename(file)}.tool-keys`);
}

/** A damaged file counts as empty: `run` creates new keys. */
function readEntries(configPath: string): ToolSecret[] {
  const text = readOwn(placeFile(configPath));
  return text === null ? [] : (fileSchema.safeParse(parseJson(text)).data?.keys ?? []);
}
