// A provider for the config: its channel, its groups, and where its credential comes from.

import { checkConfigText } from "../../config/file/load.ts";
import { CLIENT_LOGIN } from "../../config/schema.ts";
import { readBaseUrl, readSecretText } from "../../config/yaml/scalars.ts";
import type { Value } from "../../config/yaml/splice.ts";
import { chooseVariable } from "../access/credential-place.ts";
import { askSecret, askText, complain, printNote } from "../terminal/terminal.ts";
import { checkCredential, type CheckResult, describeCheck } from "../access/credential-check.ts";
import { LOCAL_TIMEOUTS, needsAddress, type Preset, type PresetGroup } from "./presets.ts";

export interface Provider {
  readonly preset: Preset;
  readonly baseUrl: string;
  /** As the config will hold it; null: it needs none. */
  readonly credential: string | null;
  /** A pasted credential, for the file next to the config. */
  readonly variables: Readonly<Record<string, string>>;
}

export function isSet(variable: string): boolean {
  return (process.env[variable] ?? "") !== "";
}

/** Nobody has to be asked for its credential. */
export function isGiven({ variable, kind }: Preset): boolean {
  return kind === "local" || kind === "login" || isSet(variable);
}

/** `path`: the config's. `secret`: null if the credential is in the preset's variable, or not
 *  needed. */
export function describeProvider(preset: Preset, path: string, secret: string | null = null): Provider {
  const { kind, variable, channel } = preset;
  const baseUrl = locate(preset) ?? preset.baseUrl;
  if (secret !== null) {
    const own = chooseVariable(path, channel);
    return { preset, baseUrl, credential: `\${${own}}`, variables: { [own]: secret } };
  }
  const needsNone = variable === "" || (kind === "local" && !isSet(variable));
  const credential = kind === "login" ? CLIENT_LOGIN : needsNone ? null : `\${${variable}}`;
  return { preset, baseUrl, credential, variables: {} };
}

/** Tests say which servers run (`ollama=http://127.0.0.1:40001/v1`), so that none of their machine
 *  answers. */
const TEST_SERVERS = "GATEWAY_TEST_LOCAL_SERVERS";

export function locate({ id, baseUrl, kind }: Preset): string | undefined {
  const named = kind === "local" ? process.env[TEST_SERVERS] : undefined;
  if (named === undefined) return baseUrl;
  const own = named.split(" ").find((each) => each.startsWith(`${id}=`));
  return own?.slice(id.length + 1);
}

export function describeChannel({ preset, baseUrl, credential }: Provider): Value {
  const { platform, kind } = preset;
  return {
    platform,
    base_url: baseUrl,
    ...(credential !== null && { credential }),
    ...(kind === "bearer" && { headers: { authorization: `Bearer ${credential}` } }),
    ...(kind === "local" && { free: "true", timeouts: LOCAL_TIMEOUTS }),
  };
}

export function describeGroup({ kind, channel }: Preset, group: PresetGroup): Value {
  const { platform, convert, description } = group;
  const more = convert === true ? { convert: "true" } : kind === "login" ? {} : { multiplier: "1" };
  return { platform, ...more, channels: [channel], description };
}

/** Through a config of this provider alone, so that the check sends what the gateway would send. */
export function checkProvider(provider: Provider, path: string): Promise<CheckResult> {
  const text = JSON.stringify({ channels: { one: describeChannel(provider) } });
  const env = { ...process.env, ...provider.variables };
  const [channel] = checkConfigText(text, path, env, { missing: "keep" }).catalog.channels.values();
  if (channel === undefined) throw new Error("The config of a provider has no channel.");
  return checkCredential(channel);
}

/** One hidden field, once more after a refusal. Without an answer, the credential is in the
 *  variable. */
export async function askProvider(wanted: Preset, path: string): Promise<Provider> {
  const preset = needsAddress(wanted)
    ? { ...wanted, baseUrl: await askText({ message: "The relay's base URL", check: complain(readBaseUrl) }) }
    : wanted;
  const otherwise = preset.variable === "" ? "it needs none" : `${preset.variable} will hold it`;
  let message = `${preset.title}: paste the credential (kept in gateway.env), or Enter if ${otherwise}`;
  for (let last = describeProvider(preset, path); ;) {
    const check = (answer: string) => (answer === "" ? undefined : complain(readSecretText)(answer));
    const secret = isGiven(preset) ? "" : await askSecret({ message, check });
    if (secret === "" && !isGiven(preset)) return last;
    last = describeProvider(preset, path, secret || null);
    const result = await checkProvider(last, path);
    printNote(`${preset.title}: ${describeCheck(result)}`);
    // Offline, the credential may be right: `gateway doctor` checks it later.
    if (result.kind !== "refused" || isGiven(preset)) return last;
    message = "Paste another one, or Enter to use this one anyway";
  }
}
