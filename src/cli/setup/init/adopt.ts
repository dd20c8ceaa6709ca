// `gateway init --adopt FILE`: copies a config file to the default location. Version 0.1.0 wrote and read
// ./gateway.yaml. Because the file may be a stranger's, this first shows where it sends credentials.

import { existsSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { listLedgerFiles } from "../../../billing/ledger/rotation.ts";
import type { Catalog } from "../../../config/catalog.ts";
import { applyEdits, type Edit } from "../../../config/yaml/edit.ts";
import { expandTree, listKeychainChannels, listVariables } from "../../../config/yaml/expand.ts";
import { checkConfigText, readConfigText } from "../../../config/file/load.ts";
import { placeConfig } from "../../../config/file/find.ts";
import { type Path, parseSource } from "../../../config/yaml/source.ts";
import { getField } from "../../../lib/json/json.ts";
import { refuseOverwrite, writeNew } from "./init.ts";
import { listPowers, type Power } from "./powers.ts";
import type { ConfigFlags } from "../../access/config.ts";
import { escapeUnprintable } from "../../../lib/text/printable.ts";
import { type Column, createTable } from "../../terminal/table.ts";
import { askYes, canPrompt, fail, printJson, refuseUsage, printNote } from "../../terminal/terminal.ts";

export interface AdoptFlags extends ConfigFlags {
  /** The file to adopt. */
  readonly adopt: string;
  readonly yes?: true;
  /** Names of powers. */
  readonly accept?: readonly string[];
  readonly json?: true;
}

export async function adopt(flags: AdoptFlags): Promise<void> {
  const from = resolve(flags.adopt);
  const to = placeConfig(flags.config, process.env);
  if (from === to) fail(`${from} is already your config.`);
  if (existsSync(to)) refuseOverwrite(to);
  const text = readConfigText(from);
  const { tree } = parseSource(text);
  const { catalog } = checkConfigText(text, from, process.env, { missing: "keep" });
  const reach = listDestinations(tree);
  for (const line of describeDestinations(from, reach)) printNote(line);
  const powers = listPowers(tree, catalog, findLedger(tree, catalog));
  for (const { text: power } of powers) printNote(`It ${power}.`);
  await confirm(powers, flags);
  const refused = await refusePowers(powers, flags);
  // Adopt only what the user has seen.
  if (readConfigText(from) !== text) fail(`${from} has just changed. Try again.`);
  const absolute = applyEdits(text, makePathsAbsolute(tree, from, catalog));
  const adopted = applyEdits(
    absolute,
    refused.flatMap(({ edits }) => edits),
  );
  const { catalog: after } = checkConfigText(adopted, to, process.env, { missing: "keep" });
  const { path: ledger } = after.ledger;
  const left_out = refused.map(({ name }) => name);
  if (hasLedger(catalog.ledger.path) && ledger !== catalog.ledger.path && !left_out.includes("ledger"))
    throw new Error(`The ledger of ${to} would be ${ledger}, not ${catalog.ledger.path}.`);
  writeNew(to, adopted);
  if (flags.json === true) printJson({ config: to, adopted: from, ledger, channels: reach, left_out });
  for (const line of describeDone(from, to, ledger)) printNote(line);
}

/** Where a channel sends what, in the file's own words: references are not expanded, so that no secret is shown. */
interface Destination {
  readonly name: string;
  readonly base_url: string;
  readonly proxy: string | null;
  readonly variables: readonly string[];
  /** In the system's keychain; null: its credential is not there. */
  readonly keychain: string | null;
}

function listDestinations(tree: unknown): Destination[] {
  const inKeychain = new Map(listKeychainChannels(tree));
  return Object.entries(getField(tree, "channels") ?? {}).map(([name, channel]) => {
    const [baseUrl, proxy] = ["base_url", "proxy"].map((setting) => getField(channel, setting));
    return {
      name,
      base_url: typeof baseUrl === "string" ? hidePassword(baseUrl) : "",
      proxy: typeof proxy === "string" ? hidePassword(proxy) : null,
      variables: listVariables(channel),
      keychain: inKeychain.get(name) ?? null,
    };
  });
}

/** The password in `http://user:password@host`. */
function hidePassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^/@:]*):[^/@]*@/i, "$1:…@");
}

function describeDestinations(from: string, reach: readonly Destination[]): string[] {
  const columns: ReadonlyArray<Column<Destination>> = [
    { title: "CHANNEL", read: ({ name }) => name },
    {
      title: "SENDS TO",
      read: ({ base_url, proxy }) => (proxy === null ? base_url : `${base_url} through ${proxy}`),
    },
    {
      title: "FROM YOUR ENVIRONMENT",
      read: ({ variables, keychain }) => {
        const secrets = keychain === null ? [] : [`${keychain} of your keychain`];
        return [...variables.map((variable) => `\${${variable}}`), ...secrets].join(", ") || "nothing";
      },
    },
  ];
  // No cut at the terminal's width: the end of an address matters.
  const table = createTable(columns).draw(reach, Number.POSITIVE_INFINITY);
  return [`${escapeUnprintable(from)}:`, ...table.map((line) => `  ${line}`)];
}

/** What is not accepted is left out. `--yes` accepts where credentials go, and nothing else. */
async function refusePowers(powers: readonly Power[], { yes, accept = [] }: AdoptFlags): Promise<Power[]> {
  const refused: Power[] = [];
  for (const power of powers) {
    const { name, text } = power;
    // Without keys, there are none that lack a limit.
    if (name === "unlimited" && refused.some((other) => other.name === "keys")) continue;
    if (accept.includes(name) || (yes !== true && (await askYes(`It ${text}. Keep that?`)))) continue;
    refused.push(power);
    printNote(`Left out: ${name}. To keep it, remove the new config and repeat with --accept ${name}.`);
  }
  return refused;
}

async function confirm(powers: readonly Power[], { yes, accept = [] }: AdoptFlags): Promise<void> {
  const names = powers.map(({ name }) => name);
  const unknown = accept.find((name) => !names.includes(name));
  if (unknown !== undefined)
    refuseUsage(
      `--accept ${unknown}: the file has nothing of that name. It has: ${names.join(", ") || "nothing"}.`,
    );
  if (yes === true) return;
  if (!canPrompt()) {
    const more = names.length === 0 ? "" : ` What it may keep is named by --accept: ${names.join(" ")}.`;
    refuseUsage(`--yes is missing: check where the file sends credentials, then repeat with --yes.${more}`);
  }
  if (!(await askYes("Make this file your config?"))) fail("Nothing was changed.");
}

/** Where the ledger stays; null: a new one starts beside the config. */
function findLedger(tree: unknown, { ledger: { path } }: Catalog): string | null {
  return hasLedger(path) || dirname(writtenLedger(tree)) !== "." ? path : null;
}

function writtenLedger(tree: unknown): string {
  const written = getField(getField(tree, "ledger"), "path");
  return typeof written === "string" ? written : "ledger.jsonl";
}

/** Relative paths start from the file's folder, which changes. As absolute paths they keep their meaning. */
function makePathsAbsolute(tree: unknown, from: string, catalog: Catalog): Edit[] {
  const edits = Object.entries(getField(tree, "channels") ?? {}).flatMap(([name, channel]) =>
    makePathAbsolute(["channels", name, "ca"], getField(channel, "ca"), from),
  );
  if (findLedger(tree, catalog) === null) return edits;
  return [...edits, ...makePathAbsolute(["ledger", "path"], writtenLedger(tree), from)];
}

function makePathAbsolute(path: Path, written: unknown, from: string): Edit[] {
  if (typeof written !== "string" || isAbsolute(String(expandTree(written, process.env).tree))) return [];
  if (written.includes("${")) {
    const setting = path.join(".");
    return fail(
      `${setting} in ${from} is a relative path with a variable. Change it to an absolute path first.`,
    );
  }
  return [{ kind: "set", path, value: resolve(dirname(from), written.trim()).replaceAll("${", "$${") }];
}

/** Whether it has lines, or a gateway that is about to write some. */
function hasLedger(ledgerPath: string): boolean {
  return listLedgerFiles(ledgerPath).length > 0 || existsSync(`${ledgerPath}.lock`);
}

function describeDone(from: string, to: string, ledger: string): string[] {
  const what = hasLedger(ledger) ? "The ledger stays where it is" : "The ledger will be";
  const how =
    to === placeConfig(undefined, process.env)
      ? "every command finds it, in any folder"
      : "give it with --config";
  return [
    `Wrote ${to}: ${how}.`,
    `${what}: ${ledger}`,
    `${from} is unchanged and no longer read. Remove it once nothing uses it with --config. ` +
      "If a service was installed with it, run `gateway service install --enable` again.",
  ];
}
