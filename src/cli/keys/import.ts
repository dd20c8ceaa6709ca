// `gateway keys import`: adds keys that exist elsewhere, with their secrets or
// the hashes of their secrets. Imports all of them or none.

import { readFileSync } from "node:fs";
import type { Catalog } from "../../config/catalog.ts";
import { parseEnvFile } from "../../config/file/env-file.ts";
import { readMoment } from "../../config/yaml/scalars.ts";
import { getField, parseJson } from "../../lib/json/json.ts";
import { sha256Hex } from "../../lib/secret.ts";
import { checkKeyName, findGroup, formatMoment } from "../../config/changes/names.ts";
import { type ConfigFlags, openConfig } from "../access/config.ts";
import { checkSecret } from "./secrets.ts";
import { fail, printNote, readAll, readGiven, refuseUsage } from "../terminal/terminal.ts";
import { formatCount } from "../terminal/text.ts";

export interface ImportFlags extends ConfigFlags {
  /** The group of keys from an env-style file, which names none. */
  readonly group?: string;
  /** Accept secrets of any form. */
  readonly force?: true;
}

type ImportedKey = Record<string, string>;

export async function importKeys(file: string, flags: ImportFlags): Promise<void> {
  const config = openConfig(flags);
  const text = file === "-" ? await readAll() : readFile(file);
  const entries = (parseAssignments(text, flags.group) ?? parseRecords(text)).map((record, index) =>
    readRecord(record, `Key ${index + 1}`, flags.force),
  );
  if (entries.length === 0)
    refuseUsage(
      "There is nothing to import: expected NAME=secret lines, or JSON as `gateway keys add --json` prints it.",
    );
  await config.edit((current) => {
    entries.forEach((entry, index) => checkImportedKey(entry, entries.slice(0, index), current));
    return [{ kind: "append", path: ["keys"], values: entries }];
  });
  printNote(`Imported ${formatCount(entries.length, "key")}.`);
}

function readFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return fail(`The file ${file} cannot be read.`);
  }
}

/** One key per line, such as `LAPTOP=sk-…`; null when the text has another format. */
function parseAssignments(text: string, group: string | undefined): unknown[] | null {
  const assignments = parseEnvFile(text);
  if (assignments === null) return null;
  if (group === undefined) refuseUsage("--group is missing: NAME=secret lines name no group.");
  return assignments.map(({ name, value }) => ({ name, group, secret: value }));
}

/** A JSON list, one object, or one object per line. */
function parseRecords(text: string): unknown[] {
  const whole = parseJson(text);
  if (whole !== undefined) return Array.isArray(whole) ? whole : [whole];
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line, index) => parseJson(line) ?? refuseUsage(`Line ${index + 1} is not JSON.`));
}

function readRecord(record: unknown, label: string, force: true | undefined): ImportedKey {
  const read = (field: string) => {
    const value = getField(record, field);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const need = (field: string) => read(field) ?? refuseUsage(`${label} has no \`${field}\`.`);
  const moments = ["created", "expires"].flatMap((field) => {
    const text = read(field);
    return text === undefined
      ? []
      : [[field, readGiven(() => formatMoment(readMoment(text)), `${label}: \`${field}\``)] as const];
  });
  return {
    name: need("name"),
    group: need("group"),
    secret_sha256: readSecret(label, read("secret"), force) ?? readDigest(label, read("secret_sha256")),
    ...Object.fromEntries(moments),
    ...(getField(record, "disabled") === true && { disabled: "true" }),
  };
}

function readSecret(label: string, secret: string | undefined, force: true | undefined): string | undefined {
  if (secret === undefined) return undefined;
  const complaint = checkSecret(secret, force);
  return complaint === undefined ? sha256Hex(secret) : refuseUsage(`${label}: ${complaint}`);
}

function readDigest(label: string, digest = ""): string {
  if (/^[0-9a-f]{64}$/i.test(digest)) return digest.toLowerCase();
  return refuseUsage(`${label} needs a \`secret\`, or a \`secret_sha256\` of 64 hexadecimal digits.`);
}

function checkImportedKey(entry: ImportedKey, before: readonly ImportedKey[], catalog: Catalog): void {
  const { name = "", group = "", secret_sha256: digest = "" } = entry;
  const complaint = checkKeyName(name, catalog);
  if (complaint !== undefined) fail(complaint);
  // A group whose plan is not active is fine too: the key works once the plan is active.
  findGroup(catalog, group);
  const other =
    catalog.keysBySha256.get(digest)?.name ??
    before.find((each) => each["secret_sha256"] === digest)?.["name"];
  if (other !== undefined) fail(`The key "${other}" already has the secret of "${name}".`);
  if (before.some((each) => each["name"] === name)) fail(`Two keys have the name "${name}".`);
}
