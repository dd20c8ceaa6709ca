// Where the value of a channel's credential is, for messages and for the command that replaces it.

import { placeEnvFile, readEnvFile } from "../../config/file/env-file.ts";
import { readConfigText } from "../../config/file/load.ts";
import { listVariables } from "../../config/yaml/expand.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";

export interface CredentialPlace {
  /** Null if the config has the secret itself. */
  readonly variable: string | null;
  readonly isExported: boolean;
  readonly isInEnvFile: boolean;
  /** Something else in the config reads the variable. */
  readonly isShared: boolean;
}

const REFERENCE = /^\$\{(\w+)(?::-.*)?\}$/s;

export function findCredential(configPath: string, channel: string): CredentialPlace {
  const { tree } = parseSource(readConfigText(configPath));
  const channels = getField(tree, "channels");
  const credential = getField(getField(channels, channel), "credential");
  const [, variable = null] = REFERENCE.exec(typeof credential === "string" ? credential : "") ?? [];
  if (variable === null) return { variable, isExported: false, isInEnvFile: false, isShared: false };
  const others = {
    ...(isObject(tree) && tree),
    channels: { ...(isObject(channels) && channels), [channel]: null },
  };
  return {
    variable,
    isExported: (process.env[variable] ?? "") !== "",
    isInEnvFile: readEnvFile(configPath)[variable] !== undefined,
    isShared: listVariables(others).includes(variable),
  };
}

/** The variable for the credential of a channel or provider of this name. */
export function nameVariable(name: string): string {
  const word = name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, "_")
    .replace(/^(\d)/, "_$1");
  return `${word}_API_KEY`;
}

/** "ANTHROPIC_API_KEY in /home/…/gateway.env". What a shell exports comes before the file. */
export function describePlace(configPath: string, channel: string): string {
  const { variable, isExported, isInEnvFile } = findCredential(configPath, channel);
  if (variable === null) return `channels.${channel}.credential in ${configPath}`;
  // A secret may have been written where its name belongs.
  const shown = looksSecret(variable) ? "its variable" : variable;
  if (!isExported && isInEnvFile) return `${shown} in ${placeEnvFile(configPath)}`;
  return isExported ? `the environment variable ${shown}` : `${shown}, which is not set`;
}

/** The command that replaces it, wherever it is. */
export function adviseCredential(channel: string): string {
  return `gateway channels set ${channel} --credential -`;
}
