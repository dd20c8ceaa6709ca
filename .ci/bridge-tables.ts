// The tables of fields and ends in docs/bridges.md, from the tables of the code. `npm run tables` writes them there.

import { readFileSync, writeFileSync } from "node:fs";
import { END_REASONS } from "../src/bridges/neutral/sequence.ts";
import { type FieldTable, judgeLost, type FieldRow } from "../src/bridges/neutral/fields.ts";
import { CHAT_FIELDS } from "../src/bridges/chat/fields.ts";
import { FINISH_REASONS } from "../src/bridges/chat/write-answer.ts";
import { CONTENT_FIELDS } from "../src/bridges/content/fields.ts";
import { CONTENT_REASONS } from "../src/bridges/content/write-answer.ts";
import { isShared } from "../src/bridges/convert.ts";
import { MESSAGES_FIELDS } from "../src/bridges/messages/fields.ts";
import { STOP_REASONS } from "../src/bridges/messages/write-answer.ts";
import { RESPONSES_FIELDS } from "../src/bridges/responses/fields.ts";
import { INCOMPLETE_REASONS } from "../src/bridges/responses/write-answer.ts";
import { DIALECT_NAMES, type DialectName } from "../src/dialects/dialect.ts";

const TABLES: Readonly<Record<DialectName, FieldTable>> = {
  messages: MESSAGES_FIELDS,
  responses: RESPONSES_FIELDS,
  chat: CHAT_FIELDS,
  content: CONTENT_FIELDS,
};

const WORDS = { kept: "same", silent: "no effect", noted: "left out", refused: "refused" } as const;

/** From the best to the worst. */
const OUTCOMES = ["no effect", "same", "nearest", "left out", "refused"];

/** What one dialect of upstreams makes of a field. */
function describeRow({ option, rule }: FieldRow, client: DialectName, upstream: DialectName): string {
  if (rule !== undefined) return WORDS[rule];
  if (option === undefined) return WORDS.kept;
  const rows = TABLES[upstream].options.filter((row) => row.option === option && row.write !== undefined);
  if (rows.length === 0) return WORDS[judgeLost(option, isShared(client, upstream))];
  return rows.some(({ near }) => near === true) ? "nearest" : "same";
}

/** If a field holds several options, the table shows the worst outcome. */
function describeField(rows: readonly FieldRow[], client: DialectName, upstream: DialectName): string {
  const found = rows.map((row) => describeRow(row, client, upstream));
  return OUTCOMES.findLast((outcome) => found.includes(outcome)) ?? "same";
}

function formTable(client: DialectName): string {
  const upstreams = DIALECT_NAMES.filter((name) => name !== client);
  const head = `| ${client} client | ${upstreams.join(" | ")} |\n|${" --- |".repeat(upstreams.length + 1)}`;
  const told = TABLES[client].rows.filter((row) =>
    row.option === undefined
      ? row.rule !== "kept" || /^\w+$/.test(row.path)
      : (row.rule ?? row.read) !== undefined,
  );
  const fields = Map.groupBy(told, ({ label, path }) => label ?? path);
  const outcomes = Map.groupBy(fields, ([, same]) =>
    upstreams.map((upstream) => describeField(same, client, upstream)).join(" | "),
  );
  const rows = [...outcomes].map(
    ([outcome, alike]) => `| ${alike.map(([name]) => `\`${name}\``).join(", ")} | ${outcome} |`,
  );
  return [head, ...rows].join("\n");
}

function formEnds(): string {
  const rows = END_REASONS.map((key) => {
    const stop = STOP_REASONS[key];
    const why = INCOMPLETE_REASONS[key];
    return `| ${stop} | ${why === null ? "completed" : `incomplete: ${why}`} | ${FINISH_REASONS[key]} | ${CONTENT_REASONS[key]} |`;
  });
  return ["| messages | responses | chat | content |", "| --- | --- | --- | --- |", ...rows].join("\n");
}

/** Replaces the tables of the document, which it finds by their heads, with those of the code. */
export function fillTables(document: string): string {
  return [...DIALECT_NAMES.map(formTable), formEnds()].reduce((text, table) => {
    const [head = ""] = table.split("\n");
    const start = text.indexOf(`\n${head}\n`) + 1;
    if (start === 0) throw new Error(`docs/bridges.md has no table with the head ${head}`);
    const end = text.indexOf("\n\n", start);
    return text.slice(0, start) + table + text.slice(end);
  }, document);
}

if (import.meta.main) {
  const path = new URL("../docs/bridges.md", import.meta.url);
  writeFileSync(path, fillTables(readFileSync(path, "utf8")));
}
