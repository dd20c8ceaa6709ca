// Gemini CLI uses an API key only if its settings file says so. If the user's file does not,
// a run gets a temporary home with a changed copy of it
// and links to the other files.

import { cpSync, mkdirSync, readdirSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../config/yaml/expand.ts";
import { messageOf } from "../../lib/errors.ts";
import { createFile } from "../../lib/files/own-file.ts";
import { getField, isObject } from "../../lib/json/json.ts";
import { printNote } from "../terminal/terminal.ts";
import { folderOf, readSettings, rootOf, type ToolRow } from "./tool.ts";

const FOLDER = ".gemini";
const FILE = "settings.json";
const SESSIONS = "tmp";
const WANTED = { security: { auth: { selectedType: "gemini-api-key" } } };

function findOwnFolder(env: Environment): string {
  return join(folderOf(env, "GEMINI_CLI_HOME", ""), FOLDER);
}

function usesKey(env: Environment): boolean {
  const auth = getField(getField(readSettings(join(findOwnFolder(env), FILE)), "security"), "auth");
  return getField(auth, "selectedType") === WANTED.security.auth.selectedType;
}

/** On Windows, all users may link folders (junctions), but not files. */
function link(from: string, to: string): void {
  if (process.platform === "win32" && statSync(from).isFile()) cpSync(from, to);
  else symlinkSync(from, to, "junction");
}

function merge(own: unknown, more: object): object {
  const changed = Object.entries(more).map(([name, value]: [string, unknown]) => [
    name,
    isObject(value) ? merge(getField(own, name), value) : value,
  ]);
  return { ...(isObject(own) && own), ...Object.fromEntries(changed) };
}

export const gemini: ToolRow = {
  title: "Gemini CLI",
  program: { name: "gemini", install: "npm install -g @google/gemini-cli" },
  misleading: ["GEMINI_CLI_CUSTOM_HEADERS", "GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI"],
  headers: { name: "GEMINI_CLI_CUSTOM_HEADERS", separator: "," },
  // Besides its main model, Gemini CLI always asks for others.
  ownModels: {
    pattern: /gemini/i,
    variable: "GEMINI_MODEL",
    asked: { main: ["gemini-3-pro-preview"], small: "gemini-3-flash-preview" },
    flags: ["--model", "-m"],
    isFixed: true,
  },
  findLogin: (env) =>
    isObject(readSettings(join(findOwnFolder(env), "oauth_creds.json"))) ? "Google" : null,
  describe: (_, env, words) => [
    words === null
      ? "With GEMINI_CLI_TRUST_WORKSPACE, Gemini CLI trusts every folder that it is started in."
      : !usesKey(env) &&
        "Your settings of Gemini CLI select no API key. This run has a copy: what you change in it is lost.",
  ],
  connect: (connection) => ({
    env: {
      GOOGLE_GEMINI_BASE_URL: rootOf(connection),
      GEMINI_API_KEY: connection.secret,
      GEMINI_CLI_TRUST_WORKSPACE: "true",
    },
    args: [],
  }),
  file: (_, _setting, env) => {
    if (usesKey(env)) return null;
    const path = join(findOwnFolder(env), FILE);
    return {
      path,
      content: WANTED,
      advice: `also needs this in ${path}: ${JSON.stringify(WANTED)}`,
    };
  },
  overlay: (_, _setting, env, home) => {
    const [own, folder] = [findOwnFolder(env), join(home, FOLDER)];
    mkdirSync(folder);
    mkdirSync(join(own, SESSIONS), { recursive: true });
    for (const name of readdirSync(own)) if (name !== FILE) link(join(own, name), join(folder, name));
    const settings = merge(readSettings(join(own, FILE)), WANTED);
    createFile(join(folder, FILE), JSON.stringify(settings, null, 2));
    return { env: { GEMINI_CLI_HOME: home }, args: [] };
  },
  // Keeps new files of the tool: memory, trusted folders.
  keep: (env, home) => {
    const [own, folder] = [findOwnFolder(env), join(home, FOLDER)];
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.name === FILE || entry.isSymbolicLink()) continue;
      try {
        cpSync(join(folder, entry.name), join(own, entry.name), { recursive: true, dereference: true });
      } catch (error) {
        printNote(`${entry.name} of this run could not be kept in ${own}: ${messageOf(error)}`);
      }
    }
  },
};
