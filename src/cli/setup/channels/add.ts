// The action of `gateway channels add`: checks the credential and adds a channel, with a group if it needs one. The
// file keeps its comments and order.

import type { Catalog } from "../../../config/catalog.ts";
import type { Edit } from "../../../config/yaml/edit.ts";
import { suggestNearest } from "../../../config/nearest.ts";
import { readBaseUrl, readName, readSecretText } from "../../../config/yaml/scalars.ts";
import { suggestValue } from "../../../config/yaml/problems.ts";
import { type ChannelPlatform, CHANNEL_WORDS, CONVERTIBLE, groupPlatform } from "../../../config/schema.ts";
import { CHANNEL_ROWS, PLATFORM_ROWS } from "../../../dialects/platforms.ts";
import { findGroup } from "../../../config/changes/names.ts";
import { listVariables } from "../../../config/yaml/expand.ts";
import { type LoadedConfig, readConfigText } from "../../../config/file/load.ts";
import { parseSource } from "../../../config/yaml/source.ts";
import { type ConfigFlags, openConfig } from "../../access/config.ts";
import { chooseVariable, listExported, nameVariable } from "../../access/credential-place.ts";
import { nameOwnCommand } from "../../terminal/own-command.ts";
import {
  askOne,
  canPrompt,
  fail,
  printJson,
  readAll,
  readGiven,
  refuseUsage,
  printNote,
} from "../../terminal/terminal.ts";
import { describeCheck } from "../credential-check.ts";
import { addVariables } from "../env-file.ts";
import { listGroups, needsAddress, type Preset, PRESETS } from "../presets.ts";
import {
  askProvider,
  checkProvider,
  describeChannel,
  describeGroup,
  isGiven,
  isSet,
  type Provider,
  referTo,
} from "../provider.ts";

export interface AddChannelFlags extends ConfigFlags {
  readonly name?: string;
  readonly platform?: string;
  readonly group?: string;
  readonly credential?: string;
  /** False with --no-check. */
  readonly check: boolean;
  readonly json?: true;
}

export async function addChannel(what: string, flags: AddChannelFlags): Promise<void> {
  const config = openConfig(flags);
  const { catalog, path } = config;
  const preset = choosePlace(await describeTarget(what, flags), flags, catalog);
  const provider = await chooseCredential(preset, config, flags);
  const edits = (current: Catalog): Edit[] => {
    requireFree(preset, current, flags.group);
    return planEdits(provider, flags.group);
  };
  edits(catalog);
  // The variable comes first: a running gateway applies the config as soon as it changes.
  await addVariables(path, provider.variables);
  await config.edit(edits);
  const { channel, platform, baseUrl } = preset;
  const groups = flags.group === undefined ? listGroups(preset).map(({ name }) => name) : [flags.group];
  if (flags.json === true) printJson({ name: channel, platform, base_url: baseUrl, groups });
  const names = groups.map((each) => `"${each}"`).join(" and ");
  printNote(`Added the channel "${channel}" to the ${groups.length === 1 ? "group" : "groups"} ${names}.`);
  if (flags.group !== undefined) return;
  for (const { name, tool } of listGroups(preset))
    if (tool !== "") printNote(`Use it: ${nameOwnCommand()} run --group ${name} ${tool}`);
}

async function describeTarget(what: string, flags: AddChannelFlags): Promise<Preset> {
  const known = PRESETS.filter((preset) => !needsAddress(preset));
  const found = known.find(({ id }) => id === what);
  if (found !== undefined) {
    if (flags.platform !== undefined && flags.platform !== found.platform)
      refuseUsage(
        `--platform: ${found.title} is ${found.platform}. Give its URL instead to use another platform.`,
      );
    return found;
  }
  const ids = known.map(({ id }) => id);
  if (!/^https?:\/\//.test(what))
    return refuseUsage(
      `There is no preset "${what}"${suggestNearest(what, ids)}. Presets: ${ids.join(", ")}; or a URL.`,
    );
  const { hostname, href } = readGiven(() => readBaseUrl(what), "The URL cannot be used");
  const platform = flags.platform === undefined ? await askPlatform() : requirePlatform(flags.platform);
  const name = flags.name ?? hostname.replace(/^(www|api)\./, "").replaceAll(/[^a-z0-9]+/gi, "-");
  return {
    id: name,
    title: hostname,
    platform,
    channel: name,
    baseUrl: href.replace(/\/+$/, ""),
    group: name,
    description: hostname,
    variable: nameVariable(name),
    tool: platform === "chat" ? "opencode" : (PLATFORM_ROWS[platform].tools[0] ?? ""),
  };
}

async function askPlatform(): Promise<ChannelPlatform> {
  if (!canPrompt()) return refuseUsage(`--platform is missing: ${CHANNEL_WORDS.join(", ")}.`);
  const choices = CHANNEL_WORDS.map((platform) => ({
    value: platform,
    label: `${platform}: ${CHANNEL_ROWS[platform].answerPaths.join(", ")}`,
  }));
  const chosen = await askOne("Which platform is it?", choices);
  return requirePlatform(chosen);
}

function requirePlatform(text: string): ChannelPlatform {
  const found = CHANNEL_WORDS.find((platform) => platform === text);
  return (
    found ??
    refuseUsage(`--platform: expected ${CHANNEL_WORDS.join(", ")}${suggestValue(text, CHANNEL_WORDS)}.`)
  );
}

function choosePlace(preset: Preset, { name }: AddChannelFlags, { channels }: Catalog): Preset {
  if (name === undefined) return preset;
  readGiven(() => readName(name), `--name: "${name}" cannot be a name`);
  // A second channel of a provider usually has another credential.
  const variable = channels.has(preset.channel) ? nameVariable(name) : preset.variable;
  return { ...preset, id: name, channel: name, group: name, variable };
}

async function chooseCredential(
  preset: Preset,
  config: LoadedConfig,
  flags: AddChannelFlags,
): Promise<Provider> {
  const { path } = config;
  if (flags.credential === undefined && !isGiven(preset) && canPrompt()) return askProvider(preset, path);
  const provider = await readCredential(preset, config, flags);
  if (!flags.check) return provider;
  const result = await checkProvider(provider, path);
  if (result.kind === "refused")
    fail(`${preset.title} ${describeCheck(result)}. Nothing was added; --no-check adds it anyway.`);
  printNote(`${preset.title} ${describeCheck(result)}`);
  return provider;
}

async function readCredential(
  preset: Preset,
  { catalog, path }: LoadedConfig,
  { credential }: AddChannelFlags,
): Promise<Provider> {
  const provider = referTo(preset);
  if (credential === undefined) {
    if (isGiven(preset)) return provider;
    return refuseUsage(`--credential - is missing (reads stdin), or set ${preset.variable}.`);
  }
  if (preset.kind === "login")
    refuseUsage("--credential: this channel passes on the login of the tool itself.");
  const secret = await readGivenCredential(credential);
  const { channel, variable: wanted } = preset;
  const exported = await listExported(catalog.ledger.path, [wanted, nameVariable(channel)]);
  const place = {
    variable: wanted,
    isExported: isSet(wanted) || exported.includes(wanted),
    isShared: listVariables(parseSource(readConfigText(path)).tree).includes(wanted),
  };
  const variable = chooseVariable(channel, place, exported);
  return { ...provider, credential: `\${${variable}}`, variables: { [variable]: secret } };
}

/** The value of `--credential`. */
export async function readGivenCredential(credential: string): Promise<string> {
  if (credential !== "-")
    refuseUsage("--credential accepts only `-` and reads stdin: other users can see arguments.");
  const secret = (await readAll()).trim();
  return readGiven(() => readSecretText(secret), "The credential cannot be used");
}

function requireFree(preset: Preset, catalog: Catalog, groupName: string | undefined): void {
  if (catalog.channels.has(preset.channel))
    fail(`There is a channel "${preset.channel}" already. Give the new one another name with --name.`);
  if (groupName === undefined) {
    const taken = listGroups(preset).find(({ name }) => catalog.groups.has(name));
    if (taken !== undefined)
      fail(`There is a group "${taken.name}" already. Add the channel to it with --group ${taken.name}.`);
    return;
  }
  const group = findGroup(catalog, groupName);
  const isFit = group.platform === groupPlatform(preset.platform);
  if (!isFit && !(group.convert && CONVERTIBLE.has(preset.platform)))
    fail(`The group "${groupName}" is for ${group.platform}, and ${preset.title} speaks ${preset.platform}.`);
}

function planEdits(provider: Provider, group: string | undefined): Edit[] {
  const { preset } = provider;
  const { channel } = preset;
  const addition: Edit = { kind: "set", path: ["channels", channel], value: describeChannel(provider) };
  if (group !== undefined)
    return [addition, { kind: "append", path: ["groups", group, "channels"], values: [channel] }];
  const groups = listGroups(preset).map((each): Edit => {
    return { kind: "set", path: ["groups", each.name], value: describeGroup(preset, each) };
  });
  return [addition, ...groups];
}
