// Reads Claude Code's transcripts.
// A row has one block of an answer and the usage so far.

import { getField, isObject } from "../../lib/json/json.ts";
import { type History, readText, type Row, scanRows } from "./entry.ts";

/** The model in rows that Claude Code wrote itself. */
const NO_MODEL = "<synthetic>";

export function readClaude(path: string, history: History): void {
  scanRows(path, ['"usage"'], history, (row) => addAnswer(row, history));
}

function addAnswer(row: Row, history: History): void {
  const message = getField(row, "message");
  const [usage, model] = [getField(message, "usage"), readText(getField(message, "model"))];
  if (row["type"] !== "assistant" || !isObject(usage) || model === NO_MODEL) return;
  const [requestId, agent] = [readText(row["requestId"]), readText(row["agentId"])];
  const id = readText(getField(message, "id")) + requestId || readText(row["uuid"]);
  history.add(`claude ${id}`, {
    tool: "claude-code",
    ...(requestId !== "" && { requestId }),
    session: readText(row["requestSessionId"]) || readText(row["sessionId"]),
    ...(agent !== "" && { agent }),
    project: readText(row["cwd"]),
    time: row["timestamp"],
    model,
    words: "anthropic",
    reported: usage,
    // Without a reason to stop, the usage is not complete.
    isCut: (getField(message, "stop_reason") ?? null) === null,
  });
}
