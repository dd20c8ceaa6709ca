// The known providers, and what each adds to the config.

import { z } from "zod";
import { checkConfigText } from "../../config/file/load.ts";
import { CHANNEL_WORDS, CLIENT_LOGIN, groupPlatform, type Platform } from "../../config/schema.ts";
import { readBaseUrl, readSecretText } from "../../config/yaml/scalars.ts";
import type { Value } from "../../config/yaml/splice.ts";
import { chooseVariable } from "../access/credential-place.ts";
import { askSecret, askText, complain, printNote } from "../terminal/terminal.ts";
import { checkCredential, type CheckResult, describeCheck } from "../access/credential-check.ts";
import presets from "./presets.json";

const preset = z.object({
  id: z.string(),
  title: z.string(),
  platform: z.enum(CHANNEL_WORDS),
  channel: z.string(),
  baseUrl: z.string(),
  variable: z.string(),
  group: z.string(),
  description: z.string(),
  tool: z.string(),
  /** `bearer`: the credential is sent in `Authorization`.
   *  `local`: a server on this machine, which costs nothing. */
  kind: z.enum(["key", "bearer", "local", "login"]),
});
export type Preset = Readonly<z.infer<typeof preset>>;

export const PRESETS: readonly Preset[] = z.array(preset).parse(presets);

export const ACCOUNTS: readonly Preset[] = PRESETS.filter(
  ({ variable }, index) =>
    variable === "" || PRESETS.findIndex((other) => other.variable === variable) === index,
);

export const LOCAL_TIMEOUTS = { first_byte: "30m", idle: "30m" };

export function needsAddress({ id }: Preset): boolean {
  return id === "relay";
}

export interface PresetGroup {
  readonly name: string;
  readonly platform: Platform;
  readonly convert?: true;
  readonly description: string;
  readonly tool: string;
}

export function listGroups(preset: Preset): PresetGroup[] {
  const { id, group, platform, description, tool, kind } = preset;
  const own = {
    name: group,
    platform: groupPlatform(platform),
    description,
    tool,
  };
  if (kind !== "local") return [own];
  const claude: PresetGroup = {
    name: `claude-${id}`,
    platform: "messages",
    convert: true,
    description: `Claude Code on ${description}`,
    tool: "claude",
  };
  return [{ ...own, convert: true }, claude];
}

export interface Provider {
  readonly preset: Preset;
  readonly baseUrl: string;
  readonly credential: string | null;
  readonly variables: Readonly<Record<string, string>>;
}

export function isSet(variable: string): boolean {
  return (process.env[variable] ?? "") !== "";
}

export function isGiven({ variable, kind }: Preset): boolean {
  return kind === "local" || kind === "login" || isSet(variable);
}

export function describeProvider(preset: Preset, path: string, secret: string | null = null): Provider {
  const { kind, variable, channel } = preset;
  const baseUrl = locate(preset) ?? preset.baseUrl;
  if (secret !== null) {
    const own = chooseVariable(path, channel);
    return {
      preset,
      baseUrl,
      credential: `\${${own}}`,
      variables: { [own]: secret },
    };
  }
  const needsNone = variable === "" || (kind === "local" && !isSet(variable));
  const credential = kind === "login" ? CLIENT_LOGIN : needsNone ? null : `\${${variable}}`;
  return { preset, baseUrl, credential, variables: {} };
}

const TEST_SERVERS = "GATEWAY_TEST_LOCAL_SERVERS";

export function locate({ id, baseUrl, kind }: Preset): string | undefined {
  const named = process.env[TEST_SERVERS];
  if (kind !== "local" || named === undefined) return baseUrl;
  return named.split(" ").flatMap((each) => each.split(`${id}=`)[1] ?? [])[0];
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

export function checkProvider(provider: Provider, path: string): Promise<CheckResult> {
  const text = JSON.stringify({ channels: { one: describeChannel(provider) } });
  const env = { ...process.env, ...provider.variables };
  const [channel] = checkConfigText(text, path, env, { missing: "keep" }).catalog.channels.values();
  if (channel === undefined) throw new Error("The provider has no channel.");
  return checkCredential(channel);
}

export async function askProvider(wanted: Preset, path: string): Promise<Provider> {
  const ask = { message: "The relay's base URL", check: complain(readBaseUrl) };
  const preset = needsAddress(wanted) ? { ...wanted, baseUrl: await askText(ask) } : wanted;
  const otherwise = preset.variable === "" ? "it needs none" : `${preset.variable} will hold it`;
  let message = `${preset.title}: paste the credential, or Enter if ${otherwise}`;
  for (let last = describeProvider(preset, path); ;) {
    const check = (answer: string) => (answer === "" ? undefined : complain(readSecretText)(answer));
    const secret = isGiven(preset) ? "" : await askSecret({ message, check });
    if (secret === "" && !isGiven(preset)) return last;
    last = describeProvider(preset, path, secret || null);
    const result = await checkProvider(last, path);
    printNote(`${preset.title}: ${describeCheck(result)}`);
    // If the upstream was not reached, the credential may be right.
    if (result.kind !== "refused" || isGiven(preset)) return last;
    message = "Paste another one, or Enter to use this one anyway";
  }
}
