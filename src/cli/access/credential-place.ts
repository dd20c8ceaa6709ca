// Where the value of a channel's credential is, for messages and for the command that replaces it.

import { z } from "zod";
import { placeEnvFile, readEnvFile } from "../../config/file/env-file.ts";
import { readConfigText } from "../../config/file/load.ts";
import { listVariables } from "../../config/yaml/expand.ts";
import { parseSource } from "../../config/yaml/source.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";
import { tryGateway } from "./control.ts";

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

/** Those of the variables that the running gateway's environment has. Nobody replies if none runs, or an older one. */
export async function listExported(ledgerPath: string, names: readonly string[]): Promise<string[]> {
  try {
    const query = new URLSearchParams(names.map((name): [string, string] => ["name", name])).toString();
    const reply = await tryGateway({ ledgerPath, timeoutMs: 2000 }, "GET", `/exported?${query}`);
    return z.array(z.string()).parse(reply);
  } catch {
    return [];
  }
}

/** The variable for the credential of a channel or provider of this name. */
export function nameVariable(name: string): string {
  const word = name
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, "_")
    .replace(/^(\d)/, "_$1");
  return `${word}_API_KEY`;
}

/** The variable that is wanted, or another one, where a new value in gateway.env reaches this channel and no other. */
export function chooseVariable(
  name: string,
  { variable, isExported, isShared }: Omit<CredentialPlace, "isInEnvFile">,
  exported: readonly string[],
): string {
  if (variable !== null && !isExported && !isShared) return variable;
  const own = nameVariable(name);
  // What a shell exports comes before gateway.env, also for the gateway that was started there.
  const isTaken = own === variable || (process.env[own] ?? "") !== "" || exported.includes(own);
  return isTaken ? `GATEWAY_${own}` : own;
}

/** "ANTHROPIC_API_KEY in /home/…/gateway.env". What a shell exports comes before the file. */
export function describePlace(
  { variable, isExported, isInEnvFile }: CredentialPlace,
  configPath: string,
  channel: string,
): string {
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
