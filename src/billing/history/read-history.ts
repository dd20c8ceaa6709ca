// Where agents keep their logs on this machine, and how they are read: nothing is written, and nothing leaves the machine.

import { homedir } from "node:os";
import { join } from "node:path";
import { getErrorMessage } from "../../lib/errors.ts";
import { openClaude } from "./claude.ts";
import { openCodex } from "./codex.ts";
import { History, LOGGING_TOOLS, type LoggingTool, type UsageOf } from "./entry.ts";
import { listFiles, type LogReader, type Place } from "./files.ts";
import { openGemini } from "./gemini.ts";
import { openOpencode } from "./opencode.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Source {
  readonly places: (env: Environment, home: string) => readonly Place[];
  readonly open: (history: History) => LogReader;
  /** What its logs do not have, for people. */
  readonly lacks: string;
}

const SOURCES: Readonly<Record<LoggingTool, Source>> = {
  "claude-code": {
    places: (env, home) => {
      const usual = [join(home, ".claude"), join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "claude")];
      const folders = env["CLAUDE_CONFIG_DIR"] ? [env["CLAUDE_CONFIG_DIR"]] : usual;
      return folders.map((folder) => ({ folder: join(folder, "projects"), pattern: "**/*.jsonl" }));
    },
    open: openClaude,
    lacks:
      "Claude Code lists no summaries, titles and stopped answers. Newer versions count them in the session's total",
  },
  codex: {
    places: (env, home) => {
      const folder = env["CODEX_HOME"] || join(home, ".codex");
      return [{ folder, pattern: "{sessions,archived_sessions}/**/*.jsonl" }];
    },
    open: openCodex,
    lacks: "Codex logs no service tier, no titles, no fees of searches, and no stopped answers",
  },
  "gemini-cli": {
    places: (env, home) => {
      const folder = join(env["GEMINI_CLI_HOME"] || home, ".gemini", "tmp");
      return [{ folder, pattern: "*/chats/**/*.{json,jsonl}" }];
    },
    open: openGemini,
    lacks: "Gemini CLI logs no routing, no summaries, no fees of searches, and no stopped answers",
  },
  opencode: {
    places: (env, home) => {
      const folder = join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "opencode");
      return ["storage/message/**/*.json", "opencode*.db"].map((pattern) => ({ folder, pattern }));
    },
    open: openOpencode,
    lacks: "opencode logs no service tier, no lifetime of cache writes, no titles, and no stopped answers",
  },
};

/** For people: what the logs of a tool do not have. */
export function describeLack(tool: string): string {
  return LOGGING_TOOLS.flatMap((each) => (each === tool ? SOURCES[each].lacks : [])).join("");
}

export interface HistoryQuery {
  readonly tools?: readonly LoggingTool[];
  readonly env: Environment;
  readonly usageOf: UsageOf;
  readonly onProgress?: (done: number, all: number) => void;
}

export function readHistory({ tools = LOGGING_TOOLS, env, usageOf, onProgress }: HistoryQuery): History {
  const home = env["HOME"] || homedir();
  let [done, all] = [0, 0];
  const history = new History(usageOf, (count) => onProgress?.((done += count), all));
  const found = tools.map((tool) => {
    return { tool, files: listFiles(SOURCES[tool].places(env, home), history.unread) };
  });
  for (const { size } of found.flatMap(({ files }) => files)) all += size;
  for (const { tool, files } of found) {
    const reader = SOURCES[tool].open(history);
    for (const file of files) {
      try {
        reader.read(file);
      } catch (error) {
        // It was removed, or is not for us, or is damaged.
        history.unread.push(`${file.path}: ${getErrorMessage(error)}`);
      }
    }
    reader.end?.();
  }
  return history;
}
