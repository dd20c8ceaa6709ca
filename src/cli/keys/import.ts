// `gateway keys import`: keys that exist elsewhere, taken over with their
// secrets or their secrets' hashes, all of them or none.

import { readFileSync } from "node:fs";
import type { Catalog } from "../../config/catalog.ts";
import { editConfig } from "../../config/edit.ts";
import { readMoment, readSecretText } from "../../config/scalars.ts";
import { fieldOf, parseJson } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { parseEnvFile } from "./env-file.ts";
import {
  checkKeyName,
  type ConfigFlags,
  describe,
  findGroup,
  formatMoment,
  openConfig,
} from "../config-access.ts";
import { warnGuessable } from "./add.ts";
import { fail, readAll, refuseUsage, tell } from "../terminal.ts";
import { formatCount } from "../text.ts";

export interface ImportFlags extends ConfigFlags {
  /** Of keys that do not name one: those of an env-style file. */
  readonly group?: string;
}

type Entry = Record<string, string>;

export async function importKeys(file: string, flags: ImportFlags): Promise<void> {
  const { path } = openConfig(flags);
  const text = file === "-" ? await readAll() : readFile(file);
  const entries = (parseAssignments(text, flags.group) ?? parseRecords(text)).map(readRecord);
  if (entries.length === 0)
    refuseUsage(
      "There is nothing to import: expected NAME=secret lines, or JSON as `gateway keys add --json` prints it.",
    );
  await editConfig(path, process.env, (current) => {
    entries.forEach((entry, index) => checkEntry(entry, entries.slice(0, index), current));
    return [{ kind: "append", path: ["keys"], values: entries }];
  });
  tell(`Imported ${formatCount(entries.length, "key")}.`);
}

function readFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return fail(`The file ${file} cannot be read.`);
  }
}

/** `LAPTOP=sk-…`, a key a line; null when the text is no such file. */
function parseAssignments(text: string, group: string | undefined): unknown[] | null {
  const assignments = parseEnvFile(text);
  if (assignments === null) return null;
  if (group === undefined) refuseUsage("NAME=secret lines name no group: say which with --group.");
  return assignments.map(({ name, value }) => ({ name, group, secret: value }));
}

/** A list, one object, or one object a line. */
function parseRecords(text: string): unknown[] {
  const whole = parseJson(text);
  if (whole !== undefined) return Array.isArray(whole) ? whole : [whole];
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, index) => parseJson(line) ?? refuseUsage(`Line ${index + 1} is not JSON.`));
}

function readRecord(record: unknown, index: number): Entry {
  const place = `Key ${index + 1}`;
  const read = (field: string) => {
    const value = fieldOf(record, field);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const need = (field: string) => read(field) ?? refuseUsage(`${place} has no \`${field}\`.`);
  const moments = ["created", "expires"].flatMap((field) => {
    const text = read(field);
    return text === undefined
      ? []
      : [[field, attempt(place, field, () => formatMoment(readMoment(text)))] as const];
  });
  return {
    name: need("name"),
    group: need("group"),
    secret_sha256: readDigest(place, read("secret"), read("secret_sha256")),
    ...Object.fromEntries(moments),
    ...(fieldOf(record, "disabled") === true && { disabled: "true" }),
  };
}

function readDigest(place: string, secret: string | undefined, digest: string | undefined): string {
  if (secret !== undefined) {
    const text = attempt(place, "secret", () => readSecretText(secret));
    warnGuessable(text, `${place}: a secret`);
    return sha256Hex(text);
  }
  if (digest !== undefined && /^[0-9a-f]{64}$/i.test(digest)) return digest.toLowerCase();
  return refuseUsage(`${place} needs a \`secret\`, or a \`secret_sha256\` of 64 hexadecimal digits.`);
}

function attempt(place: string, field: string, read: () => string): string {
  try {
    return read();
  } catch (error) {
    return refuseUsage(`${place}: \`${field}\`: ${describe(error)}.`);
  }
}

function checkEntry(entry: Entry, before: readonly Entry[], catalog: Catalog): void {
  const { name = "", group = "", secret_sha256: digest = "" } = entry;
  const complaint = checkKeyName(name, catalog);
  if (complaint !== undefined) fail(complaint);
  // Exclusive groups too: what was bought elsewhere moves here whole, and opens with its plan.
  findGroup(catalog, group);
  const other =
    catalog.keysBySha256.get(digest)?.name ??
    before.find((each) => each["secret_sha256"] === digest)?.["name"];
  if (other !== undefined) fail(`The secret of "${name}" belongs to the key "${other}" already.`);
  if (before.some((each) => each["name"] === name)) fail(`"${name}" is there twice.`);
}
