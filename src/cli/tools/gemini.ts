// Only a settings file makes Gemini CLI use an API key. If the user's own file does not, a run gets a temporary home:
// links to everything in the user's home, and a settings file that selects the API key. (A variable can name other
// system-wide settings, but they must belong to root.)

import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { getErrorMessage } from "../../lib/errors.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { printNote } from "../terminal/terminal.ts";
import { homeOf, type Overlay, readSettings, rootOf, type ToolEnvironment, type ToolRow } from "./tool.ts";

const API_KEY = "gemini-api-key";
const FOLDER = ".gemini";
const FILE = "settings.json";
const SESSIONS = "tmp";

function findOwnFolder(env: Environment): string {
  return join(env["GEMINI_CLI_HOME"] || homeOf(env), FOLDER);
}

const overlay: Overlay = {
  find(env) {
    const path = join(findOwnFolder(env), FILE);
    const auth = getField(getField(readSettings(path), "security"), "auth");
    if (getField(auth, "selectedType") === API_KEY) return null;
    const content = { security: { auth: { selectedType: API_KEY } } };
    return { path, content, advice: `also needs this in ${path}: ${JSON.stringify(content)}` };
  },
  write(env, _, home) {
    const own = findOwnFolder(env);
    const folder = join(home, FOLDER);
    mkdirSync(folder);
    // It has the sessions. The first run of all would otherwise keep them in the temporary home.
    mkdirSync(join(own, SESSIONS), { recursive: true });
    for (const name of readdirSync(own)) {
      if (name !== FILE) link(join(own, name), join(folder, name));
    }
    const settings = addApiKey(readSettings(join(own, FILE)));
    createFile(join(folder, FILE), JSON.stringify(settings, null, 2));
    return { env: { GEMINI_CLI_HOME: home }, args: [] };
  },
  // What it writes for the first time, or in place of a link: its memory, its trusted folders.
  keep(env, home) {
    const [own, folder] = [findOwnFolder(env), join(home, FOLDER)];
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.name === FILE || entry.isSymbolicLink()) continue;
      try {
        cpSync(join(folder, entry.name), join(own, entry.name), { recursive: true, dereference: true });
      } catch (error) {
        printNote(`${entry.name} of this run could not be kept in ${own}: ${getErrorMessage(error)}`);
      }
    }
  },
};

/** On Windows not every user may link files. A junction of folders works for all. */
function link(from: string, to: string): void {
  if (process.platform === "win32" && statSync(from).isFile()) cpSync(from, to);
  else symlinkSync(from, to, "junction");
}

function addApiKey(settings: unknown): Record<string, unknown> {
  const own = isObject(settings) ? settings : {};
  const security = getField(own, "security");
  const auth = getField(security, "auth");
  return {
    ...own,
    security: {
      ...(isObject(security) && security),
      auth: { ...(isObject(auth) && auth), selectedType: API_KEY },
    },
  };
}

const NO_SETTING: ToolEnvironment = { env: {}, args: [], unset: [] };

export const gemini: ToolRow = {
  title: "Gemini CLI",
  program: { name: "gemini", install: "npm install -g @google/gemini-cli" },
  overlay: () => overlay,
  describeRun: (env) =>
    overlay.find(env, NO_SETTING) === null
      ? null
      : "The settings of Gemini CLI select no API key, so this run has a copy of them that does: what you change by /settings, /theme or `gemini mcp` is lost with it.",
  sideEffect:
    "GEMINI_CLI_TRUST_WORKSPACE makes Gemini CLI trust every folder that it is started in from this shell.",
  // Whatever the flag says, it asks for others in the background.
  ownModels: {
    pattern: /gemini/i,
    shown: "gemini-…",
    variable: "GEMINI_MODEL",
    asked: { main: ["gemini-3-pro-preview"], small: "gemini-3-flash-preview" },
    flags: ["--model", "-m"],
    isFixed: true,
  },
  headers: { name: "GEMINI_CLI_CUSTOM_HEADERS", separator: "," },
  connect: (connection) => ({
    env: {
      GOOGLE_GEMINI_BASE_URL: rootOf(connection),
      GEMINI_API_KEY: connection.secret,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
    args: [],
  }),
};
