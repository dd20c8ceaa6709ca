// Where a channel's credential is.

import { existsSync } from "node:fs";
import { placeEnvFile, readEnvFile } from "../../config/file/env-file.ts";
import { readConfigText } from "../../config/file/load.ts";
import { type Environment, listVariables } from "../../config/yaml/expand.ts";
import { valueAt } from "../../config/yaml/problems.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { getField, getText } from "../../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../../lib/secret.ts";

const REFERENCE = /^\$\{(\w+)(?::-.*)?\}$/s;

/** Null: the config has the secret itself, not a variable. */
export function findVariable(configPath: string, channel: string): string | null {
  const { tree } = parseSource(readConfigText(configPath));
  return REFERENCE.exec(getText(valueAt(tree, ["channels", channel, "credential"])))?.[1] ?? null;
}

export function nameVariable(name: string): string {
  const word = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  return `${word.replace(/^(\d)/, "_$1")}_API_KEY`;
}

/** Returns a new name, because another config may share gateway.env. */
export function chooseVariable(configPath: string, channel: string, given?: ReadonlySet<string>): string {
  const tree = existsSync(configPath) ? parseSource(readConfigText(configPath)).tree : {};
  const channels = { ...Object(getField(tree, "channels")) };
  const own = listVariables(channels[channel]);
  const others = listVariables({ ...Object(tree), channels: { ...channels, [channel]: null } });
  const stored = readEnvFile(configPath);
  const isTaken = (variable: string): boolean =>
    process.env[variable] !== undefined ||
    given?.has(variable) === true ||
    others.includes(variable) ||
    (stored[variable] !== undefined && !own.includes(variable));
  return nameOwnVariable(findFreeName(channel, (name) => isTaken(nameOwnVariable(name))));
}

export function findFreeName(wanted: string, isTaken: (name: string) => boolean): string {
  for (let number = 1; ; number += 1) {
    const name = number === 1 ? wanted : `${wanted}-${number}`;
    if (!isTaken(name)) return name;
  }
}

/** `a-b` and `a_b` get different variables. */
function nameOwnVariable(channel: string): string {
  const isPlain = /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(channel);
  return `GATEWAY_${nameVariable(isPlain ? channel : `${channel}-${sha256Hex(channel).slice(0, 6)}`)}`;
}

/** A name that may be a misplaced secret is not shown. */
export function listUnset(values: unknown, configPath: string, env: Environment): string[] {
  const own = readEnvFile(configPath);
  const unset = listVariables(values, true).filter((name) => (env[name] ?? own[name]) === undefined);
  return unset.map((name) => (looksSecret(name) ? "…" : name));
}

export function describePlace(configPath: string, channel: string): string {
  const variable = findVariable(configPath, channel);
  if (variable === null) return `channels.${channel}.credential in ${configPath}`;
  const shown = looksSecret(variable) ? "its variable" : variable;
  if ((process.env[variable] ?? "") !== "") return `the environment variable ${shown}`;
  return readEnvFile(configPath)[variable] === undefined
    ? `${shown}, which is not set`
    : `${shown} in ${placeEnvFile(configPath)}`;
}

export function adviseCredential(channel: string): string {
  return `gateway channels set ${channel} --credential -`;
}
