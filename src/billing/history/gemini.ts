// Gemini CLI's chats: a file for each session and each subagent, which a resumed session repeats at its end. Older versions
// wrote one JSON document. Its router, its summaries and what failed are not in them.

import { basename, dirname } from "node:path";
import { getField, getList, isObject, parseJson } from "../../lib/json/json.ts";
import { JsonPicker } from "../../lib/json/json-pick-stream.ts";
import { readPlain } from "../../lib/files/own-file.ts";
import { type History, readText, readTime } from "./entry.ts";
import { type LogReader, readChunks, type LogListener, scanLines } from "./files.ts";

const NEEDLES = ['"sessionId"', '"tokens":{'].map((needle) => Buffer.from(needle));
const MESSAGE = { id: true, type: true, timestamp: true, model: true, tokens: true } as const;
const SHAPE = { sessionId: true, messages: [MESSAGE] } as const;

export function openGemini(history: History, listener: LogListener): LogReader {
  return {
    read({ path }) {
      const chat = new Chat(history, path);
      if (path.endsWith(".json")) readDocument(path, chat, listener);
      else
        scanLines(path, NEEDLES, listener, (line, whole) => {
          const row = parseJson(line.toString());
          if (isObject(row)) chat.learn(row);
          else if (whole) history.damaged += 1;
        });
    },
  };
}

function readDocument(path: string, chat: Chat, listener: LogListener): void {
  const picker = new JsonPicker(SHAPE, (document) => chat.learn(document));
  for (const chunk of readChunks(path)) {
    listener.onBytes(chunk.length);
    picker.see(chunk);
  }
  if (!picker.ended) chat.learn(picker.peek());
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
    const [id, time] = [readText(getField(message, "id")), readTime(getField(message, "timestamp"))];
    if (id === "" || time === null) {
      this.#history.damaged += 1;
      return;
    }
    this.#history.add(`gemini ${id}`, {
      tool: "gemini-cli",
      requestId: null,
      session: this.#parent ?? this.#session,
      agent: this.#parent === null ? "" : this.#session,
      project: this.#project,
      time,
      model: readText(getField(message, "model")),
      provider: null,
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

/** Newer versions note the project's folder. Older ones name theirs by its hash. */
function readRoot(folder: string): string {
  try {
    return readText(readPlain(`${folder}/.project_root`).trim());
  } catch {
    return "";
  }
}
