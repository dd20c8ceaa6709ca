// Adds credentials to `gateway.env` next to the config, a file that only the user can read.

import { parseEnvFile, placeEnvFile } from "../../config/file/env-file.ts";
import { lockConfig } from "../../config/file/replace.ts";
import { readSecretText } from "../../config/yaml/scalars.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { type Owner, readOwn, removeDrafts, replaceFile, requireOwn } from "../../lib/files/own-file.ts";
import { fail } from "../terminal/terminal.ts";

/** Keeps the other lines as they are, and what other commands add at the same time. */
export async function addVariables(
  configPath: string,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  if (Object.keys(variables).length === 0) return;
  requireWritable(configPath, variables);
  await change(configPath, Object.keys(variables), variables);
}

export async function removeVariable(configPath: string, name: string): Promise<void> {
  await change(configPath, [name], {});
}

type Variables = Readonly<Record<string, string>>;

async function change(configPath: string, replaced: readonly string[], variables: Variables): Promise<void> {
  const { owner, lock } = await lockConfig(configPath);
  try {
    write(placeEnvFile(configPath), replaced, variables, owner);
  } finally {
    lock.release();
  }
}

function write(path: string, replaced: readonly string[], variables: Variables, owner: Owner): void {
  removeDrafts(path);
  const kept = (readOwn(path) ?? "# Credentials that the config refers to.\n")
    .split("\n")
    .filter((line) => !parseEnvFile(line)?.some(({ name }) => replaced.includes(name)));
  const added = Object.keys(variables).map((name) => `${name}=${quoteValue(variables[name] ?? "")}`);
  const text = [...kept.join("\n").trimEnd().split("\n"), ...added].filter(
    (line, index) => index > 0 || line !== "",
  );
  replaceFile(path, `${text.join("\n")}\n`, { mode: 0o600, durable: true, owner, secret: true });
}

/** A link is read, as dotfile managers make one. A file in its place would hide the variables that it leads to. */
export function requireWritable(configPath: string, variables: Readonly<Record<string, string>>): void {
  const lines = Object.keys(variables).map((name) => `${name}=…`);
  if (lines.length === 0) return;
  for (const [name, value] of Object.entries(variables)) requireSecretText(name, value);
  try {
    requireOwn(placeEnvFile(configPath));
  } catch (error) {
    fail(
      `The credential was not stored and nothing was changed: ${getErrorMessage(error)}. Or add ${lines.join(" and ")} to that file yourself.`,
    );
  }
}

/** A line break would begin another variable. */
function requireSecretText(name: string, value: string): void {
  try {
    readSecretText(value);
  } catch (error) {
    fail(`Nothing was changed: the credential for ${name}: ${getErrorMessage(error)}.`);
  }
}

/** As shells, systemd and this program read it. No shell runs or replaces any part of it. */
function quoteValue(value: string): string {
  if (/^[\w.:/+=-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value.replaceAll(/["\\$`]/g, "\\$&")}"` : `'${value}'`;
}
