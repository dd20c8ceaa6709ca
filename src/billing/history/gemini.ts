// Gemini CLI's chats. A resumed session repeats its rows at the end of the file.
// Older versions wrote one JSON document.

import { basename, dirname } from "node:path";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField, getList, isObject } from "../../lib/json/json.ts";
import { parseCut } from "../../lib/json/cut-json.ts";
import { type History, readText, scanRows } from "./entry.ts";

const WORDS = ['"sessionId"', '"tokens"'];

export function readGemini(path: string, history: History): void {
  const folder = dirname(path);
  const isMain = basename(folder) === "chats";
  const parent = isMain ? null : basename(folder);
  const project = readRoot(dirname(isMain ? folder : dirname(folder)));
  let session = "";
  const learnMessage = (message: unknown): void => {
    const tokens = getField(message, "tokens");
    if (getField(message, "type") !== "gemini" || !isObject(tokens)) return;
    const id = readText(getField(message, "id"));
    history.add(id === "" ? "" : `gemini ${id}`, {
      tool: "gemini-cli",
      session: parent ?? session,
      ...(parent !== null && { agent: session }),
      project,
      time: getField(message, "timestamp"),
      model: readText(getField(message, "model")),
      words: "google",
      reported: {
        promptTokenCount: tokens["input"],
        cachedContentTokenCount: tokens["cached"],
        candidatesTokenCount: tokens["output"],
        thoughtsTokenCount: tokens["thoughts"],
        toolUsePromptTokenCount: tokens["tool"],
        totalTokenCount: tokens["total"],
      },
    });
  };
  const learn = (row: unknown): void => {
    session ||= readText(getField(row, "sessionId"));
    const messages = getList(getField(row, "messages"));
    const more = getList(getField(getField(row, "$set"), "messages"));
    for (const message of [row, ...messages, ...more]) learnMessage(message);
  };
  // Gemini CLI may still be writing the end.
  if (path.endsWith(".json")) learn(parseCut(readPlain(path)).value);
  else scanRows(path, WORDS, history, learn);
}

/** Older versions name folders by a hash,
 *  and write no file `.project_root`. */
function readRoot(folder: string): string {
  try {
    return readText(readPlain(`${folder}/.project_root`).trim());
  } catch {
    return "";
  }
}
