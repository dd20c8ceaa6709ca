// Adds credentials to `gateway.env` next to the config, a file that only the user can read.

import { parseEnvFile, placeEnvFile } from "../../config/file/env-file.ts";
import { readOwn, replaceFile } from "../../lib/files/own-file.ts";

/** Keeps the other lines as they are. */
export function addVariables(configPath: string, variables: Readonly<Record<string, string>>): void {
  const names = Object.keys(variables);
  if (names.length === 0) return;
  const path = placeEnvFile(configPath);
  const kept = (readOwn(path) ?? "# Credentials that the config refers to.\n")
    .split("\n")
    .filter((line) => !parseEnvFile(line)?.some(({ name }) => names.includes(name)));
  const added = names.map((name) => `${name}=${quote(variables[name] ?? "")}`);
  const text = [...kept.join("\n").trimEnd().split("\n"), ...added].filter(
    (line, index) => index > 0 || line !== "",
  );
  replaceFile(path, `${text.join("\n")}\n`, { mode: 0o600, durable: true });
}

/** As shells, systemd and this program read it. */
function quote(value: string): string {
  if (/^[\w.:/+=-]+$/.test(value)) return value;
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}
