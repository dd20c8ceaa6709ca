// The actions of `gateway channels set` and `remove`. The file keeps its comments and order.

import type { Catalog, Channel, Group } from "../../../config/catalog.ts";
import { placeEnvFile } from "../../../config/file/env-file.ts";
import { addKeychain, checkConfigText, readConfigText } from "../../../config/file/load.ts";
import { applyEdits, type Edit } from "../../../config/yaml/edit.ts";
import { listVariables } from "../../../config/yaml/expand.ts";
import { listSettings } from "../../../config/yaml/problems.ts";
import { parseSource } from "../../../config/yaml/source.ts";
import { getField, isObject } from "../../../lib/json/json.ts";
import { refuseUnknown } from "../../../config/changes/names.ts";
import { type ConfigFlags, openConfig, type RemoveFlags } from "../../access/config.ts";
import {
  chooseVariable,
  type CredentialPlace,
  findCredential,
  listExported,
  nameVariable,
} from "../../access/credential-place.ts";
import {
  type Change,
  describeChange,
  planChanges,
  readChanges,
  type Settings,
} from "../../access/settings.ts";
import { confirmRemoval, fail, printNote, refuseUsage } from "../../terminal/terminal.ts";
import { checkCredential, describeCheck } from "../credential-check.ts";
import { addVariables, removeVariable } from "../env-file.ts";
import { readGivenCredential } from "./add.ts";

/** What is no single word. */
const FORMS: Settings = {
  base_url: { form: "text", required: true },
  credential: { form: "text", required: true },
  models: { form: "list" },
  aliases: { form: "map" },
  headers: { form: "map" },
};
const SECTIONS = new Set(["timeouts", "chat"]);

/** Those of the config's schema. Not `platform`: a group has channels of one platform. */
export function listChannelSettings(): Settings {
  const names = listSettings(["channels", "any"])
    .filter((name) => name !== "platform")
    .flatMap((name) =>
      SECTIONS.has(name) ? listSettings(["channels", "any", name]).map((each) => `${name}.${each}`) : [name],
    );
  return Object.fromEntries(names.map((name) => [name, FORMS[name] ?? { form: "text" }]));
}

/** With another one of these, the upstream may refuse what it accepted. */
const CHECKED = new Set(["base_url", "credential", "headers", "proxy", "ca"]);

export interface SetChannelFlags extends ConfigFlags {
  readonly credential?: string;
  /** False with --no-check. */
  readonly check: boolean;
}

export async function setChannel(
  name: string,
  words: readonly string[],
  flags: SetChannelFlags,
): Promise<void> {
  const config = openConfig(flags);
  const { catalog, path } = config;
  requireChannel(catalog, name);
  const changes = readChanges(words, listChannelSettings());
  const found = findCredential(path, name);
  const exported = await listExported(catalog.ledger.path, [found.variable ?? "", nameVariable(name)]);
  const place = { ...found, isExported: found.isExported || exported.includes(found.variable ?? "") };
  const { variables, change } = await readCredential(changes, chooseVariable(name, place, exported), flags);
  if (change !== null) changes.push(change);
  if (changes.length === 0) refuseUsage("Nothing to change. Give settings such as priority=2.");
  const edits = [
    ...planChanges(["channels", name], changes),
    ...renameInHeaders(name, path, place, variables),
  ];
  const isChecked = changes.some(({ path: [setting = ""] }) => CHECKED.has(setting));
  // The variable comes first: a running gateway applies the config as soon as it changes.
  if (isChecked && flags.check) await checkChanged(name, path, { edits, variables });
  await addVariables(path, variables);
  await config.edit((current) => {
    requireChannel(current, name);
    return edits;
  });
  printNote(`Changed the channel "${name}": ${changes.map(describeChange).join(", ")}.`);
  await forgetOldValue(path, place, variables);
}

interface GivenCredential {
  readonly change: Change | null;
  readonly variables: Readonly<Record<string, string>>;
}

async function readCredential(
  changes: readonly Change[],
  variable: string,
  { credential }: SetChannelFlags,
): Promise<GivenCredential> {
  const word = changes.find(({ path }) => path[0] === "credential")?.value;
  if (typeof word === "string" && !/^(?:\$\{[^}]+\}|keychain:.+)$/.test(word))
    refuseUsage(
      "credential: expected a reference such as ${ANTHROPIC_API_KEY} or keychain:anthropic. With `--credential -`, the secret comes from stdin.",
    );
  if (credential === undefined) return { change: null, variables: {} };
  const secret = await readGivenCredential(credential);
  return { change: { path: ["credential"], value: `\${${variable}}` }, variables: { [variable]: secret } };
}

/** Some upstreams read the credential from a header, too. */
function renameInHeaders(
  name: string,
  path: string,
  { variable }: CredentialPlace,
  variables: Readonly<Record<string, string>>,
): Edit[] {
  const [renamed] = Object.keys(variables);
  if (renamed === undefined || variable === null || renamed === variable) return [];
  const channels = getField(parseSource(readConfigText(path)).tree, "channels");
  const headers = getField(getField(channels, name), "headers");
  return Object.entries(isObject(headers) ? headers : {}).flatMap(([field, value]): Edit[] =>
    typeof value === "string" && value.includes(`\${${variable}}`)
      ? [
          {
            kind: "set",
            path: ["channels", name, "headers", field],
            value: value.replaceAll(`\${${variable}}`, `\${${renamed}}`),
          },
        ]
      : [],
  );
}

/** So that no second copy of a credential is left that nothing reads. */
async function forgetOldValue(
  path: string,
  { variable, isExported, isInEnvFile }: CredentialPlace,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const isRead =
    variable !== null && listVariables(parseSource(readConfigText(path)).tree).includes(variable);
  if (variable === null || variable in variables || isRead) return;
  if (isInEnvFile) {
    await removeVariable(path, variable);
    printNote(`Removed ${variable} from ${placeEnvFile(path)}: the config does not use it any more.`);
  }
  if (isExported)
    printNote(
      `The config does not use the environment variable ${variable} any more: it still has the old value.`,
    );
}

interface ChannelChange {
  readonly edits: readonly Edit[];
  readonly variables: Readonly<Record<string, string>>;
}

/** Through the config as it will be, so that the check sends what the gateway would send. */
async function checkChanged(name: string, path: string, { edits, variables }: ChannelChange): Promise<void> {
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
  const config = openConfig(flags);
  const what = `the channel "${name}"${describeGroups(listGroupsOf(config.catalog, name))}`;
  await confirmRemoval(what, flags);
  await config.edit((current) => planRemoval(current, name));
  printNote(`Removed ${what}. The ledger keeps its lines.`);
}

function describeGroups(groups: readonly Group[]): string {
  const names = groups.map((group) => `"${group.name}"`).join(", ");
  return names === "" ? "" : ` from ${groups.length === 1 ? "the group" : "the groups"} ${names}`;
}

/** Throws if a group needs the channel. */
function listGroupsOf(catalog: Catalog, name: string): Group[] {
  const { groups } = requireChannel(catalog, name);
  const using = groups.flatMap((group) => catalog.groups.get(group) ?? []);
  const emptied = using.filter((group) => group.listed.length === 1).map((group) => group.name);
  const [first] = emptied;
  if (first === undefined) return using;
  return fail(
    `The channel "${name}" was not removed: ${emptied.map((each) => `the group "${each}"`).join(" and ")} has no other. ` +
      `Add another with \`gateway channels add … --group ${first}\`, or remove the group with \`gateway groups remove ${first}\`.`,
  );
}

function planRemoval(catalog: Catalog, name: string): Edit[] {
  const uses = listGroupsOf(catalog, name).map(({ name: group, listed }): Edit => ({
    kind: "remove",
    path: ["groups", group, "channels", listed.indexOf(name)],
  }));
  return [...uses, { kind: "remove", path: ["channels", name] }];
}
