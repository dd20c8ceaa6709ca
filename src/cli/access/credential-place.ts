// Where the value of a channel's credential is, for messages and for the command that replaces it.

import { placeEnvFile, readEnvFile } from "../../config/file/env-file.ts";
import { readConfigText } from "../../config/file/load.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { valueAt } from "../../config/yaml/problems.ts";
import { getText } from "../../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../../lib/secret.ts";

const REFERENCE = /^\$\{(\w+)(?::-.*)?\}$/s;

/** Null if the config has the secret itself. */
export function findVariable(configPath: string, channel: string): string | null {
  const { tree } = parseSource(readConfigText(configPath));
  return REFERENCE.exec(getText(valueAt(tree, ["channels", channel, "credential"])))?.[1] ?? null;
}

/** A variable for the credential of a channel or provider of this name. */
export function nameVariable(name: string): string {
  const word = name.toUpperCase().replaceAll(/[^A-Z0-9]+/g, "_");
  return `${word.replace(/^(\d)/, "_$1")}_API_KEY`;
}

/** The one for a secret that goes into gateway.env. What a shell exports comes before that file, and nobody exports this name.
 *  Channels that differ have variables that differ: `a-b` gives A_B, and a name that is less plain, such as `a_b`, also gives
 *  a part of its hash. */
export function nameOwnVariable(channel: string): string {
  const isPlain = /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(channel);
  return `GATEWAY_${nameVariable(isPlain ? channel : `${channel}-${sha256Hex(channel).slice(0, 6)}`)}`;
}

/** "ANTHROPIC_API_KEY in /home/…/gateway.env". */
export function describePlace(configPath: string, channel: string): string {
  const variable = findVariable(configPath, channel);
  if (variable === null) return `channels.${channel}.credential in ${configPath}`;
  // A secret may have been written where its name belongs.
  const shown = looksSecret(variable) ? "its variable" : variable;
  if ((process.env[variable] ?? "") !== "") return `the environment variable ${shown}`;
  return readEnvFile(configPath)[variable] === undefined
    ? `${shown}, which is not set`
    : `${shown} in ${placeEnvFile(configPath)}`;
}

export function adviseCredential(channel: string): string {
  return `gateway channels set ${channel} --credential -`;
}
