// `NAME=value` lines, as shells, systemd and dotenv read them.

import { closeSync, fstatSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { ForeignFile, openPlain } from "../../lib/files/own-file.ts";
import type { Environment } from "../yaml/expand.ts";
import { requireTrust } from "./find.ts";
import { ConfigError } from "../yaml/problems.ts";

export interface Assignment {
  readonly name: string;
  readonly value: string;
}

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)$/;
const QUOTED = /^(["'])(.*)\1\s*(?:#.*)?$/;

/** Null: some line is not an assignment. */
export function parseEnvFile(text: string): Assignment[] | null {
  const lines = text.split("\n").filter((line) => !/^\s*(#|$)/.test(line));
  const found = lines.flatMap((line): Assignment[] => {
    const [, name, raw = ""] = ASSIGNMENT.exec(line.trim()) ?? [];
    return name === undefined ? [] : [{ name, value: unquote(raw) }];
  });
  return found.length === lines.length ? found : null;
}

/** Between double quotes, shells and systemd remove the backslash. */
const ESCAPED = /\\(["\\$`])/g;

function unquote(raw: string): string {
  const [, mark, quoted] = QUOTED.exec(raw) ?? [];
  if (quoted === undefined) return raw.replace(/\s+#.*$/, "").trim();
  return mark === '"' ? quoted.replaceAll(ESCAPED, "$1") : quoted;
}

export function placeEnvFile(configPath: string): string {
  return join(dirname(configPath), "gateway.env");
}

export function readEnvFile(configPath: string): Environment {
  const path = placeEnvFile(configPath);
  let handle: number;
  try {
    handle = openPlain(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return {};
    if (error instanceof ForeignFile) throw new ConfigError(`${error.message}.`);
    throw new ConfigError(`${path} cannot be read: ${codeOf(error)}.`);
  }
  try {
    const stats = fstatSync(handle);
    requireTrust(path, stats);
    const found = parseEnvFile(readFileSync(handle, "utf8"));
    if (found === null) throw new ConfigError(`${path} must hold NAME=value lines only.`);
    return Object.fromEntries(found.map(({ name, value }) => [name, value]));
  } finally {
    closeSync(handle);
  }
}
