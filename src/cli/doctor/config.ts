// `gateway doctor` on the config and the files next to it.

import { accessSync, constants, existsSync } from "node:fs";
import { basename, dirname, extname, join } from "node:path";
import { loadBook, type PriceBook, refuseUnknownProviders } from "../../billing/prices.ts";
import { placeEnvFile } from "../../config/file/env-file.ts";
import type { LoadedConfig } from "../../config/file/load.ts";
import { listVariables } from "../../config/yaml/expand.ts";
import { ConfigError } from "../../config/yaml/problems.ts";
import { messageOf } from "../../lib/errors.ts";
import { getField, getList, getText } from "../../lib/json/json.ts";
import { looksSecret } from "../../lib/secret.ts";
import { quoteWord } from "../../lib/text/shell-word.ts";
import { adviseCredential, listUnset } from "../access/credential-place.ts";
import type { LedgerFlags } from "../access/ledger-place.ts";
import { formatCount } from "../terminal/text.ts";
import { bad, type Check, type DoctorFinding, good, note } from "./finding.ts";

/** `path`: empty if there is no config. */
export function explainProblems(error: unknown, path: string, { ledger }: LedgerFlags): DoctorFinding[] {
  const text = messageOf(error);
  if (!(error instanceof ConfigError) && ledger !== undefined)
    return [bad("ledger", text, "name another file with --ledger")];
  if (!(error instanceof ConfigError)) return [bad("config", text, `edit ${path}`)];
  const { fix } = error;
  if (fix !== null) return [bad("config", text.replace(`: ${fix}`, ""), fix)];
  if (path !== "" && !existsSync(path))
    return [bad("config", text, `gateway init --config ${quoteWord(path)}`)];
  if (!isReachable(path, constants.R_OK)) return [bad("config", text, `chmod u+r ${quoteWord(path)}`)];
  return text.split("\n").map((line) => {
    const [place = ""] = /:\d+(?=:\d+: )/.exec(line) ?? [];
    return bad("config", line, `edit ${path}${place}`);
  });
}

function isReachable(path: string, mode: number): boolean {
  try {
    accessSync(path, mode);
    return true;
  } catch {
    return false;
  }
}

export const describeConfig: Check = ({ path, catalog: { channels, groups, keys }, running }) => {
  const problem = running?.config_problem;
  if (problem) return bad("config", `the running gateway does not use it: ${problem}`, `edit ${path}`);
  const counts = Object.entries({ channel: channels, group: groups, key: keys });
  const words = counts.map(([what, { size }]) => formatCount(size, what)).join(", ");
  return good("config", `${path} (${words})`);
};

export const checkPermissions: Check = ({ path, warnings }) => {
  const findings = warnings.map((text) => {
    const [, detail = "", fix] = /^(.*): (chmod 600 .*)$/s.exec(text) ?? [];
    return fix === undefined ? note("config", text) : bad("permissions", detail, fix);
  });
  const unwritable = `this user cannot change ${path}: \`gateway keys add\` will fail`;
  if (![path, dirname(path)].every((place) => isReachable(place, constants.W_OK)))
    findings.push(note("permissions", unwritable));
  return findings.some(({ check }) => check === "permissions")
    ? findings
    : [good("permissions", "only this user can read the config"), ...findings];
};

/** The gateway does not start while a variable is unset. */
export function checkVariables({ path, source, catalog: { channels } }: LoadedConfig): DoctorFinding[] {
  const all = Object.entries(getField(source, "channels") ?? {});
  const served = all.filter(([name]) => channels.get(name)?.groups.length !== 0);
  const values = { ...Object(source), channels: served };
  const set = listVariables(values, true).filter((name) => (process.env[name] ?? "") !== "");
  const missing = listUnset(values, path, process.env).map((name) => {
    const detail = `${name} is not set, but the config uses it`;
    return bad("environment", detail, `add ${name}=… to ${placeEnvFile(path)}`);
  });
  return set.length === 0 ? missing : [good("environment", `set: ${set.join(", ")}`), ...missing];
}

export function checkParts({ path, catalog }: LoadedConfig): DoctorFinding[] {
  const { channels, groups, keys } = catalog;
  const lacking = Object.entries({ channels, groups }).filter(([, { size }]) => size === 0);
  const idle = [...groups.values()].filter((group) => group.channels.length === 0);
  return [
    ...lacking.map(([what]) => {
      return bad(what, `the config has no ${what}`, `add one under ${what}: in ${path}`);
    }),
    ...idle.map(({ name }) => {
      return bad(`group ${name}`, `all channels of ${name} are disabled`, "enable one of them");
    }),
    ...(keys.size === 0 ? [note("keys", "there are no keys yet", "gateway keys add")] : []),
  ];
}

export const checkSecrets: Check = ({ source }) =>
  getList(getField(source, "keys")).flatMap((entry) => {
    const name = getText(getField(entry, "name"));
    const text = "leak scanners and some clients expect a secret that begins with `sk-`";
    const isOdd = /^(?!sk-|\$\{)./.test(getText(getField(entry, "secret")));
    return isOdd ? [note(`key ${name}`, text, `gateway keys rotate ${name}`)] : [];
  });

export const checkGit: Check = ({ path, source, catalog: { ledger } }) => {
  if (Bun.which("git") === null) return null;
  const [folder, extension] = [dirname(path), extname(ledger.path)];
  const files = [
    [folder, "gateway.env", "all secrets in it"],
    [folder, `.${basename(path)}.tool-keys`, "all secrets in it"],
    [dirname(ledger.path), `${basename(ledger.path, extension)}*${extension}*`, "it"],
  ] as const;
  const config = listInGit(folder, basename(path));
  const literals = config === "" ? [] : listLiterals(source);
  const edit = `edit ${path}: write \${NAME} there, and NAME=… into gateway.env`;
  return [
    ...files.flatMap(([place, pattern, kept]) => {
      const listed = listInGit(place, pattern);
      const ignore = `echo ${quoteWord(pattern)} >> ${quoteWord(join(place, ".gitignore"))}`;
      const remove = `git -C ${quoteWord(place)} rm -r -q --cached ${quoteWord(pattern)}`;
      const fix = HELD.test(listed) ? `${remove} && ${ignore}` : ignore;
      return listed === "" ? [] : note("git", describeGit(listed, join(place, pattern), kept), fix);
    }),
    ...literals.map((place) => {
      const [, name] = /^channels\.(.*)\.credential$/.exec(place) ?? [];
      const detail = describeGit(config, `${place} in ${path}`, "it, so replace it");
      return note("git", detail, name === undefined ? edit : adviseCredential(name));
    }),
  ];
};

/** A line about a file that git has. Lines about other files begin with a question mark. */
const HELD = /^[^?]/m;

function describeGit(listed: string, what: string, kept: string): string {
  return HELD.test(listed) ? `git has ${what}: its history keeps ${kept}` : `\`git add\` would take ${what}`;
}

const SECRET_PLACE = /\.(?:credential|secret)$|\.headers\..*(?:key|auth|cookie|token)/i;
const NOT_LITERAL = /^(?:none|client|keychain:.*|bearer |basic )?$/i;

/** Also finds secrets in the default of a variable. */
function listLiterals(tree: unknown, place = ""): string[] {
  if (typeof tree !== "string")
    return Object.entries(tree ?? {}).flatMap(([name, value]) => listLiterals(value, `${place}.${name}`));
  const text = tree.replaceAll(/(?<!\$)\$\{\w+(?::-([^}]*))?\}/g, "$1");
  return (SECRET_PLACE.test(place) ? NOT_LITERAL.test(text) : !looksSecret(text)) ? [] : [place.slice(1)];
}

/** A repository may name any program as its fsmonitor. */
function listInGit(folder: string, pattern: string): string {
  const git = ["git", "-C", folder, "-c", "core.fsmonitor=false"];
  const words = [...git, "ls-files", "-tco", "--exclude-standard", "--", pattern];
  return Bun.spawnSync(words, { stderr: "ignore" }).stdout.toString();
}

export const checkBook: Check = ({ path, catalog }) => {
  try {
    const book = loadBook(path);
    refuseUnknownProviders(catalog.channels.values(), book);
    return describeBook(book, new Date());
  } catch (error) {
    const fix = error instanceof ConfigError ? `edit ${path}` : "gateway prices update";
    return bad("prices", messageOf(error), fix);
  }
};

const OLD_BOOK_DAYS = 30;

export function describeBook(book: Pick<PriceBook, "label" | "date">, now: Date): DoctorFinding {
  const { label, date } = book;
  const days = Math.floor((now.getTime() - Date.parse(date)) / 86_400_000);
  if (days <= OLD_BOOK_DAYS) return good("prices", label);
  const detail = `${label} is ${days} days old: newer models have no price`;
  return note("prices", detail, "gateway prices update");
}
