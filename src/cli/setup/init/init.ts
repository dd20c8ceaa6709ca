// The action of `gateway init`: finds or asks for credentials, checks them, writes the config and creates a key for
// each group. The file's text comes from init-text.ts, the providers from presets.ts.

import { existsSync, mkdirSync } from "node:fs";
import { connect } from "node:net";
import { dirname } from "node:path";
import { checkConfigText } from "../../../config/file/load.ts";
import { hasLocalConfig, placeConfig } from "../../../config/file/find.ts";
import { CLIENT_LOGIN } from "../../../config/schema.ts";
import { readBaseUrl, readSecretText } from "../../../config/yaml/scalars.ts";
import { getErrorCode, getErrorMessage } from "../../../lib/errors.ts";
import { createFile } from "../../../lib/files/own-file.ts";
import { newSecret, sha256Hex } from "../../../lib/secret.ts";
import { quoteWord } from "../../../lib/text/shell-word.ts";
import { formatMoment } from "../../../config/changes/names.ts";
import { type ConfigFlags } from "../../access/config.ts";
import { printSecrets } from "../../keys/secrets.ts";
import { storeToolSecret } from "../../../config/changes/tool-secrets.ts";
import { nameOwnCommand } from "../../terminal/own-command.ts";
import {
  askOne,
  askSecret,
  askSome,
  askText,
  canPrompt,
  fail,
  printNote,
  refuseUsage,
} from "../../terminal/terminal.ts";
import { checkCredential, type CheckResult, describeCheck } from "../credential-check.ts";
import { addVariables, requireWritable } from "../env-file.ts";
import { type Start, type StartGroup, writeConfig } from "./init-text.ts";
import {
  groupForClaude,
  listGroups,
  mayConvertForClaude,
  needsAddress,
  type Preset,
  type PresetGroup,
  PRESETS,
} from "../presets.ts";

export interface InitFlags extends ConfigFlags {
  readonly yes?: true;
  /** The tool whose own login is passed on. */
  readonly login?: string;
  readonly json?: true;
}

/** A provider that the config will have. */
export interface Provider {
  readonly preset: Preset;
  readonly baseUrl: string;
  /** As the config will hold it. */
  readonly credential: string;
  /** A pasted credential, for the file next to the config. */
  readonly variables: Readonly<Record<string, string>>;
  /** It has a group for Claude Code, too, whose requests are converted. */
  readonly claude?: true;
}

export async function init(flags: InitFlags): Promise<void> {
  const path = placeConfig(flags.config, process.env);
  if (existsSync(path)) refuseOverwrite(path);
  const providers = flags.login === undefined ? await chooseProviders(path, flags) : [useLogin(flags.login)];
  if (providers.length === 0) refuseEmpty();
  const created = formatMoment(new Date());
  const keys: NewKey[] = [];
  const starts = providers.map((provider) =>
    describeStart(provider, (group) => {
      const secret = newSecret();
      keys.push({ group, secret });
      return { sha256: sha256Hex(secret), created };
    }),
  );
  const offers = PRESETS.filter((preset) => !providers.some((provider) => provider.preset === preset));
  const text = writeConfig(
    starts,
    offers.map((preset) => describeStart(referTo(preset), () => ({ sha256: "", created: "" }))),
  );
  checkConfigText(text, path, process.env, { missing: "keep" });
  const variables: Record<string, string> = Object.assign({}, ...providers.map((each) => each.variables));
  requireWritable(path, variables);
  writeNew(path, text);
  await addVariables(path, variables);
  // `gateway run` finds them there. The first one of a tool is preferred, so it is stored last.
  for (const { group, secret } of keys.toReversed())
    storeToolSecret({ tool: group.tool, key: group.name, secret }, path);
  const names = keys.map(({ group }) => group.name);
  await printSecrets({
    lines:
      flags.json === true
        ? [describeForScripts(path, keys)]
        : keys.map((key) => describeSecret(key, Math.max(...keys.map(({ group }) => group.name.length)))),
    names,
    done: `${path} was written with ${names.length === 1 ? "the key" : "the keys"} ${names.join(", ")}`,
  });
  for (const line of describeNext(path, providers)) printNote(line);
}

async function chooseProviders(path: string, { yes }: InitFlags): Promise<Provider[]> {
  const local = await findLocalServers();
  if (yes === true || !canPrompt()) return findProviders(path, local);
  return askForClaude(await askProviders(path, local));
}

function useLogin(tool: string): Provider {
  const logins = PRESETS.filter(({ login }) => login === true);
  const found = logins.find((preset) => preset.tool === tool);
  const known = logins.map((preset) => preset.tool).join(", ");
  return found === undefined
    ? refuseUsage(`--login: expected a tool whose login can be passed on: ${known}.`)
    : referTo(found);
}

interface NewKey {
  readonly group: PresetGroup;
  readonly secret: string;
}

function describeForScripts(path: string, keys: readonly NewKey[]): string {
  const list = keys.map(({ group: { name, platform }, secret }) => ({ name, group: name, platform, secret }));
  return JSON.stringify({ config: path, keys: list });
}

function describeSecret({ group, secret }: NewKey, width: number): string {
  return `${group.name.padEnd(width)} ${secret}`;
}

/** Without a terminal: what the environment and this machine have. */
async function findProviders(path: string, local: readonly Preset[]): Promise<Provider[]> {
  const found = PRESETS.filter(
    (preset) => !needsAddress(preset) && (isSet(preset.variable) || local.includes(preset)),
  );
  const providers: Provider[] = [];
  for (const preset of found) {
    const provider = referTo(preset);
    const result = await checkProvider(provider, path);
    // Any program may listen on such a port.
    if (local.includes(preset) && !isSet(preset.variable) && result.kind !== "accepted") continue;
    printNote(`${preset.title}: ${describeCheck(result)}`);
    if (result.kind !== "refused") providers.push(provider);
  }
  return providers;
}

/** Whose models Claude Code could use besides, with requests converted. */
function listForClaude(providers: readonly Provider[]): Provider[] {
  return providers.filter(({ preset }) => preset.local === undefined && mayConvertForClaude(preset));
}

async function askForClaude(providers: readonly Provider[]): Promise<Provider[]> {
  const fitting = listForClaude(providers);
  if (fitting.length === 0) return [...providers];
  const wanted = await askSome(
    "Claude Code can use other models, too: its requests are then converted. On which? (enter: none)",
    fitting.map(({ preset }) => ({ value: preset.id, label: `Claude Code on ${nameSeller(preset)}` })),
    [],
    false,
  );
  return providers.map((each) => (wanted.includes(each.preset.id) ? { ...each, claude: true } : each));
}

/** The title without the tools that it is usually for. */
function nameSeller({ title }: Preset): string {
  return title.replace(/ \(.*/, "");
}

function refuseEmpty(): never {
  const named = PRESETS.filter(({ variable }) => variable !== "")
    .filter((preset) => preset.local === undefined && !needsAddress(preset))
    .map(({ variable }) => variable);
  const variables = [...new Set(named)].join(", ");
  return fail(
    "No usable credential was found, so nothing was written. Set one of " +
      `${variables} and repeat, or run \`gateway init\` on a terminal, which asks. ` +
      "With a plan instead: `gateway init --login claude`. " +
      "`gateway serve --demo` needs none.",
  );
}

async function askProviders(path: string, local: readonly Preset[]): Promise<Provider[]> {
  const isFound = (preset: Preset): boolean => isSet(preset.variable) || local.includes(preset);
  const choices = PRESETS.map((preset) => ({
    value: preset.id,
    label: `${preset.title}${isSet(preset.variable) ? ` · ${preset.variable} is set` : local.includes(preset) ? " · running" : ""}`,
  }));
  const initial = PRESETS.filter(isFound).map(({ id }) => id);
  const wanted = await askSome(
    "Which platforms do you use? (space marks, enter continues)",
    choices,
    initial,
  );
  const providers: Provider[] = [];
  for (const preset of PRESETS.filter(({ id }) => wanted.includes(id))) {
    const provider = await askProvider(preset, path);
    if (provider !== null) providers.push(provider);
  }
  return providers;
}

/** Null when the user leaves the provider out after a failed check. */
export async function askProvider(preset: Preset, path: string): Promise<Provider | null> {
  const baseUrl = needsAddress(preset)
    ? await askText({ message: "The relay's base URL", check: complain(readBaseUrl) })
    : preset.baseUrl;
  for (;;) {
    const provider = { ...(await askCredential(preset)), baseUrl };
    if (provider.credential.startsWith("${") && !isKnown(provider)) return provider;
    const result = await checkProvider(provider, path);
    printNote(`${preset.title}: ${describeCheck(result)}`);
    // Offline, the credential may be right: `gateway doctor` checks it later.
    if (result.kind !== "refused") return provider;
    const next = await askOne(`${preset.title} ${describeCheck(result)}. What next?`, [
      { value: "again", label: "try again" },
      { value: "keep", label: "use it anyway" },
      { value: "skip", label: "leave this provider out" },
    ]);
    if (next === "keep") return provider;
    if (next === "skip") return null;
  }
}

function isKnown({ preset, variables }: Provider): boolean {
  return isSet(preset.variable) || preset.variable in variables;
}

async function askCredential(preset: Preset): Promise<Provider> {
  const { local, login } = preset;
  if (local !== undefined || login === true || isSet(preset.variable)) return referTo(preset);
  const way = await askOne(`${preset.title}: where is the credential?`, [
    {
      value: "paste",
      label: "I paste it now (kept in gateway.env beside the config, which only you can read)",
    },
    {
      value: "variable",
      label: `in the environment: I will set ${preset.variable} before I start the gateway`,
    },
  ]);
  if (way === "variable") return referTo(preset);
  const secret = await askSecret({ message: "The credential", check: complain(readSecretText) });
  return { ...referTo(preset), variables: { [preset.variable]: secret } };
}

export function complain(read: (text: string) => unknown): (text: string) => string | undefined {
  return (text) => {
    try {
      read(text);
      return undefined;
    } catch (error) {
      return getErrorMessage(error);
    }
  };
}

/** A local server's placeholder is not a secret. */
export function referTo(preset: Preset): Provider {
  if (preset.login === true)
    return { preset, baseUrl: preset.baseUrl, credential: CLIENT_LOGIN, variables: {} };
  const isLocal = preset.local !== undefined && !isSet(preset.variable);
  const credential = isLocal ? (preset.local?.credential ?? "") : `\${${preset.variable}}`;
  return { preset, baseUrl: locate(preset) ?? preset.baseUrl, credential, variables: {} };
}

/** Through a config of this provider alone, so that the check sends what the gateway would send. */
export async function checkProvider(provider: Provider, path: string): Promise<CheckResult> {
  const created = formatMoment(new Date());
  const start = describeStart(provider, ({ name }) => ({ sha256: sha256Hex(name), created }));
  const env = { ...process.env, ...provider.variables };
  const { catalog } = checkConfigText(writeConfig([start], []), path, env, { missing: "keep" });
  const [channel] = catalog.channels.values();
  if (channel === undefined) throw new Error("The config of a provider has no channel.");
  return checkCredential(channel);
}

function isSet(variable: string): boolean {
  return (process.env[variable] ?? "") !== "";
}

function describeStart(
  { preset, baseUrl, credential, claude }: Provider,
  makeKey: (group: PresetGroup) => StartGroup["key"],
): Start {
  const groups = listGroups(preset, claude === true).map((group) => ({ ...group, key: makeKey(group) }));
  return { ...preset, baseUrl, credential, groups };
}

/** Creates the folder, if necessary, for the user alone. */
export function writeNew(path: string, text: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    createFile(path, text, { secret: true });
  } catch (error) {
    if (getErrorCode(error) === "EEXIST") refuseOverwrite(path);
    fail(`${path} cannot be written: ${getErrorMessage(error)}.`);
  }
}

export function refuseOverwrite(path: string): never {
  return fail(
    `${path} already exists and was not changed. \`gateway channels add\` adds another provider to it; --config names another file.`,
  );
}

function describeNext(path: string, providers: readonly Provider[]): string[] {
  const unset = providers.filter((each) => each.credential.startsWith("${") && !isKnown(each));
  const config = path === placeConfig(undefined, process.env) ? "" : `--config ${quoteWord(path)} `;
  const tool = providers[0]?.preset.tool ?? "claude";
  const command = nameOwnCommand();
  return [
    `Wrote ${path}. The ledger will be beside it. The keys above are shown only this once.`,
    ...unset.map(({ preset }) => `Set ${preset.variable} before you start the gateway.`),
    ...offerClaude(providers),
    ...warnOfLocal(path),
    // A command that is not on the PATH works only in this folder.
    command === "gateway" ? "Next, in any project:" : "Next:",
    `  ${command} run ${config}${tool}`,
  ];
}

/** A key of another provider is enough for Claude Code. */
function offerClaude(providers: readonly Provider[]): string[] {
  const [first, ...others] = listForClaude(providers);
  const isServed = providers.some(
    (each) => each.claude || !mayConvertForClaude(each.preset) || each.preset.local,
  );
  if (first === undefined || isServed) return [];
  const titles = [first, ...others].map(({ preset }) => nameSeller(preset));
  const { name } = groupForClaude(first.preset);
  return [
    `Claude Code on ${titles.join(" or ")}, with its requests converted: ${nameOwnCommand()} groups add ${name} --channel ${first.preset.channel} --convert messages`,
  ];
}

/** For users who expect it to be read, as by gateway 0.1.0. */
function warnOfLocal(path: string): string[] {
  if (!hasLocalConfig(path)) return [];
  return [
    "The gateway.yaml in this folder is another file, which is read only with `--config gateway.yaml`.",
  ];
}

const PROBE_WAIT_MS = 300;

/** The model servers of this machine: those whose port accepts a connection. */
async function findLocalServers(): Promise<Preset[]> {
  const local = PRESETS.filter((preset) => preset.local !== undefined);
  const answers = await Promise.all(local.map(runsHere));
  return local.filter((_, index) => answers[index] === true);
}

/** Tests say which servers run, and where (`ollama=http://127.0.0.1:40001/v1`), so that none of their machine answers. */
const TEST_SERVERS = "GATEWAY_TEST_LOCAL_SERVERS";

function locate({ id, baseUrl, local }: Preset): string | undefined {
  const named = local === undefined ? undefined : process.env[TEST_SERVERS];
  if (named === undefined) return baseUrl;
  return named
    .split(" ")
    .find((each) => each.startsWith(`${id}=`))
    ?.slice(id.length + 1);
}

async function runsHere(preset: Preset): Promise<boolean> {
  const address = locate(preset);
  return address !== undefined && (await acceptsConnections(new URL(address)));
}

function acceptsConnections({ hostname, port }: URL): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostname, port: Number(port), timeout: PROBE_WAIT_MS });
  const finish = (answer: boolean): void => {
    socket.destroy();
    resolve(answer);
  };
  socket.once("connect", () => finish(true));
  socket.once("timeout", () => finish(false));
  socket.once("error", () => finish(false));
  return promise;
}
