// Reads agents' logs. Nothing is written, and nothing leaves the machine.

import { Glob } from "bun";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { codeOf, messageOf } from "../../lib/errors.ts";
import { readClaude } from "./claude.ts";
import { readCodex } from "./codex.ts";
import { History, LOGGING_TOOLS, type LoggingTool, type UsageOf } from "./entry.ts";
import { readGemini } from "./gemini.ts";
import { readOpencode } from "./opencode.ts";

type Environment = Readonly<Record<string, string | undefined>>;

interface Source {
  /** The folders may be links. Links below them are ignored. */
  readonly folders: (env: Environment, home: string) => readonly string[];
  readonly patterns: readonly string[];
  readonly read: (path: string, history: History, size: number) => void;
  readonly lacks: string;
}

const SOURCES: Readonly<Record<LoggingTool, Source>> = {
  "claude-code": {
    folders: (env, home) => {
      const usual = [join(home, ".claude"), join(env["XDG_CONFIG_HOME"] || join(home, ".config"), "claude")];
      return (env["CLAUDE_CONFIG_DIR"] ? [env["CLAUDE_CONFIG_DIR"]] : usual).map((each) =>
        join(each, "projects"),
      );
    },
    patterns: ["**/*.jsonl"],
    read: readClaude,
    lacks: "Claude Code logs no summaries, titles or stopped answers",
  },
  codex: {
    folders: (env, home) => [env["CODEX_HOME"] || join(home, ".codex")],
    patterns: ["{sessions,archived_sessions}/**/*.jsonl"],
    read: readCodex,
    lacks: "Codex logs no service tier, no titles, no fees of searches, and no stopped answers",
  },
  "gemini-cli": {
    folders: (env, home) => [join(env["GEMINI_CLI_HOME"] || home, ".gemini", "tmp")],
    patterns: ["*/chats/**/*.{json,jsonl}"],
    read: readGemini,
    lacks: "Gemini CLI logs no routing, no summaries, no fees of searches, and no stopped answers",
  },
  opencode: {
    folders: (env, home) => [join(env["XDG_DATA_HOME"] || join(home, ".local", "share"), "opencode")],
    patterns: ["storage/message/**/*.json", "opencode*.db"],
    read: readOpencode,
    lacks: "opencode logs no service tier, no lifetime of cache writes, no titles, and no stopped answers",
  },
};

export function describeLack(tool: string): string {
  return LOGGING_TOOLS.flatMap((each) => (each === tool ? SOURCES[each].lacks : [])).join("");
}

export interface HistoryQuery {
  readonly tools?: readonly LoggingTool[];
  readonly env: Environment;
  readonly usageOf: UsageOf;
}

export function readHistory({ tools = LOGGING_TOOLS, env, usageOf }: HistoryQuery): History {
  const history = new History(usageOf);
  const home = env["HOME"] || homedir();
  const found = tools.map((tool) => {
    const { folders, patterns } = SOURCES[tool];
    const files = folders(env, home).flatMap((folder) =>
      patterns.flatMap((each) => list(folder, each, history)),
    );
    // A session is read before its copy, which is younger.
    return { tool, files: files.sort((a, b) => a.born - b.born || (a.path < b.path ? -1 : 1)) };
  });
  for (const { tool, files } of found) {
    for (const { path, size } of files) {
      try {
        SOURCES[tool].read(path, history, size);
      } catch (error) {
        history.unread.push(`${path}: ${messageOf(error)}`);
      }
    }
  }
  return history;
}

function list(folder: string, pattern: string, { unread }: History) {
  const files = [];
  try {
    for (const name of new Glob(pattern).scanSync({ cwd: folder, dot: true })) {
      const path = join(folder, name);
      const found = statSync(path, { throwIfNoEntry: false });
      if (found !== undefined) files.push({ path, size: found.size, born: found.birthtimeMs });
    }
  } catch (error) {
    if (codeOf(error) !== "ENOENT") unread.push(`${folder}: ${messageOf(error)}`);
  }
  return files;
}
