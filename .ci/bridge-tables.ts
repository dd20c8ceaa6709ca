// The tables of fields and ends in docs/bridges.md, from the tables of the code. `npm run tables` writes them there.

import { readFileSync, writeFileSync } from "node:fs";
import { END_REASONS } from "../src/bridges/neutral/sequence.ts";
import type { FieldRules, Support } from "../src/bridges/neutral/fields.ts";
import { CHAT_FIELDS } from "../src/bridges/chat/read-request.ts";
import { CONTENT_CONFIG_FIELDS, CONTENT_FIELDS } from "../src/bridges/content/read-request.ts";
import { MESSAGES_FIELDS } from "../src/bridges/messages/read-request.ts";
import { RESPONSES_FIELDS } from "../src/bridges/responses/read-request.ts";
import { FINISH_REASONS } from "../src/bridges/chat/write-answer.ts";
import { CONTENT_REASONS } from "../src/bridges/content/write-answer.ts";
import { STOP_REASONS } from "../src/bridges/messages/write-answer.ts";
import { INCOMPLETE_REASONS } from "../src/bridges/responses/write-answer.ts";
import { CHAT_SUPPORT } from "../src/bridges/chat/write-request.ts";
import { CONTENT_SUPPORT } from "../src/bridges/content/write-request.ts";
import { MESSAGES_SUPPORT } from "../src/bridges/messages/write-request.ts";
import { RESPONSES_SUPPORT } from "../src/bridges/responses/write-request.ts";
import { DIALECT_NAMES, type DialectName } from "../src/dialects/dialect.ts";

const FIELDS: Readonly<Record<DialectName, FieldRules>> = {
  messages: MESSAGES_FIELDS.rules,
  responses: RESPONSES_FIELDS.rules,
  chat: CHAT_FIELDS.rules,
  content: { ...CONTENT_FIELDS.rules, ...CONTENT_CONFIG_FIELDS.rules },
};

const SUPPORTS: Readonly<Record<DialectName, Support>> = {
  messages: MESSAGES_SUPPORT,
  responses: RESPONSES_SUPPORT,
  chat: CHAT_SUPPORT,
  content: CONTENT_SUPPORT,
};

const WORDS = { kept: "same", changed: "nearest", "left out": "left out", refused: "refused" } as const;

/** From the best to the worst. */
const OUTCOMES = ["kept", "changed", "left out", "refused"] as const;

/** What one dialect of upstreams makes of a field: of several options, the worst counts. */
function describeField(rule: FieldRules[string], upstream: DialectName): string {
  if (typeof rule === "object" && "shared" in rule)
    return upstream === "responses" ? "same" : describeField(rule.shared, upstream);
  const support = SUPPORTS[upstream];
  if (rule === "kept") return "same";
  if (rule === "silent") return "no effect";
  if (rule === "noted") return "left out";
  if (rule === "refused") return "refused";
  const worst = OUTCOMES.findLast((outcome) => rule?.some((option) => support(option) === outcome));
  return WORDS[worst ?? "kept"];
}

function formTable(client: DialectName): string {
  const upstreams = DIALECT_NAMES.filter((name) => name !== client);
  const head = `| ${client} client | ${upstreams.join(" | ")} |\n|${" --- |".repeat(upstreams.length + 1)}`;
  const told = Object.entries(FIELDS[client]).filter(
    ([field, rule]) => rule !== "kept" || /^\w+$/.test(field),
  );
  const rows = told.map(
    ([field, rule]) => `| \`${field}\` | ${upstreams.map((name) => describeField(rule, name)).join(" | ")} |`,
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

/** The tables in the document, which are found by their heads, are replaced by those of the code. */
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
