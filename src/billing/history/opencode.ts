// opencode's messages: a database, or files. A fork copies messages under new ids.

import { constants, Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { readPlain } from "../../lib/files/own-file.ts";
import { getCount, getField, getText, isObject, parseJson } from "../../lib/json/json.ts";
import { type History, readText, type Row } from "./entry.ts";

/** Messages are short: their text is stored elsewhere. */
const MAX_MESSAGE_BYTES = 1 << 20;

export function readOpencode(path: string, history: History, size: number): void {
  if (path.endsWith(".db")) readDatabase(path, history);
  else if (size > MAX_MESSAGE_BYTES) history.tooLong += 1;
  else learnText(readPlain(path), null, history);
}

function readDatabase(path: string, history: History): void {
  // Without `immutable`, SQLite creates files next to a database.
  const mode = existsSync(`${path}-wal`) ? "ro" : "ro&immutable=1";
  const uri = `file:${encodeURI(path).replaceAll("?", "%3F").replaceAll("#", "%23")}?mode=${mode}`;
  using database = new Database(uri, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
  database.run("PRAGMA trusted_schema = OFF");
  const isShort = `length(data) < ${MAX_MESSAGE_BYTES} AND data LIKE '%"tokens"%'`;
  for (const row of database.query(`SELECT session_id, data FROM message WHERE ${isShort}`).iterate())
    learnText(getText(getField(row, "data")), readText(getField(row, "session_id")), history);
}

function learnText(text: string, session: string | null, history: History): void {
  const message = parseJson(text);
  if (message === undefined) history.damaged += 1;
  const tokens = getField(message, "tokens");
  if (getField(message, "role") !== "assistant" || !isObject(tokens)) return;
  const [model, provider] = ["modelID", "providerID"].map((name) => readText(getField(message, name)));
  const [created, completed] = ["created", "completed"].map((name) =>
    getField(getField(message, "time"), name),
  );
  const counted = describeUsage(tokens, provider ?? "");
  // The message stopped or failed before any count.
  if (counted === null) return;
  // A copy has another id, but the same times and counts.
  history.add(`opencode ${JSON.stringify([created, completed, model, tokens])}`, {
    tool: "opencode",
    session: session ?? readText(getField(message, "sessionID")),
    project: readText(getField(getField(message, "path"), "cwd")),
    time: created,
    model: model ?? "",
    provider: provider ?? "",
    isCut: completed === undefined,
    ...counted,
  });
}

/** Usage as the provider reported it. Null: no counts. */
function describeUsage(tokens: Row, provider: string) {
  const [read, written] = ["read", "write"].map((name) => getField(tokens["cache"], name) ?? 0);
  const { input = 0, output = 0, reasoning = 0 } = tokens;
  if ([read, written, input, output, reasoning].every((count) => count === 0)) return null;
  const made = sum(output, reasoning);
  const words = provider.includes("anthropic") ? ("anthropic" as const) : ("openai" as const);
  const inside = { cache_read_input_tokens: read, cache_creation_input_tokens: written };
  return {
    words,
    reported: {
      ...(words === "anthropic"
        ? inside
        : { input_tokens_details: { cached_tokens: read, cache_write_tokens: written } }),
      input_tokens: words === "anthropic" ? input : sum(input, read, written),
      output_tokens: made,
      output_tokens_details: { thinking_tokens: reasoning, reasoning_tokens: reasoning },
    },
  };
}

/** Returns an unreadable count as it is: it becomes a fault later. */
function sum(...counts: readonly unknown[]): unknown {
  const bad = counts.find((count) => getCount(count) === undefined);
  return bad === undefined ? counts.reduce<number>((total, count) => total + (getCount(count) ?? 0), 0) : bad;
}
