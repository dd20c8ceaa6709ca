// docs/commands.md has each command, flag, setting and field of a ledger line in one line. It is made from the table of
// commands and from the two schemas: WRITE_DOCS=1 writes it.

import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { z } from "zod";
import { clientSchema, lineSchema } from "../../src/billing/ledger/line.ts";
import { listFlags, type CommandRow, type Parameter } from "../../src/cli/terminal/command.ts";
import { GATEWAY } from "../../src/commands/commands.ts";
import { describeConfig } from "../../src/cli/setup/schema.ts";
import { getField, isObject } from "../../src/lib/json/json.ts";

const PLACE = join(import.meta.dir, "../../docs/commands.md");

interface Command {
  readonly name: string;
  readonly row: CommandRow;
}

function listCommands(name: string, row: CommandRow): Command[] {
  const below = Object.entries(row.commands ?? {}).filter(([, each]) => each.hidden !== true);
  const own = row.run === undefined ? [] : [{ name, row }];
  return [...own, ...below.flatMap(([word, each]) => listCommands(`${name} ${word}`, each))];
}

const inTable = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

/** Returns the text without the list of choices, which only the help has. */
const firstClause = (text: string): string =>
  text.replace(/; names: .*$/s, "").replace(/,? such as [^,;]*$/, "");

function writeCommand({ name, row }: Command): string {
  const args = (row.args ?? []).map(([form]) => form);
  return `| \`${inTable([name, ...args].join(" "))}\` | ${inTable(row.about)} |`;
}

/** Writes the lines of the flags. A flag that has the same description in several commands has one line for them. */
function writeFlags(commands: readonly Command[]): string[] {
  const lines = new Map<string, Set<string>>();
  for (const { name, row } of commands)
    for (const [form, about] of [...(row.args ?? []), ...listFlags(row)] as readonly Parameter[]) {
      if (!form.startsWith("--") || form.startsWith("--config") || form === "--json") continue;
      const line = `| \`${inTable(form)}\` | ${inTable(firstClause(about))}`;
      lines.set(line, (lines.get(line) ?? new Set()).add(name.replace("gateway ", "")));
    }
  return [...lines]
    .map(([line, names]) => `${line} | ${names.size > 4 ? "many" : [...names].join(", ")} |`)
    .toSorted();
}

interface Setting {
  readonly path: string;
  readonly about: string;
}

function listSettings(node: unknown, path: string): Setting[] {
  const about = getField(node, "description");
  const below = [
    ...Object.entries(readMap(node, "properties")).map(([name, child]) => [`.${name}`, child] as const),
    ...(isObject(getField(node, "additionalProperties"))
      ? [[".NAME", getField(node, "additionalProperties")] as const]
      : []),
    ...(isObject(getField(getField(node, "items"), "properties"))
      ? [["[]", getField(node, "items")] as const]
      : []),
  ];
  const children = below.flatMap(([step, child]) => listSettings(child, path + step));
  if (children.length > 0 && typeof about !== "string") return children;
  const [first = ""] = typeof about === "string" ? about.split(/(?<=\.)\s|(?<=\s.*):\s/) : [];
  return [{ path: path.replace(/^\./, ""), about: inTable(first) }, ...children];
}

/** Settings without a description of their own are in the line of the setting above them. */
function writeSettings(settings: readonly Setting[]): string[] {
  const rows = new Map<string, { names: string[]; about: string }>();
  for (const { path, about } of settings) {
    const above = [...rows.keys()].findLast(
      (other) => path.startsWith(`${other}.`) || path.startsWith(`${other}[]`),
    );
    if (about === "" && above !== undefined) rows.get(above)?.names.push(path.slice(above.length));
    else rows.set(path, { names: [path], about });
  }
  return [...rows.values()].map(
    ({ names, about }) => `| ${names.map((name) => `\`${name}\``).join(" ")} | ${about} |`,
  );
}

/** Writes a line for each field. If the ledger's index has a column for the field, the line names it. */
function writeFields(shape: Readonly<Record<string, z.ZodType>>, above = ""): string[] {
  return Object.entries(shape).flatMap(([name, schema]) => {
    const { description = "", column } = schema.meta() ?? {};
    const row = `| \`${above}${name}\` | ${inTable(description)} | ${column === undefined ? "" : `\`${column.name}\``} |`;
    return name === "client" ? [row, ...writeFields(clientSchema.shape, "client.")] : [row];
  });
}

function readMap(node: unknown, name: string): Readonly<Record<string, unknown>> {
  const map = getField(node, name);
  return isObject(map) ? map : {};
}

function writeDocument(): string {
  const commands = listCommands("gateway", GATEWAY);
  return [
    "# Commands, flags, settings and fields",
    "",
    "Made from the table of commands and two schemas. `gateway COMMAND --help` has examples and choices, `config.example.yaml` explains each setting. Every command also takes `--config <file>`, and every listing `--json`.",
    "",
    "| command | what it does |",
    "|---|---|",
    ...commands.map(writeCommand),
    "",
    "| flag | meaning | commands |",
    "|---|---|---|",
    ...writeFlags(commands),
    "",
    "| setting | meaning |",
    "|---|---|",
    ...writeSettings(listSettings(describeConfig(), "")),
    "",
    "| field of a ledger line | meaning | column of the index |",
    "|---|---|---|",
    ...writeFields(lineSchema.shape),
    "",
  ].join("\n");
}

test("docs/commands.md has each command, flag, setting and field as the program has them", () => {
  const wanted = writeDocument();
  if (process.env["WRITE_DOCS"] === "1") writeFileSync(PLACE, wanted);
  expect(readFileSync(PLACE, "utf8")).toBe(wanted);
});
