// What a tool reads from its own files alone, or from them before the environment. A run gets files of its own that
// say what is needed; the user's are never changed.

import { readFileSync } from "node:fs";
import type { Environment } from "../../config/expand.ts";

export interface Setting {
  readonly env: Readonly<Record<string, string>>;
  /** Come before the user's own. */
  readonly args: readonly string[];
}

/** A tool's setting in the environment that it starts from. */
export interface Prepared extends Setting {
  /** Variables that it must not see. */
  readonly unset: readonly string[];
}

/** What stands in the way. */
interface Obstacle {
  readonly path: string;
  /** What the file has to say, or to leave to the environment. */
  readonly content: object;
  /** For people, after the tool's title. */
  readonly words: string;
}

export interface Overlay {
  /** Null: the environment is enough. */
  find(env: Environment, setting: Setting): Obstacle | null;
  /** The files for one run, in an empty folder, and what leads the tool to them. */
  make(env: Environment, setting: Setting, folder: string): Setting;
}

/** As the tools read their settings: JSON with comments. What cannot be read is for the tool to complain about. */
export function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}
