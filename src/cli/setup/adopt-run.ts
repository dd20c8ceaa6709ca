// `gateway init --adopt FILE`: a config file from elsewhere becomes the one that is found by itself. Version 0.1.0
// wrote and read ./gateway.yaml. The file may also be a stranger's, so it is shown where it sends credentials.

import { existsSync } from "node:fs";
import { dirname, isAbsolute, resolve } from "node:path";
import { listLedgerFiles } from "../../billing/ledger/rotation.ts";
import type { Catalog } from "../../config/catalog.ts";
import { applyEdits, type Edit } from "../../config/edit.ts";
import { expandTree, listVariables } from "../../config/expand.ts";
import { checkConfigText, readConfigText } from "../../config/file.ts";
import { placeConfig } from "../../config/find.ts";
import { type Path, parseSource } from "../../config/source.ts";
import { isLoopbackHost } from "../../gateway/intake/own-host.ts";
import { isObject } from "../../lib/json/json.ts";
import { refuseOverwrite, writeNew } from "./init-run.ts";
import type { ConfigFlags } from "../config-access.ts";
import { askYes, canAsk, fail, formatTable, printJson, refuseUsage, tell } from "../terminal.ts";
import { formatCount, stripControls } from "../text.ts";

export interface AdoptFlags extends ConfigFlags {
  /** The file. */
  readonly adopt: string;
  readonly yes?: true;
  readonly json?: true;
}

export async function adopt(flags: AdoptFlags): Promise<void> {
  const from = resolve(flags.adopt);
  const to = placeConfig(flags.config, process.env);
  if (from === to) fail(`${from} is your config already.`);
  if (existsSync(to)) refuseOverwrite(to);
  const text = readConfigText(from);
  const { tree } = parseSource(text);
  const { catalog } = checkConfigText(text, from, process.env, { missing: "keep" });
  const reach = listReach(tree);
  for (const line of describeReach(from, reach, catalog)) tell(line);
  await confirm(flags);
  // What was shown is what is adopted.
  if (readConfigText(from) !== text) fail(`${from} has changed in the meantime: try again.`);
  const adopted = applyEdits(text, pinPaths(tree, from, catalog));
  const { catalog: after } = checkConfigText(adopted, to, process.env, { missing: "keep" });
  const { path: ledger } = after.ledger;
  if (isBegun(catalog.ledger.path) && ledger !== catalog.ledger.path)
    throw new Error(`The ledger of ${to} would be ${ledger}, not ${catalog.ledger.path}.`);
  writeNew(to, adopted);
  if (flags.json === true) printJson({ config: to, adopted: from, ledger, channels: reach });
  for (const line of describeDone(from, to, ledger)) tell(line);
}

/** What a channel sends, and where: as the file has it, so that no secret is shown. */
interface Reach {
  readonly name: string;
  readonly base_url: string;
  readonly proxy: string | null;
  readonly variables: readonly string[];
}

function listReach(tree: unknown): Reach[] {
  const channels = valueAt(tree, ["channels"]);
  return Object.entries(isObject(channels) ? channels : {}).map(([name, channel]) => {
    const [baseUrl, proxy] = ["base_url", "proxy"].map((setting) => valueAt(channel, [setting]));
    return {
      name,
      base_url: typeof baseUrl === "string" ? hidePassword(baseUrl) : "",
      proxy: typeof proxy === "string" ? hidePassword(proxy) : null,
      variables: listVariables(channel),
    };
  });
}

/** Of `http://user:password@host`. */
function hidePassword(url: string): string {
  return url.replace(/^([a-z]+:\/\/[^/@:]*):[^/@]*@/i, "$1:…@");
}

function describeReach(from: string, reach: readonly Reach[], { listen, keys }: Catalog): string[] {
  const columns = ["CHANNEL", "SENDS TO", "FROM YOUR ENVIRONMENT"].map((title) => ({ title }));
  const rows = reach.map(({ name, base_url, proxy, variables }) => [
    name,
    proxy === null ? base_url : `${base_url} through ${proxy}`,
    variables.length === 0 ? "nothing" : variables.map((variable) => `\${${variable}}`).join(", "),
  ]);
  // Not cut to the terminal's width: the end of an address matters.
  const table = formatTable(columns, rows, Number.POSITIVE_INFINITY);
  const open = isLoopbackHost(listen.host)
    ? []
    : [`It listens on ${listen.host}: other machines can use its ${formatCount(keys.size, "key")}.`];
  return [`${stripControls(from)}:`, ...table.map((line) => `  ${line}`), ...open];
}

async function confirm({ yes }: AdoptFlags): Promise<void> {
  if (yes === true) return;
  if (!canAsk())
    refuseUsage("--yes is missing: look at where the file sends what, then repeat the command with --yes.");
  if (!(await askYes("Make this file your config?"))) fail("Nothing was changed.");
}

/** Relative paths start from the file's folder, which becomes another: written as absolute ones they stay the same. */
function pinPaths(tree: unknown, from: string, { ledger }: Catalog): Edit[] {
  const channels = valueAt(tree, ["channels"]);
  const authorities = Object.keys(isObject(channels) ? channels : {}).map((name) => ["channels", name, "ca"]);
  const edits = authorities.flatMap((path) => pinPath(path, valueAt(tree, path), from));
  const written = valueAt(tree, ["ledger", "path"]);
  const ledgerPath = typeof written === "string" ? written : "ledger.jsonl";
  // One that has not begun may begin beside the config, where a new user's does.
  if (!isBegun(ledger.path) && dirname(ledgerPath) === ".") return edits;
  return [...edits, ...pinPath(["ledger", "path"], ledgerPath, from)];
}

function pinPath(path: Path, written: unknown, from: string): Edit[] {
  if (typeof written !== "string" || isAbsolute(String(expandTree(written, process.env, "keep").tree)))
    return [];
  if (written.includes("${")) {
    const setting = path.join(".");
    return fail(
      `${setting} in ${from} is relative and contains a variable: write it as an absolute path first.`,
    );
  }
  return [{ kind: "set", path, value: resolve(dirname(from), written.trim()).replaceAll("${", "$${") }];
}

/** Lines may be in it, or a gateway may be about to write some. */
function isBegun(ledgerPath: string): boolean {
  return listLedgerFiles(ledgerPath).length > 0 || existsSync(`${ledgerPath}.lock`);
}

function describeDone(from: string, to: string, ledger: string): string[] {
  const what = isBegun(ledger) ? "The ledger stays where it is" : "The ledger will be";
  const how =
    to === placeConfig(undefined, process.env)
      ? "every command finds it, in every folder"
      : "name it with --config";
  return [
    `Wrote ${to}: ${how}.`,
    `${what}: ${ledger}`,
    `${from} stays as it is and is no longer read. Remove it when nothing names it with --config any more; ` +
      "a service installed with it needs `gateway service install --enable` again.",
  ];
}

function valueAt(tree: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (node, step) => (isObject(node) && Object.hasOwn(node, step) ? node[String(step)] : undefined),
    tree,
  );
}
