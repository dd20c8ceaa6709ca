// Gemini CLI's chats: a file for each session and each subagent. A resumed session repeats its rows
// at the end. Older versions wrote one JSON document. Not logged: router, summaries and failures.

import { basename, dirname } from "node:path";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField, getList, isObject } from "../../lib/json/json.ts";
import { parseCut } from "../../lib/json/cut-json.ts";
import { type History, readText, scanRows } from "./entry.ts";

const WORDS = ['"sessionId"', '"tokens"'];

export function readGemini(path: string, history: History): void {
  const chat = new Chat(history, path);
  // Gemini CLI may be writing the file.
  if (path.endsWith(".json")) chat.learn(parseCut(readPlain(path)).value);
  else scanRows(path, WORDS, history, (row) => chat.learn(row));
}

class Chat {
  readonly #history: History;
  readonly #project: string;
  /** The session whose subagent wrote the file. */
  readonly #parent: string | null;
  #session = "";

  constructor(history: History, path: string) {
    this.#history = history;
    const folder = dirname(path);
    const isMain = basename(folder) === "chats";
    this.#parent = isMain ? null : basename(folder);
    this.#project = readRoot(dirname(isMain ? folder : dirname(folder)));
  }

  learn(row: unknown): void {
    this.#session ||= readText(getField(row, "sessionId"));
    const messages = [
      ...getList(getField(row, "messages")),
      ...getList(getField(getField(row, "$set"), "messages")),
    ];
    for (const message of [row, ...messages]) this.#learnMessage(message);
  }

  #learnMessage(message: unknown): void {
    const tokens = getField(message, "tokens");
    if (getField(message, "type") !== "gemini" || !isObject(tokens)) return;
    const id = readText(getField(message, "id"));
    this.#history.add(id === "" ? "" : `gemini ${id}`, {
      tool: "gemini-cli",
      session: this.#parent ?? this.#session,
      ...(this.#parent !== null && { agent: this.#session }),
      project: this.#project,
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
  }
}

/** Newer versions note the project's folder. Older ones name folders by a hash. */
function readRoot(folder: string): string {
  try {
    return readText(readPlain(`${folder}/.project_root`).trim());
  } catch {
    return "";
  }
}
