// Adds credentials to `gateway.env` next to the config, which only the user can read.

import { parseEnvFile, placeEnvFile } from "../../config/file/env-file.ts";
import { lockConfig } from "../../config/file/replace.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { readOwn, removeDrafts, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { complain, fail } from "../terminal/terminal.ts";

/** Keeps lines that other commands add meanwhile. Null removes a variable. */
export async function changeVariables(
  configPath: string,
  variables: Readonly<Record<string, string | null>>,
): Promise<void> {
  const all = Object.entries(variables);
  const added = all.flatMap(([name, value]) => (value === null ? [] : [`${name}=${quoteValue(value)}`]));
  if (all.length === 0) return;
  requireWritable(configPath, variables);
  const { owner, lock } = await lockConfig(configPath);
  try {
    const path = placeEnvFile(configPath);
    removeDrafts(path);
    const kept = (readOwn(path) ?? "# Credentials that the config refers to.\n")
      .split("\n")
      .filter((line) => !parseEnvFile(line)?.some(({ name }) => name in variables));
    const lines = [...kept.join("\n").trimEnd().split("\n"), ...added];
    const text = lines.filter((line, index) => index > 0 || line !== "").join("\n");
    replaceFile(path, `${text}\n`, { mode: 0o600, durable: true, owner, secret: true });
  } finally {
    lock.release();
  }
}

/** A link is only read: a file in its place would hide its variables. */
export function requireWritable(
  configPath: string,
  variables: Readonly<Record<string, string | null>>,
): void {
  const lines = Object.keys(variables).map((name) => `${name}=…`);
  if (lines.length === 0) return;
  for (const [name, value] of Object.entries(variables)) {
    // A line break would start another variable.
    const fault = value === null ? undefined : complain(readSecretText)(value);
    if (fault !== undefined) fail(`Nothing was changed: the credential for ${name}: ${fault}.`);
  }
  try {
    requireOwn(placeEnvFile(configPath));
  } catch (error) {
    fail(
      `Nothing was changed: ${getErrorMessage(error)}. Or add ${lines.join(" and ")} to that file yourself.`,
    );
  }
}

/** As shells, systemd and this program read it. */
function quoteValue(value: string): string {
  if (/^[\w.:/+=-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value.replaceAll(/["\\$`]/g, "\\$&")}"` : `'${value}'`;
}
