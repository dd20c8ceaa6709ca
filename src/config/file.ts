// The config file as it lies on the disk, and how its text becomes a Catalog.
// Where it is looked for is find.ts, changing it is edit.ts.

import {
  closeSync,
  fstatSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, resolve } from "node:path";
import { codeOf } from "../lib/error-code.ts";
import { followLinks } from "../lib/links.ts";
import { sha256Hex } from "../lib/secret.ts";
import { quoteWord } from "../lib/shell-word.ts";
import { buildCatalog, type Catalog } from "./catalog.ts";
import { readEnvFile } from "./env-file.ts";
import { type Environment, expandTree } from "./expand.ts";
import { requireTrust, warnOfMode } from "./find.ts";
import { ConfigError, explainIssues, refuseProblems } from "./problems.ts";
import { findDangling, findOddities } from "./references.ts";
import { type Config, configSchema } from "./schema.ts";
import { type Path, parseSource, type Problem } from "./source.ts";

export interface Loaded {
  readonly catalog: Catalog;
  /** Absolute. */
  readonly path: string;
  /** Of the text, to tell whether the file has changed. */
  readonly sha256: string;
  /** For people; the file can be used all the same. */
  readonly warnings: readonly string[];
}

export interface LoadOptions {
  /** `keep`: an unset environment variable stays as written where any text will do. For commands that send nothing upstream. */
  readonly missing?: "refuse" | "keep";
}

export function loadConfig(path: string, env: Environment, options: LoadOptions = {}): Loaded {
  const file = resolve(path);
  const text = readConfigText(file);
  return { ...checkConfigText(text, file, env, options), path: file, sha256: sha256Hex(text) };
}

export function readConfigText(path: string): string {
  let bytes: Buffer;
  try {
    bytes = readTrusted(path);
  } catch (error) {
    throw error instanceof ConfigError ? error : new ConfigError(describeUnreadable(path, error));
  }
  try {
    // Strict, and with its mark if it has one, so that what is edited can be written back byte for byte.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new ConfigError(`The config file ${path} is not UTF-8 text.`);
  }
}

function readTrusted(path: string): Buffer {
  const handle = openSync(path, "r");
  try {
    const stats = fstatSync(handle);
    // A folder is refused as such when it is read, and what comes from a device, /dev/null say, is nobody's file.
    if (isConfigFile(stats)) requireTrust(path, stats);
    return readFileSync(handle);
  } finally {
    closeSync(handle);
  }
}

function isConfigFile(stats: Stats): boolean {
  return stats.isFile() || stats.isFIFO();
}

/** `file` says where the text lies, or will lie: messages and relative paths start from it. */
export function checkConfigText(
  text: string,
  file: string,
  env: Environment,
  options: LoadOptions = {},
): { catalog: Catalog; warnings: string[] } {
  const source = parseSource(text);
  if (!source.readable) throw refuseProblems(file, source.problems);
  const {
    tree,
    problems: unset,
    taken,
  } = expandTree(source.tree ?? {}, { ...readEnvFile(file), ...env }, options.missing ?? "refuse");
  const place = ({ path, message }: { path: Path; message: string }): Problem => ({
    ...source.locate(path),
    path,
    message,
  });
  const parsed = configSchema.safeParse(tree);
  const issues = parsed.success ? [] : explainIssues(parsed.error.issues, tree, source);
  const authorities = readAuthorities(parsed.data, dirname(file));
  const found = [...unset, ...findDangling(tree, taken), ...authorities.problems].map(place);
  const problems = [...source.problems, ...found, ...issues.filter((issue) => !isTold(issue, found))];
  if (!parsed.success || problems.length > 0) throw refuseProblems(file, problems);
  const ledgerPath = followLinks(resolve(dirname(file), parsed.data.ledger.path));
  const catalog = buildCatalog(parsed.data, { ledgerPath, authorities: authorities.texts, env });
  const oddities = findOddities(tree)
    .map(place)
    .map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const stats = statSync(file, { throwIfNoEntry: false });
  const warnings = stats === undefined ? [] : warnOfMode(file, stats);
  return { catalog, warnings: [...warnings, ...oddities] };
}

/** An unset variable is told as such, not also as a bad value. */
function isTold(issue: Problem, found: readonly Problem[]): boolean {
  return found.some(
    ({ path }) =>
      path.length === issue.path.length && path.every((step, depth) => step === issue.path[depth]),
  );
}

interface Authorities {
  readonly texts: Map<string, string>;
  readonly problems: Array<{ path: Path; message: string }>;
}

function readAuthorities(config: Config | undefined, folder: string): Authorities {
  const texts = new Map<string, string>();
  const problems: Authorities["problems"] = [];
  for (const [name, { ca }] of Object.entries(config?.channels ?? {})) {
    if (ca === undefined) continue;
    const path: Path = ["channels", name, "ca"];
    try {
      const pem = readFileSync(resolve(folder, ca), "utf8");
      if (pem.includes("-----BEGIN CERTIFICATE-----")) texts.set(name, pem);
      else problems.push({ path, message: "this file holds no PEM certificate" });
    } catch {
      problems.push({ path, message: "this file cannot be read" });
    }
  }
  return { texts, problems };
}

function describeUnreadable(path: string, error: unknown): string {
  const code = codeOf(error);
  if (code === "ENOENT" && lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    return `${path} is a link to ${readlinkSync(path)}, which is not there.`;
  if (code === "ENOENT" || code === "ENOTDIR")
    return `There is no config file ${path}. \`gateway init --config ${quoteWord(path)}\` writes one.`;
  if (code === "EACCES" || code === "EPERM")
    return `The config file ${path} cannot be read: permission denied.`;
  if (code === "EISDIR") return `${path} is a folder, not a config file.`;
  return `The config file ${path} cannot be read (${code === "" ? String(error) : code}).`;
}
