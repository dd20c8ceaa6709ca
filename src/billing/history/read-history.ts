// Where agents keep their logs on this machine, and how they are read: nothing is written, and nothing leaves the machine.

import { homedir } from "node:os";
import { join } from "node:path";
import { getErrorMessage } from "../../lib/errors.ts";
import { openClaude } from "./claude.ts";
import { openCodex } from "./codex.ts";
import { History, LOGGING_TOOLS, type LoggingTool, type UsageOf } from "./entry.ts";
import { listFiles, type LogReader, type Place, type LogListener } from "./files.ts";
import { openGemini } from "./gemini.ts";
import { openOpencode } from "./opencode.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Source {
  readonly places: (env: Environment, home: string) => readonly Place[];
  readonly open: (history: History, listener: LogListener) => LogReader;
  /** What its logs do not have, for people. */
  readonly lacks: string;
}

const SOURCES: Readonly<Record<LoggingTool, Source>> = {
  "claude-code": {
    places: (env, home) => {
      const usual = [join(home, ".claude"), join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "claude")];
      const folders = env["CLAUDE_CONFIG_DIR"] ? [env["CLAUDE_CONFIG_DIR"]] : usual;
      return folders.map((folder) => ({ folder: join(folder, "projects"), pattern: /\.jsonl$/ }));
    },
    open: openClaude,
    lacks:
      "Claude Code lists no summaries, titles and stopped answers. Newer versions count them in the session's total",
  },
  codex: {
    places: (env, home) => {
      const folder = env["CODEX_HOME"] || join(home, ".codex");
      const names = ["sessions", "archived_sessions"];
      return names.map((name) => ({ folder: join(folder, name), pattern: /\.jsonl$/ }));
    },
    open: openCodex,
    lacks: "Codex logs no service tier, no titles, no fees of searches, and no stopped answers",
  },
  "gemini-cli": {
    places: (env, home) => {
      const folder = join(env["GEMINI_CLI_HOME"] || home, ".gemini", "tmp");
      return [{ folder, pattern: /\/chats\/.*\.jsonl?$/ }];
    },
    open: openGemini,
    lacks: "Gemini CLI logs no routing, no summaries, no fees of searches, and no stopped answers",
  },
  opencode: {
    places: (env, home) => {
      const folder = join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "opencode");
      return [
        { folder: join(folder, "storage", "message"), pattern: /\.json$/ },
        { folder, pattern: /^opencode.*\.db$/, depth: 0 },
      ];
    },
    open: openOpencode,
    lacks: "opencode logs no service tier, no lifetime of cache writes, no titles, and no stopped answers",
  },
};

/** For people: what the logs of a tool do not have. */
export function describeLack(tool: LoggingTool): string {
  return SOURCES[tool].lacks;
}

export interface HistoryQuery {
  readonly tools?: readonly LoggingTool[];
  readonly env: Environment;
  readonly usageOf: UsageOf;
  readonly onProgress?: (done: number, all: number) => void;
}

export function readHistory({ tools = LOGGING_TOOLS, env, usageOf, onProgress }: HistoryQuery): History {
  const history = new History(usageOf);
  const home = env["HOME"] || homedir();
  const onLink = (path: string): void => void history.unread.push(`${path} is a link`);
  const found = tools.map((tool) => ({
    tool,
    files: SOURCES[tool].places(env, home).flatMap((place) => listFiles(place, onLink)),
  }));
  const all = found.flatMap(({ files }) => files).reduce((sum, { size }) => sum + size, 0);
  let done = 0;
  const listener = {
    onTooLong: () => void (history.tooLong += 1),
    onBytes: (count: number) => onProgress?.((done += count), all),
  };
  for (const { tool, files } of found) {
    const reader = SOURCES[tool].open(history, listener);
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
