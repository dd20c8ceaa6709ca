// `gateway doctor` on the config file: whether it is valid, who may read it, and the variables that it uses.

import { getErrorMessage } from "../../lib/errors.ts";
import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { loadPriceBook, type PriceBook, refuseUnknownProviders } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import { placeEnvFile } from "../../config/file/env-file.ts";
import { nameLock } from "../../config/file/replace.ts";
import { type Environment, listReferences } from "../../config/yaml/expand.ts";
import {
  type LoadedConfig,
  loadConfig,
  loadWithCredentials,
  readConfigText,
} from "../../config/file/load.ts";
import { findConfig } from "../../config/file/find.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { ForeignFile, requireOwn } from "../../lib/files/own-file.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { bad, type Finding, good, note } from "./finding.ts";
import { type ConfigFlags } from "../access/config.ts";
import { formatCount } from "../terminal/text.ts";

export interface ConfigCheck {
  readonly findings: readonly Finding[];
  /** Null if the config cannot be used, which ends the check. */
  readonly catalog: Catalog | null;
  readonly path: string;
}

export async function checkConfig(flags: ConfigFlags, env: Environment): Promise<ConfigCheck> {
  let path = "";
  try {
    path = findConfig(flags.config, env);
    readConfigText(path);
  } catch (error) {
    return { findings: [explainUnreadable(error, path)], catalog: null, path };
  }
  const unset = listUnset(path, env);
  try {
    const loaded = await loadWithCredentials(path, env, { missing: "keep" });
    return {
      findings: [
        describeConfig(loaded),
        ...checkPermissions(loaded),
        ...describeVariables(path, env, unset),
        ...findMissingParts(loaded),
        checkPrices(loaded),
      ],
      catalog: loaded.catalog,
      path,
    };
  } catch (error) {
    return {
      findings: [...explainProblems(error, path), ...describeVariables(path, env, unset)],
      catalog: null,
      path,
    };
  }
}

function explainUnreadable(error: unknown, path: string): Finding {
  const text = getErrorMessage(error);
  const fix = error instanceof ConfigError ? error.fix : null;
  if (fix === null) return bad("config", text, adviseUnreadable(path));
  return bad("config", text.endsWith(`: ${fix}`) ? text.slice(0, -fix.length - 2) : text, fix);
}

function adviseUnreadable(path: string): string {
  if (!existsSync(path)) return `gateway init --config ${quoteWord(path)}`;
  try {
    accessSync(path, constants.R_OK);
    return `edit ${path}`;
  } catch {
    return `chmod u+r ${quoteWord(path)}`;
  }
}

function describeConfig({ path, catalog }: LoadedConfig): Finding {
  const { channels, groups, keys } = catalog;
  const sizes = [
    formatCount(channels.size, "channel"),
    formatCount(groups.size, "group"),
    formatCount(keys.size, "key"),
  ];
  return good("config", `${path} (${sizes.join(", ")})`);
}

function explainProblems(error: unknown, path: string): Finding[] {
  if (!(error instanceof ConfigError) || error.problems.length === 0)
    return [bad("config", getErrorMessage(error), `edit ${path}`)];
  // The loader writes one line for each problem, with its place.
  return error.message
    .split("\n")
    .map((text) => bad("config", text, `edit ${path}${/:\d+(?=:\d+: )/.exec(text)?.[0] ?? ""}`));
}

const UNSET = /the environment variable (\w+) is not set/;

/** The gateway does not start while one of these is unset. */
function listUnset(path: string, env: Environment): string[] {
  try {
    loadConfig(path, env);
    return [];
  } catch (error) {
    const problems = error instanceof ConfigError ? error.problems : [];
    return [...new Set(problems.flatMap(({ message }) => UNSET.exec(message)?.[1] ?? []))];
  }
}

function describeVariables(path: string, env: Environment, unset: readonly string[]): Finding[] {
  const missing = unset.map((name) =>
    bad(
      "environment",
      `${name} is not set, but the config uses it`,
      `add ${name}=… to ${placeEnvFile(path)}`,
    ),
  );
  const set = listReferences(readConfigText(path)).filter((name) => (env[name] ?? "") !== "");
  return set.length === 0 ? missing : [good("environment", `set: ${set.join(", ")}`), ...missing];
}

function checkPermissions({ path, warnings }: LoadedConfig): Finding[] {
  const findings = warnings.map((text) => {
    const [, fix] = /: (chmod 600 .*)$/.exec(text) ?? [];
    return fix === undefined ? note("config", text) : bad("permissions", text.slice(0, -fix.length - 2), fix);
  });
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
  } catch {
    findings.push(
      note("permissions", `this user cannot change ${path}: commands such as \`gateway keys add\` will fail`),
    );
  }
  findings.push(...findForeignLock(path));
  const isPrivate = findings.every(({ check }) => check !== "permissions");
  const files = existsSync(placeEnvFile(path)) ? "the config file and gateway.env" : "the config file";
  return isPrivate ? [good("permissions", `only this user can read ${files}`), ...findings] : findings;
}

const OLD_BOOK_DAYS = 30;
const DAY_MS = 86_400_000;

function checkPrices({ path, catalog }: LoadedConfig): Finding {
  try {
    const book = loadPriceBook(path);
    refuseUnknownProviders(catalog.channels.values(), book);
    return describeBook(book, new Date());
  } catch (error) {
    const fix = error instanceof ConfigError ? `edit ${path}` : "gateway prices update";
    return bad("prices", getErrorMessage(error), fix);
  }
}

/** The only place that speaks of the book's age. */
export function describeBook({ label, date }: Pick<PriceBook, "label" | "date">, now: Date): Finding {
  const days = Math.floor((now.getTime() - Date.parse(date)) / DAY_MS);
  return days > OLD_BOOK_DAYS
    ? note("prices", `${label} is ${days} days old: newer models have no price`, "gateway prices update")
    : good("prices", label);
}

function findForeignLock(path: string): Finding[] {
  try {
    requireOwn(nameLock(realpathSync(path)));
  } catch (error) {
    // A config that comes from a pipe has no lock.
    if (!(error instanceof ForeignFile)) return [];
    return [
      bad(
        "config",
        `commands cannot change it: ${getErrorMessage(error)}`,
        `ls -lai ${quoteWord(dirname(path))}`,
      ),
    ];
  }
  return [];
}

/** A valid config can still be useless. */
function findMissingParts({ path, catalog: { channels, groups, keys } }: LoadedConfig): Finding[] {
  const findings: Finding[] = [];
  for (const [what, { size }] of Object.entries({ channels, groups }))
    if (size === 0)
      findings.push(bad(what, `the config has no ${what}`, `add one under ${what}: in ${path}`));
  for (const group of groups.values()) {
    if (group.channels.length === 0)
      findings.push(
        bad(
          `group ${group.name}`,
          "all of its channels are disabled",
          `enable a channel of the group, or remove the group`,
        ),
      );
  }
  if (keys.size === 0) findings.push(note("keys", "there are no keys yet", "gateway keys add"));
  return findings;
}
