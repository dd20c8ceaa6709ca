// `gateway init`: writes a config with a key for each provider.

import { existsSync, mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { formatMoment } from "../../config/changes/names.ts";
import { storeToolSecret } from "../../config/changes/tool-secrets.ts";
import { placeConfig } from "../../config/file/find.ts";
import { checkConfigText } from "../../config/file/load.ts";
import { renderValue } from "../../config/yaml/splice.ts";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { newSecret, sha256Hex } from "../../lib/secret.ts";
import type { ConfigFlags } from "../access/config.ts";
import { printSecrets } from "../keys/secrets.ts";
import { nameOwnCommand, proposeCommand } from "../terminal/own-command.ts";
import { askSome, canPrompt, fail, printNote, refuseUsage } from "../terminal/terminal.ts";
import { describeCheck } from "../access/credential-check.ts";
import { changeVariables, ignoreInGit, requireWritable } from "../channels/env-file.ts";
import {
  ACCOUNTS,
  askProvider,
  checkProvider,
  describeChannel,
  describeGroup,
  describeProvider,
  isSet,
  listGroups,
  locate,
  needsAddress,
  type Preset,
  PRESETS,
  type Provider,
} from "../channels/provider.ts";

export interface InitFlags extends ConfigFlags {
  readonly yes?: true;
  readonly login?: string;
  readonly json?: true;
}

export async function init(flags: InitFlags): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const providers = await chooseProviders(path, flags);
  if (providers.length === 0) refuseEmpty();
  const keys = providers.map(({ preset }) => ({
    name: preset.group,
    preset,
    secret: newSecret(),
  }));
  const text = writeConfig(providers, keys);
  const { catalog } = checkConfigText(text, path, process.env, { missing: "keep" });
  const variables: Record<string, string> = Object.assign({}, ...providers.map((each) => each.variables));
  requireWritable(path, variables);
  writeNew(path, text);
  await changeVariables(path, variables);
  // `gateway run` prefers the secret stored last.
  for (const { name, preset, secret } of keys.toReversed())
    storeToolSecret({ tool: preset.tool, key: name, secret }, path);
  const width = Math.max(...keys.map(({ name }) => name.length));
  const list = keys.map(({ name, secret }) => ({
    name,
    group: name,
    platform: catalog.groups.get(name)?.platform,
    secret,
  }));
  const lines = keys.map(({ name, secret }) => `${name.padEnd(width)} ${secret}`);
  const names = keys.map(({ name }) => name).join(", ");
  await printSecrets(
    flags.json === true ? [JSON.stringify({ config: path, keys: list })] : lines,
    `${path} was written with the ${keys.length === 1 ? "key" : "keys"} ${names}`,
  );
  for (const line of describeNext(path, providers)) printNote(line);
}

async function chooseProviders(path: string, { yes, login }: InitFlags): Promise<Provider[]> {
  if (login !== undefined) return [useLogin(login, path)];
  const isAsking = yes !== true && canPrompt();
  const found = new Map<Preset, Provider>();
  const look = async (preset: Preset): Promise<void> => {
    const isNamed = isSet(preset.variable);
    const isServer = preset.kind === "local" && locate(preset) !== undefined;
    if (isNamed ? isAsking || needsAddress(preset) : !isServer) return;
    const provider = describeProvider(preset, path);
    const result = await checkProvider(provider, path);
    // Another program may use this port, so the answer has to be a model server's.
    if (!isNamed && result.kind !== "accepted") return;
    if (!isAsking) printNote(`${preset.title}: ${describeCheck(result)}`);
    if (result.kind !== "refused") found.set(preset, provider);
  };
  await Promise.all(ACCOUNTS.map(look));
  if (!isAsking) return ACCOUNTS.flatMap((preset) => found.get(preset) ?? []);
  const wanted = await askSome(
    "Which platforms do you use? (space marks, enter continues)",
    ACCOUNTS.map((preset) => {
      const state = isSet(preset.variable) ? ` · ${preset.variable} is set` : "";
      return { value: preset.id, label: preset.title + (found.has(preset) ? " · running" : state) };
    }),
    ACCOUNTS.filter((preset) => isSet(preset.variable) || found.has(preset)).map(({ id }) => id),
  );
  const providers: Provider[] = [];
  for (const preset of ACCOUNTS)
    if (wanted.includes(preset.id)) providers.push(await askProvider(preset, path));
  return providers;
}

function useLogin(tool: string, path: string): Provider {
  const logins = PRESETS.filter(({ kind }) => kind === "login");
  const found = logins.find((preset) => preset.tool === tool);
  const known = logins.map((preset) => preset.tool).join(", ");
  return found === undefined
    ? refuseUsage(`--login: expected a tool whose login can be passed on: ${known}.`)
    : describeProvider(found, path);
}

function refuseEmpty(): never {
  const named = ACCOUNTS.filter((preset) => preset.kind !== "local" && !needsAddress(preset));
  const variables = named.flatMap(({ variable }) => (variable === "" ? [] : [variable])).join(", ");
  return fail(
    "No usable credential was found, so nothing was written. Set one of " +
      `${variables}, or run \`gateway init\` on a terminal. ` +
      "With a plan: `gateway init --login claude`. `gateway serve --demo` needs no credential.",
  );
}

function writeConfig(
  providers: readonly Provider[],
  keys: ReadonlyArray<{ readonly name: string; readonly secret: string }>,
): string {
  const created = formatMoment(new Date());
  const lines = [
    "# A running gateway applies changes. `gateway channels add` adds a provider.",
    "# All settings: `gateway schema config`. Every charge: ledger.jsonl next to this file.",
    "channels: # ${NAME} is an environment variable, or a line of gateway.env",
    ...providers.map((each) => `  ${each.preset.channel}: ${renderValue(describeChannel(each))}`),
    "",
    "groups: # a charge is the official price × the multiplier",
    ...providers.flatMap(({ preset }) =>
      listGroups(preset).map((group) => `  ${group.name}: ${renderValue(describeGroup(preset, group))}`),
    ),
    "",
    "keys: # only hashes: `gateway keys add` shows a secret once",
    ...keys.map(({ name, secret }) => {
      const value = {
        name,
        group: name,
        secret_sha256: sha256Hex(secret),
        created,
      };
      return `  - ${renderValue(value)}`;
    }),
  ];
  return `${lines.join("\n")}\n`;
}

export function writeNew(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    createFile(path, text, { secret: true });
    ignoreInGit(path);
  } catch (error) {
    if (codeOf(error) === "EEXIST") refuseOverwrite(path);
    fail(`${path} cannot be written: ${messageOf(error)}.`);
  }
}

export function refuseOverwrite(path: string): never {
  return fail(`${path} already exists. \`gateway channels add\` adds to it; --config names another file.`);
}

function describeNext(path: string, providers: readonly Provider[]): string[] {
  const tool = providers[0]?.preset.tool ?? "claude";
  return [
    `Wrote ${path}. The ledger will be next to it.`,
    "`gateway run` knows the keys. For anything else, keep them: they are shown only this once.",
    ...providers
      .filter(({ preset, credential }) => credential === `\${${preset.variable}}` && !isSet(preset.variable))
      .map(({ preset }) => `Set ${preset.variable} before you start the gateway.`),
    // A command with a relative path works only in this folder.
    nameOwnCommand() === "gateway" ? "Next, in any project:" : "Next:",
    `  ${proposeCommand(`run ${tool}`)}`,
  ];
}
