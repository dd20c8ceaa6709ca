// Reads the config file as a Catalog.

import {
  closeSync,
  existsSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { followLinks } from "../../lib/files/links.ts";
import { openPlain, readPlain, whileReplaced } from "../../lib/files/own-file.ts";
import { getField, listIn } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { buildCatalog, type Catalog } from "../catalog.ts";
import { placeEnvFile, readEnvFile } from "./env-file.ts";
import { type Environment, expandTree, KEYCHAIN } from "../yaml/expand.ts";
import { requireTrust, warnOfMode } from "./find.ts";
import { ConfigError, explainIssues, formatPath, refuseProblems } from "../yaml/problems.ts";
import { removeRetired } from "./retired.ts";
import { findDangling, type ReferenceProblem } from "../references.ts";
import { type Config, configSchema } from "../schema.ts";
import { type Path, parseSource, type Problem } from "../yaml/source.ts";

export interface LoadedConfig {
  readonly catalog: Catalog;
  readonly path: string;
  readonly sha256: string;
  readonly variables: string;
  readonly warnings: readonly string[];
  readonly source: unknown;
}

const LEDGER_START = '{"v":';

export interface LoadOptions {
  /** What to do with unset variables.
   *  `keep` is for commands that send nothing upstream. */
  readonly missing?: "refuse" | "keep";
}

export function loadConfig(path: string, env: Environment, options: LoadOptions = {}): LoadedConfig {
  const file = resolve(path);
  return check(file, readConfigText(file), env, options);
}

/** Commands that send credentials also need those of the keychain. */
export async function loadWithCredentials(
  path: string,
  env: Environment,
  options: LoadOptions = {},
): Promise<LoadedConfig> {
  const file = resolve(path);
  const text = readConfigText(file);
  return check(file, text, await addKeychain(text, env), options);
}

function check(path: string, text: string, env: Environment, options: LoadOptions): LoadedConfig {
  const variables = hashVariables(path);
  return { ...checkConfigText(text, path, env, options), path, sha256: sha256Hex(text), variables };
}

export async function addKeychain(text: string, env: Environment): Promise<Environment> {
  if (!text.includes(KEYCHAIN)) return env;
  const { readKeychain } = await import("./keychain.ts");
  return { ...env, ...(await readKeychain(text)) };
}

export function hashVariables(path: string): string {
  try {
    return sha256Hex(JSON.stringify(readEnvFile(path)));
  } catch (error) {
    return messageOf(error);
  }
}

export function readConfigText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readTrusted(path);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(describeUnreadable(path, error));
  }
  try {
    // An edit must keep all other bytes:
    // invalid bytes are refused, a byte order mark stays.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ConfigError(`The config file ${path} is not UTF-8 text.`);
  }
}

function readTrusted(path: string): Buffer {
  const handle = whileReplaced(path, () => openSync(path, "r"));
  try {
    const stats = fstatSync(handle);
    // Reading a folder gives a clear error of its own.
    if (stats.isFile() || stats.isFIFO()) requireTrust(path, stats);
    else if (!stats.isDirectory()) throw new ConfigError(`The config file ${path} is not a regular file.`);
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** Relative paths start in the folder of `file`. */
export function checkConfigText(
  text: string,
  file: string,
  env: Environment,
  options: LoadOptions = {},
): Pick<LoadedConfig, "catalog" | "warnings" | "source"> {
  const source = parseSource(text);
  if (!source.readable) throw refuseProblems(file, source.problems);
  const own = quoteWord(file);
  const again = `To write a new one: rm ${own} && gateway init --config ${own}`;
  if (source.tree === null) throw new ConfigError(`The config file ${file} is empty. ${again}`);
  const isUsed = options.missing !== "keep";
  const expanded = expandTree(source.tree, { ...readEnvFile(file), ...env }, isUsed);
  const { tree } = expanded;
  const retired = removeRetired(tree);
  const place = (each: ReferenceProblem): Problem => ({ ...source.locate(each.path), ...each });
  // Compiling a function for each object takes longer.
  const parsed = configSchema.safeParse(tree, { jitless: true });
  const issues = parsed.success ? [] : explainIssues(parsed.error.issues, tree, source);
  const concerned = new Set(issues.map(({ path }) => formatPath(path)));
  const authorities = readAuthorities(parsed.data, dirname(file));
  const isHarmless = ({ path }: ReferenceProblem): boolean =>
    // The variable is needed if the schema refuses the value without it.
    !concerned.has(formatPath(path)) && (isUsed ? isIdle(path, tree) : !isNeeded(path));
  const idle = isUsed ? expanded.unset.filter(isHarmless) : [];
  const found = [
    ...expanded.unset.filter((each) => !isHarmless(each)),
    ...retired.filter(({ isGuard }) => isGuard),
    ...authorities.problems,
    ...(parsed.success ? findDangling(parsed.data, expanded.fromEnvironment) : []),
  ].map(place);
  const reported = new Set(found.map(({ path }) => formatPath(path)));
  const others = issues.filter(({ path }) => !reported.has(formatPath(path)));
  const problems = [...source.problems, ...found, ...others];
  if (!parsed.success || problems.length > 0) throw refuseProblems(file, problems);
  const notes = [
    ...retired.map(({ path, message }) => ({ path, message: `${formatPath(path)} ${message}` })),
    ...idle.map(({ path, message }) => {
      return { path, message: `no group has this channel, so the gateway starts without it: ${message}` };
    }),
  ]
    .map(place)
    .map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  // Both files may hold credentials.
  const warnings = [file, placeEnvFile(file)].flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? [] : warnOfMode(path, stats);
  });
  const catalog = buildCatalog(parsed.data, {
    ledgerPath: placeLedger(resolve(dirname(file), parsed.data.ledger.path)),
    authorities: authorities.texts,
    lacking: new Map([
      ...expanded.lacking,
      ...idle.map(({ path, message }) => [String(path[1]), message] as const),
    ]),
    env,
  });
  return { catalog, warnings: [...warnings, ...notes], source: source.tree };
}

/** The ledger's path is needed: another ledger would give wrong answers. */
function isNeeded([section, setting]: Path): boolean {
  return section === "ledger" && setting === "path";
}

function isIdle([section, name]: Path, tree: unknown): boolean {
  const groups = Object.values(getField(tree, "groups") ?? {});
  return section === "channels" && !groups.some((group) => listIn(group, "channels").includes(name));
}

function readAuthorities(config: Config | undefined, folder: string) {
  const texts = new Map<string, string>();
  const problems: ReferenceProblem[] = [];
  for (const [name, { ca }] of Object.entries(config?.channels ?? {})) {
    if (ca === undefined) continue;
    const path: Path = ["channels", name, "ca"];
    try {
      const pem = readPlain(resolve(folder, ca));
      if (pem.includes("-----BEGIN CERTIFICATE-----")) texts.set(name, pem);
      else problems.push({ path, message: "this file holds no PEM certificate" });
    } catch {
      problems.push({ path, message: "this file cannot be read" });
    }
  }
  return { texts, problems };
}

/** Follows a link only to a ledger, because others may plant links to other files.
 *  Opening the ledger refuses a link that was not followed. */
function placeLedger(path: string): string {
  const target = followLinks(path);
  return target === path || isLedger(target) ? target : path;
}

/** Right after a rotation the ledger is empty, but has its journal. */
function isLedger(path: string): boolean {
  if (existsSync(`${path}.open`)) return true;
  try {
    const handle = openPlain(path);
    const start = Buffer.alloc(LEDGER_START.length);
    const count = readSync(handle, start);
    closeSync(handle);
    return start.subarray(0, count).toString() === LEDGER_START;
  } catch {
    return false;
  }
}

function describeUnreadable(path: string, error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    return `${path} is a link to ${readlinkSync(path)}, which is not there.`;
  if (code === "ENOENT" || code === "ENOTDIR")
    return `There is no config file ${path}. \`gateway init --config ${quoteWord(path)}\` writes one.`;
  if (code === "EISDIR") return `${path} is a folder, not a config file.`;
  const why = code === "EACCES" || code === "EPERM" ? "permission denied" : code || String(error);
  return `The config file ${path} cannot be read: ${why}.`;
}
