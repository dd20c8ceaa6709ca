// Adds credentials to `gateway.env`, and keeps them out of git.

import { existsSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseEnvFile, placeEnvFile } from "../../config/file/env-file.ts";
import { lockConfig } from "../../config/file/replace.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { messageOf } from "../../lib/errors.ts";
import { readOwn, removeDrafts, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { complain, fail, printNote } from "../terminal/terminal.ts";

/** Keeps lines that other commands add meanwhile. */
export async function changeVariables(
  configPath: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const added = Object.entries(variables).map(([name, value]) => `${name}=${quoteValue(value)}`);
  if (added.length === 0) return;
  requireWritable(configPath, variables);
  const { owner, lock } = await lockConfig(configPath);
  try {
    const path = placeEnvFile(configPath);
    removeDrafts(path);
    ignoreInGit(configPath);
    const kept = (readOwn(path) ?? "# Credentials that the config refers to.\n")
      .split("\n")
      .filter((line) => !parseEnvFile(line)?.some(({ name }) => name in variables));
    const lines = [...kept.join("\n").trimEnd().split("\n"), ...added];
    const text = lines.filter((line, index) => index > 0 || line !== "").join("\n");
    replaceFile(path, `${text}\n`, {
      mode: 0o600,
      durable: true,
      owner,
      secret: true,
    });
  } finally {
    lock.release();
  }
}

/** Refuses a link, because its target's variables would be lost. */
export function requireWritable(configPath: string, variables: Readonly<Record<string, string>>): void {
  const lines = Object.keys(variables).map((name) => `${name}=…`);
  if (lines.length === 0) return;
  for (const [name, value] of Object.entries(variables)) {
    // A line break would start another variable.
    const fault = complain(readSecretText)(value);
    if (fault !== undefined) fail(`Nothing was changed: the credential for ${name}: ${fault}.`);
  }
  try {
    requireOwn(placeEnvFile(configPath));
  } catch (error) {
    const why = messageOf(error);
    fail(`Nothing was changed: ${why}. Or add ${lines.join(" and ")} to that file yourself.`);
  }
}

/** In a git work tree, `git add` would add secrets and the ledger. */
export function ignoreInGit(path: string): void {
  const folder = dirname(path);
  // The folder may be a link into a work tree.
  if (!isInGit(realpathSync(folder))) return;
  const place = join(folder, ".gitignore");
  const wanted = ["gateway.env", `.${basename(path)}.*`, "ledger*.jsonl*"];
  try {
    const old = readOwn(place) ?? "";
    const missing = wanted.filter((pattern) => !old.split(/\r?\n/).includes(pattern));
    if (missing.length === 0) return;
    const start = old === "" || old.endsWith("\n") ? old : `${old}\n`;
    const lines = ["# Secrets and the ledger of the gateway", ...missing, ""].join("\n");
    replaceFile(place, start + lines, { mode: 0o644 });
    printNote(`${place} keeps the secrets and the ledger out of git.`);
  } catch (error) {
    printNote(`Add ${wanted.join(", ")} to ${place}, which cannot be written: ${messageOf(error)}.`);
  }
}

function isInGit(folder: string): boolean {
  const above = dirname(folder);
  return existsSync(join(folder, ".git")) || (above !== folder && isInGit(above));
}

/** Quotes a value as shells, systemd and this program read it. */
function quoteValue(value: string): string {
  if (/^[\w.:/+=-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value.replaceAll(/["\\$`]/g, "\\$&")}"` : `'${value}'`;
}
