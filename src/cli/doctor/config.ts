// `gateway doctor` on the config file: what it says, who may read it, and the variables that it refers to.

import { accessSync, constants, existsSync, realpathSync } from "node:fs";
import { dirname } from "node:path";
import { loadPriceBook, type PriceBook, refuseUnknownProviders } from "../../billing/prices.ts";
import type { Catalog } from "../../config/catalog.ts";
import { nameLock } from "../../config/edit.ts";
import { type Environment, listReferences } from "../../config/expand.ts";
import { type Loaded, loadConfig, readConfigText } from "../../config/file.ts";
import { findConfig } from "../../config/find.ts";
import { ConfigError } from "../../config/problems.ts";
import { ForeignFile, requireOwn } from "../../lib/own-file.ts";
import { quoteWord } from "../../lib/shell-word.ts";
import { bad, type Finding, good, note } from "./finding.ts";
import { type ConfigFlags, describe } from "../config-access.ts";
import { formatCount } from "../text.ts";

export interface Examined {
  readonly findings: readonly Finding[];
  /** Null: there is nothing to go on with. */
  readonly catalog: Catalog | null;
}

export function checkConfig(flags: ConfigFlags, env: Environment): Examined {
  let path = "";
  try {
    path = findConfig(flags.config, env);
    readConfigText(path);
  } catch (error) {
    return { findings: [explainUnread(error, path)], catalog: null };
  }
  const unset = listUnset(path, env);
  try {
    const loaded = loadConfig(path, env, { missing: "keep" });
    return {
      findings: [
        describeConfig(loaded),
        ...checkPermissions(loaded),
        ...describeVariables(path, env, unset),
        ...findGaps(loaded),
        checkPrices(loaded),
      ],
      catalog: loaded.catalog,
    };
  } catch (error) {
    return {
      findings: [...explainProblems(error, path), ...describeVariables(path, env, unset)],
      catalog: null,
    };
  }
}

function explainUnread(error: unknown, path: string): Finding {
  const text = describe(error);
  const fix = error instanceof ConfigError ? error.fix : null;
  if (fix === null) return bad("config", text, mendUnread(path));
  return bad("config", text.endsWith(`: ${fix}`) ? text.slice(0, -fix.length - 2) : text, fix);
}

function mendUnread(path: string): string {
  if (!existsSync(path)) return `gateway init --config ${quoteWord(path)}`;
  try {
    accessSync(path, constants.R_OK);
    return `edit ${path}`;
  } catch {
    return `chmod u+r ${quoteWord(path)}`;
  }
}

function describeConfig({ path, catalog }: Loaded): Finding {
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
    return [bad("config", describe(error), `edit ${path}`)];
  // The loader tells each with its place, one a line.
  return error.message
    .split("\n")
    .map((text) => bad("config", text, `edit ${path}${/:\d+(?=:\d+: )/.exec(text)?.[0] ?? ""}`));
}

const UNSET = /the environment variable (\w+) is not set/;

/** A gateway does not start without them. */
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
    bad("environment", `${name} is not set, and the config refers to it`, `export ${name}=…`),
  );
  const set = listReferences(readConfigText(path)).filter((name) => (env[name] ?? "") !== "");
  return set.length === 0 ? missing : [good("environment", `set: ${set.join(", ")}`), ...missing];
}

function checkPermissions({ path, warnings }: Loaded): Finding[] {
  const findings = warnings.map((text) => {
    const [, mend] = /: (chmod 600 .*)$/.exec(text) ?? [];
    return mend === undefined
      ? note("config", text)
      : bad("permissions", text.slice(0, -mend.length - 2), mend);
  });
  try {
    accessSync(path, constants.W_OK);
    accessSync(dirname(path), constants.W_OK);
  } catch {
    findings.push(
      note(
        "permissions",
        `${path} cannot be changed by this user: \`gateway keys add\` and the like will not work`,
      ),
    );
  }
  findings.push(...findForeignLock(path));
  const isPrivate = findings.every(({ check }) => check !== "permissions");
  return isPrivate ? [good("permissions", "the config file is this user's alone"), ...findings] : findings;
}

const OLD_BOOK_DAYS = 30;
const DAY_MS = 86_400_000;

function checkPrices({ path, catalog }: Loaded): Finding {
  try {
    const book = loadPriceBook(path);
    refuseUnknownProviders(catalog.channels.values(), book);
    return describeBook(book, new Date());
  } catch (error) {
    const mend = error instanceof ConfigError ? `edit ${path}` : "gateway prices update";
    return bad("prices", describe(error), mend);
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
    // A config from a pipe has no lock.
    if (!(error instanceof ForeignFile)) return [];
    return [bad("config", `it cannot be edited: ${describe(error)}`, `ls -lai ${quoteWord(dirname(path))}`)];
  }
  return [];
}

/** A config may be right and yet of no use. */
function findGaps({ path, catalog: { channels, groups, keys } }: Loaded): Finding[] {
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
          `enable one of them, or take the group out`,
        ),
      );
  }
  if (keys.size === 0)
    findings.push(note("keys", "there are none yet, so nobody can call", "gateway keys add"));
  return findings;
}
