// Checks that the names in a config file refer to something that fits. It reads
// the tree before the schema has accepted it, so that the user sees all problems
// at once.

import { getField, isObject, getList } from "../lib/json/json.ts";
import { looksSecret, sha256Hex } from "../lib/secret.ts";
import { findLoginProblems } from "./logins.ts";
import { CHAT, CHAT_GROUP, CONVERTIBLE } from "./schema.ts";
import { suggestNearest } from "./nearest.ts";
import type { Path } from "./yaml/source.ts";

export interface ReferenceProblem {
  readonly path: Path;
  readonly message: string;
}

/** `hidden`: values that no message may repeat, because they come from the environment. */
export function findDangling(tree: unknown, hidden: ReadonlySet<string>): ReferenceProblem[] {
  const quote: Quote = (word, known) => {
    const shown =
      looksSecret(word) || hidden.has(word) || !/^[\w.-]{1,40}$/.test(word) ? "of that name" : `"${word}"`;
    return `${shown}${suggestNearest(word, known)}`;
  };
  return [
    ...checkGroups(tree, quote),
    ...checkPlans(tree, quote),
    ...checkKeys(tree, quote),
    ...findLoginProblems(tree),
    ...findProtos(tree),
  ];
}

/** zod leaves this name out of maps without a word, because it is dangerous in plain objects. */
const PROTO = "__proto__";

/** Strict maps of settings report it as unknown themselves. */
const OPEN_MAPS = [
  ["channels"],
  ["channels", "*", "aliases"],
  ["channels", "*", "headers"],
  ["groups"],
  ["plans"],
  ["prices"],
  ["prices", "*"],
];

function findProtos(tree: unknown): ReferenceProblem[] {
  return OPEN_MAPS.flatMap((pattern) => listPaths(tree, pattern))
    .filter((path) => path.at(-1) === PROTO)
    .map((path) => ({ path, message: "no entry can have this name" }));
}

/** The paths of the entries of every map that fits the pattern. */
function listPaths(node: unknown, pattern: readonly string[]): Path[] {
  if (!isObject(node)) return [];
  const [step, ...below] = pattern;
  if (step === undefined) return Object.keys(node).map((name) => [name]);
  const names = step === "*" ? Object.keys(node) : Object.hasOwn(node, step) ? [step] : [];
  return names.flatMap((name) => listPaths(node[name], below).map((path) => [name, ...path]));
}

type Quote = (word: string, known: readonly string[]) => string;

/** Things that are allowed but probably not intended. */
export function findWarnings(tree: unknown): ReferenceProblem[] {
  const bound = new Set(
    namesIn(tree, "plans").flatMap((plan) =>
      getList(getField(getField(getField(tree, "plans"), plan), "groups")),
    ),
  );
  const groups = getField(tree, "groups");
  return namesIn(tree, "groups")
    .filter((group) => getField(getField(groups, group), "exclusive") === "true" && !bound.has(group))
    .map((group) => ({
      path: ["groups", group, "exclusive"],
      message: "no plan includes this exclusive group, so nobody can use it",
    }));
}

function checkGroups(tree: unknown, quote: Quote): ReferenceProblem[] {
  const channels = getField(tree, "channels");
  const known = namesIn(tree, "channels");
  return namesIn(tree, "groups").flatMap((name) => {
    const group = getField(getField(tree, "groups"), name);
    const platform = getField(group, "platform");
    const listed = getList(getField(group, "channels"));
    return listed.flatMap((channel, index): ReferenceProblem[] => {
      const path = ["groups", name, "channels", index];
      if (typeof channel !== "string") return [];
      if (!known.includes(channel))
        return [{ path, message: `there is no channel ${quote(channel, known)}` }];
      if (listed.indexOf(channel) !== index) return [{ path, message: "this channel is named twice" }];
      const other = getField(getField(channels, channel), "platform");
      if (typeof other !== "string" || typeof platform !== "string" || other === platform) return [];
      if (other === CHAT && platform === CHAT_GROUP) return [];
      const problem = `the channel ${quote(channel, [])} is of another platform than its group`;
      if (getField(group, "convert") !== "true") return [{ path, message: problem + CONVERT_HINT }];
      if (CONVERTIBLE.has(other) && CONVERTIBLE.has(platform)) return [];
      return [{ path, message: `${problem}, and nothing can be converted from or for a relay` }];
    });
  });
}

const CONVERT_HINT = ". To have its requests converted, set `convert: true` on the group";

function checkPlans(tree: unknown, quote: Quote): ReferenceProblem[] {
  const known = namesIn(tree, "groups");
  return namesIn(tree, "plans").flatMap((name) =>
    getList(getField(getField(getField(tree, "plans"), name), "groups")).flatMap((group, index) =>
      checkGroupName(group, known, ["plans", name, "groups", index], quote),
    ),
  );
}

function checkKeys(tree: unknown, quote: Quote): ReferenceProblem[] {
  const known = namesIn(tree, "groups");
  const names = new Map<string, number>();
  const secrets = new Map<string, number>();
  return getList(getField(tree, "keys")).flatMap((key, index) => {
    const findings = checkGroupName(getField(key, "group"), known, ["keys", index, "group"], quote);
    const name = getField(key, "name");
    if (typeof name === "string") {
      const first = names.get(name);
      if (first !== undefined) {
        findings.push({
          path: ["keys", index, "name"],
          message: `keys[${first}] has the same name: the names of keys are unique`,
        });
      } else names.set(name, index);
    }
    const digest = digestOf(key);
    if (digest !== null) {
      const first = secrets.get(digest);
      const setting = typeof getField(key, "secret") === "string" ? "secret" : "secret_sha256";
      if (first !== undefined) {
        findings.push({
          path: ["keys", index, setting],
          message: `keys[${first}] has the same secret: a secret belongs to one key`,
        });
      } else secrets.set(digest, index);
    }
    return findings;
  });
}

function digestOf(key: unknown): string | null {
  const secret = getField(key, "secret");
  if (typeof secret === "string") return sha256Hex(secret);
  const digest = getField(key, "secret_sha256");
  return typeof digest === "string" ? digest.toLowerCase() : null;
}

function checkGroupName(
  group: unknown,
  known: readonly string[],
  path: Path,
  quote: Quote,
): ReferenceProblem[] {
  if (typeof group !== "string" || known.includes(group)) return [];
  return [{ path, message: `there is no group ${quote(group, known)}` }];
}

function namesIn(tree: unknown, section: string): string[] {
  const entries = getField(tree, section);
  return isObject(entries) ? Object.keys(entries) : [];
}
