// `gateway channels add`, `set` and `remove`.

import type { Catalog, Channel, Group } from "../../config/catalog.ts";
import { findGroup, refuseUnknown } from "../../config/changes/names.ts";
import { addKeychain, checkConfigText, type LoadedConfig, readConfigText } from "../../config/file/load.ts";
import type { ConfigFile } from "../../config/file/replace.ts";
import { isLoopback } from "../../config/proxy.ts";
import { didYouMean } from "../../lib/text/nearest.ts";
import { type ChannelPlatform, CHANNEL_WORDS, groupPlatform, PLATFORM_FACTS } from "../../config/schema.ts";
import { applyEdits, type Edit } from "../../config/yaml/edit.ts";
import { suggestValue, valueAt } from "../../config/yaml/problems.ts";
import { readBaseUrl, readName, readSecretText } from "../../config/yaml/scalars.ts";
import { CHANNEL_ROWS, PLATFORM_ROWS } from "../../dialects/platforms.ts";
import type { ChannelSetUp } from "../../gateway/api/parts.ts";
import { isObject } from "../../lib/json/json.ts";
import { type ConfigFlags, openConfig, removeEntry, type RemoveFlags } from "../access/config.ts";
import { chooseVariable, findVariable, nameVariable } from "../access/credential-place.ts";
import { describeChange, planChanges, readChanges } from "../access/settings.ts";
import { proposeCommand } from "../terminal/own-command.ts";
import {
  askOne,
  canPrompt,
  fail,
  printJson,
  printNote,
  readAll,
  readGiven,
  refuseUsage,
} from "../terminal/terminal.ts";
import { checkCredential, describeCheck } from "../access/credential-check.ts";
import { changeVariables } from "./env-file.ts";
import {
  askProvider,
  checkProvider,
  describeChannel,
  describeGroup,
  describeProvider,
  isGiven,
  isSet,
  listGroups,
  needsAddress,
  type Preset,
  PRESETS,
  type Provider,
} from "./provider.ts";

interface CredentialFlags extends ConfigFlags {
  readonly credential?: string;
  readonly check: boolean;
}

interface AddChannelFlags extends CredentialFlags {
  readonly name?: string;
  readonly platform?: string;
  readonly group?: string;
  readonly json?: true;
}

interface Place {
  readonly name?: string | undefined;
  readonly platform?: string | undefined;
}

export async function addChannel(what: string, flags: AddChannelFlags): Promise<void> {
  const config = openConfig(flags);
  const preset = await findPreset(what, flags, config.catalog);
  await writeChannel(config, await chooseProvider(preset, config.path, flags), flags.group);
  const { channel, platform, baseUrl } = preset;
  const own = flags.group === undefined ? listGroups(preset) : [];
  const groups = flags.group === undefined ? own.map(({ name }) => name) : [flags.group];
  if (flags.json === true) printJson({ name: channel, platform, base_url: baseUrl, groups });
  printNote(`Added the channel "${channel}" to ${nameGroups(groups, " and ")}.`);
  for (const { name, tool } of own)
    if (tool !== "") printNote(`Use it: ${proposeCommand(`run --group ${name} ${tool}`)}`);
}

async function chooseProvider(
  preset: Preset,
  path: string,
  { credential, check }: CredentialFlags,
): Promise<Provider> {
  if (credential === undefined && !isGiven(preset)) {
    if (canPrompt()) return askProvider(preset, path);
    if (preset.variable !== "")
      refuseUsage(`The credential is missing: set ${preset.variable}, or use \`--credential -\` (stdin).`);
  }
  const provider = fillProvider(preset, path, credential && (await readSecret(credential)));
  if (check) printNote(await requireAccepted(provider, path));
  return provider;
}

export function createChannelSetUp(config: string): ChannelSetUp {
  return {
    list: async () => ({
      presets: PRESETS.filter((preset) => !needsAddress(preset)).map((preset) => ({
        id: preset.id,
        title: preset.title,
        credential: isGiven(preset) ? null : preset.variable,
      })),
      platforms: CHANNEL_WORDS,
    }),
    add: async ({ what, platform, name, group, credential }) => {
      const own = openConfig({ config });
      const preset = await findPreset(what, { name, platform }, own.catalog);
      // An address that the page named must not get the environment's credential.
      const isNeeded = preset.variable !== "" && (platform !== undefined || !isGiven(preset));
      if (credential === undefined && isNeeded) return refuseUsage("The credential is missing.");
      const provider = fillProvider(preset, own.path, credential);
      const finding = await requireAccepted(provider, own.path);
      await writeChannel(own, provider, group);
      return { name: preset.channel, finding };
    },
  };
}

async function writeChannel(
  config: LoadedConfig & ConfigFile,
  provider: Provider,
  group: string | undefined,
): Promise<void> {
  const { preset } = provider;
  const { channel } = preset;
  const added: Edit = {
    kind: "set",
    path: ["channels", channel],
    value: describeChannel(provider),
  };
  const bound = listGroups(preset).map((each): Edit => {
    return {
      kind: "set",
      path: ["groups", each.name],
      value: describeGroup(preset, each),
    };
  });
  const edits = (current: Catalog): Edit[] => {
    requireFree(preset, current, group);
    if (group === undefined) return [added, ...bound];
    return [
      added,
      {
        kind: "append",
        path: ["groups", group, "channels"],
        values: [channel],
      },
    ];
  };
  edits(config.catalog);
  // The variable is first, because a running gateway applies the config at once.
  await changeVariables(config.path, provider.variables);
  await config.edit(edits);
}

function nameGroups(groups: readonly string[], separator: string): string {
  const names = groups.map((name) => `"${name}"`).join(separator);
  return `the ${groups.length === 1 ? "group" : "groups"} ${names}`;
}

async function findPreset(what: string, flags: Place, { channels }: Catalog): Promise<Preset> {
  const { name, platform } = flags;
  if (name !== undefined) readGiven(() => readName(name), `--name: "${name}" cannot be a name`);
  const known = PRESETS.filter((preset) => !needsAddress(preset));
  const found = known.find(({ id }) => id === what);
  if (found === undefined) return describeUrl(what, flags, known);
  if ((platform ?? found.platform) !== found.platform)
    refuseUsage(`--platform: ${found.title} speaks ${found.platform}. For another platform, give a URL.`);
  if (name === undefined) return found;
  const variable = channels.has(found.channel) ? nameVariable(name) : found.variable;
  return { ...found, id: name, channel: name, group: name, variable };
}

async function describeUrl(what: string, flags: Place, known: readonly Preset[]): Promise<Preset> {
  const ids = known.map(({ id }) => id);
  const near = didYouMean(what, ids);
  if (!/^https?:\/\//.test(what))
    refuseUsage(`There is no preset "${what}"${near}. Presets: ${ids.join(", ")}; or a URL.`);
  const { hostname, href } = readGiven(() => readBaseUrl(what), "The URL cannot be used");
  const platform = await choosePlatform(flags.platform);
  const name = flags.name ?? hostname.replace(/^(www|api)\./, "").replaceAll(/[^a-z0-9]+/gi, "-");
  const variable = nameVariable(name);
  return {
    id: name,
    title: hostname,
    platform,
    channel: name,
    baseUrl: href.replace(/\/+$/, ""),
    group: name,
    description: hostname,
    variable: isLoopback(hostname) && !isSet(variable) ? "" : variable,
    tool: platform === "chat" ? "opencode" : (PLATFORM_ROWS[platform].tools[0] ?? ""),
    kind: "key",
  };
}

async function choosePlatform(flag: string | undefined): Promise<ChannelPlatform> {
  if (flag === undefined && !canPrompt()) refuseUsage(`--platform is missing: ${CHANNEL_WORDS.join(", ")}.`);
  const choices = CHANNEL_WORDS.map((value) => {
    return { value, label: `${value}: ${CHANNEL_ROWS[value].answerPaths.join(", ")}` };
  });
  const word = flag ?? (await askOne("Which platform is it?", choices));
  return (
    CHANNEL_WORDS.find((platform) => platform === word) ??
    refuseUsage(`--platform: expected ${CHANNEL_WORDS.join(", ")}${suggestValue(word, CHANNEL_WORDS)}.`)
  );
}

async function requireAccepted(provider: Provider, path: string): Promise<string> {
  const result = await checkProvider(provider, path);
  const finding = `${provider.preset.title} ${describeCheck(result)}`;
  if (result.kind === "refused") fail(`${finding}. Nothing was added; --no-check adds it anyway.`);
  return finding;
}

function fillProvider(preset: Preset, path: string, secret: string | undefined): Provider {
  if (secret !== undefined && preset.kind === "login")
    refuseUsage("--credential: this channel passes on the login of the tool itself.");
  return describeProvider(preset, path, secret);
}

async function readSecret(credential: string): Promise<string> {
  if (credential !== "-")
    refuseUsage("--credential accepts only `-`, for stdin: other users can see arguments.");
  const secret = (await readAll()).trim();
  return readGiven(() => readSecretText(secret), "The credential cannot be used");
}

function requireFree(preset: Preset, catalog: Catalog, groupName: string | undefined): void {
  if (catalog.channels.has(preset.channel))
    fail(`There is a channel "${preset.channel}" already. Give another name with --name.`);
  if (groupName === undefined) {
    const taken = listGroups(preset).find(({ name }) => catalog.groups.has(name));
    if (taken === undefined) return;
    fail(`There is a group "${taken.name}" already. Add the channel to it with --group ${taken.name}.`);
  }
  const group = findGroup(catalog, groupName);
  const isFit = group.platform === groupPlatform(preset.platform);
  if (!isFit && !(group.convert && PLATFORM_FACTS[preset.platform].converts))
    fail(`The group "${groupName}" is for ${group.platform}, and ${preset.title} speaks ${preset.platform}.`);
}

const CHECKED = new Set(["base_url", "credential", "headers", "proxy", "ca"]);

export async function setChannel(
  name: string,
  words: readonly string[],
  flags: CredentialFlags,
): Promise<void> {
  const config = openConfig(flags);
  const { catalog, path } = config;
  requireChannel(catalog, name);
  const changes = readChanges(words, "channels");
  const word = changes.find((change) => change.path[0] === "credential")?.value;
  if (typeof word === "string" && !/^(?:\$\{[^}]+\}|keychain:.+)$/.test(word))
    refuseUsage("credential: expected ${NAME} or keychain:NAME; `--credential -` reads a secret.");
  const variables: Record<string, string> = {};
  const renames: Edit[] = [];
  let old: string | null = null;
  if (flags.credential !== undefined) {
    old = findVariable(path, name);
    const own = chooseVariable(path, name);
    variables[own] = await readSecret(flags.credential);
    changes.push({ path: ["credential"], value: `\${${own}}` });
    if (old !== null) renames.push(...renameInHeaders(name, config.source, old, own));
  }
  if (changes.length === 0) refuseUsage("Nothing to change. Give settings such as priority=2.");
  const edits = [...planChanges(["channels", name], changes), ...renames];
  const isChecked = changes.some((change) => CHECKED.has(change.path[0] ?? ""));
  if (isChecked && flags.check) await checkChanged(name, path, edits, variables);
  await changeVariables(path, variables);
  await config.edit((current) => {
    requireChannel(current, name);
    return edits;
  });
  printNote(`Changed the channel "${name}": ${changes.map(describeChange).join(", ")}.`);
  if (old !== null && !(old in variables)) printNote(`The variable ${old} stays: another config may use it.`);
}

function renameInHeaders(name: string, source: unknown, old: string, own: string): Edit[] {
  const headers = valueAt(source, ["channels", name, "headers"]);
  return Object.entries(isObject(headers) ? headers : {}).flatMap(([field, text]): Edit[] => {
    if (typeof text !== "string" || !text.includes(`\${${old}}`)) return [];
    const value = text.replaceAll(`\${${old}}`, `\${${own}}`);
    return [
      {
        kind: "set",
        path: ["channels", name, "headers", field],
        value,
      },
    ];
  });
}

async function checkChanged(
  name: string,
  path: string,
  edits: readonly Edit[],
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const text = applyEdits(readConfigText(path), edits);
  const env = await addKeychain(text, { ...process.env, ...variables });
  const { catalog } = checkConfigText(text, path, env, { missing: "keep" });
  const result = await checkCredential(requireChannel(catalog, name));
  const finding = `The upstream of "${name}" ${describeCheck(result)}`;
  if (result.kind === "refused") fail(`${finding}. Nothing was changed; --no-check changes it anyway.`);
  printNote(finding);
}

function requireChannel(catalog: Catalog, name: string): Channel {
  return catalog.channels.get(name) ?? refuseUnknown("channel", name, catalog.channels);
}

export async function removeChannel(name: string, flags: RemoveFlags): Promise<void> {
  const groups = listGroupsOf(openConfig(flags).catalog, name).map((group) => group.name);
  const what = `the channel "${name}"${groups.length === 0 ? "" : ` from ${nameGroups(groups, ", ")}`}`;
  const plan = (catalog: Catalog): Edit[] => {
    const uses = listGroupsOf(catalog, name).map(({ name: group, listed }): Edit => {
      return { kind: "remove", path: ["groups", group, "channels", listed.indexOf(name)] };
    });
    return [...uses, { kind: "remove", path: ["channels", name] }];
  };
  await removeEntry(what, flags, plan, " The ledger keeps its lines.");
}

function listGroupsOf(catalog: Catalog, name: string): Group[] {
  const { groups } = requireChannel(catalog, name);
  const using = groups.flatMap((group) => catalog.groups.get(group) ?? []);
  const emptied = using.find((group) => group.listed.length === 1)?.name;
  if (emptied === undefined) return using;
  const remove = `Use \`gateway groups remove ${emptied}\` first, or add a channel to it`;
  return fail(`"${name}" was not removed: the group "${emptied}" has no other channel. ${remove}.`);
}
