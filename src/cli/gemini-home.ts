// Gemini CLI reads from a file alone that it is to use an API key. Where the user's own file does not say so, a run
// gets a home of its own: links to everything in the user's, and a settings file that says it. Nothing of the
// user's is changed. (Its system-wide settings, which have a variable, must belong to root.)

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config/expand.ts";
import { fieldOf, isObject } from "../lib/json.ts";

const API_KEY = "gemini-api-key";
const FOLDER = ".gemini";
const SETTINGS = "settings.json";

/** What the file has to hold, besides what it holds. */
export const GEMINI_SETTINGS = { security: { auth: { selectedType: API_KEY } } } as const;

function findGeminiFolder(env: Environment): string {
  return join(env["GEMINI_CLI_HOME"] || env["HOME"] || homedir(), FOLDER);
}

export function locateGeminiSettings(env: Environment): string {
  return join(findGeminiFolder(env), SETTINGS);
}

export function isGeminiReady(env: Environment): boolean {
  const security = fieldOf(readSettings(locateGeminiSettings(env)), "security");
  return fieldOf(fieldOf(security, "auth"), "selectedType") === API_KEY;
}

/** A file that cannot be read is for Gemini CLI to complain about. */
function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

export interface GeminiHome {
  /** For GEMINI_CLI_HOME. */
  readonly path: string;
  remove(): void;
}

export function makeGeminiHome(env: Environment): GeminiHome {
  const own = findGeminiFolder(env);
  const path = mkdtempSync(join(tmpdir(), "gateway-gemini-"));
  const folder = join(path, FOLDER);
  mkdirSync(folder);
  for (const name of existsSync(own) ? readdirSync(own) : []) {
    if (name !== SETTINGS) link(join(own, name), join(folder, name));
  }
  const settings = addApiKey(readSettings(join(own, SETTINGS)));
  writeFileSync(join(folder, SETTINGS), JSON.stringify(settings, null, 2), { mode: 0o600 });
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Files cannot be linked by everybody on Windows; a junction of folders can. */
function link(from: string, to: string): void {
  if (process.platform === "win32" && statSync(from).isFile()) cpSync(from, to);
  else symlinkSync(from, to, "junction");
}

function addApiKey(settings: unknown): Record<string, unknown> {
  const rest = isObject(settings) ? settings : {};
  const security = fieldOf(rest, "security");
  const auth = fieldOf(security, "auth");
  return {
    ...rest,
    security: {
      ...(isObject(security) && security),
      auth: { ...(isObject(auth) && auth), selectedType: API_KEY },
    },
  };
}
