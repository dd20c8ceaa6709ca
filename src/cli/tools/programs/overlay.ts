// Some settings work only in a tool's own files, or override the environment there. A run then passes temporary files
// with the needed settings. The user's files never change.

import { homedir } from "node:os";
import { getField } from "../../../lib/json/json.ts";
import { readPlain } from "../../../lib/files/own-file.ts";
import type { Environment } from "../../../config/yaml/expand.ts";

export interface ToolSettings {
  readonly env: Readonly<Record<string, string>>;
  /** More variables, where the user has set none. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Placed before the user's own arguments. */
  readonly args: readonly string[];
  /** The command that prints the tool's status line; absent: the tool keeps its own. */
  readonly statusline?: string;
}

/** A tool's settings relative to the environment that it starts in. */
export interface ToolEnvironment extends ToolSettings {
  /** Variables that the tool must not see. */
  readonly unset: readonly string[];
}

/** A file of the user that prevents the tool from using the gateway. */
interface Conflict {
  readonly path: string;
  /** What the file must contain. */
  readonly content: object;
  /** The rest of a sentence that begins with the tool's title. */
  readonly advice: string;
}

export interface Overlay {
  /** Null when the environment is enough. */
  find(env: Environment, setting: ToolEnvironment): Conflict | null;
  /** Writes the files for one run into an empty folder. Returns the settings that make the tool read them. Absent: `run` does
   *  not start the tool. */
  write?(env: Environment, setting: ToolEnvironment, folder: string): ToolSettings;
  /** Called after the run: brings back what the tool has written there for later runs. */
  keep?(env: Environment, folder: string): void;
}

export function homeOf(env: Environment): string {
  return env["HOME"] || homedir();
}

/** The text at this place of the first settings file that has one; null: none has. */
export function findText(names: readonly string[], files: readonly string[]): string | null {
  const texts = files.map((file) => names.reduce<unknown>(getField, readSettings(file)));
  const isText = (text: unknown): text is string => typeof text === "string" && text !== "";
  return texts.find(isText) ?? null;
}

/** Reads JSON with comments, as the tools do. Null for an unreadable file, which the tool itself reports. */
export function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readPlain(path));
  } catch {
    return null;
  }
}
