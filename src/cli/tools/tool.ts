// What a tool is: a row with its program, its variables and arguments for a connection, and the
// files that it reads. The user's own files never change: a run gets temporary ones.

import { homedir } from "node:os";
import { join } from "node:path";
import { MAKERS_OF } from "../../billing/prices/sellers.ts";
import type { Platform } from "../../config/schema.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { readPathPrefix } from "../../dialects/platforms.ts";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField } from "../../lib/json/json.ts";

export type CacheLifetime = "5m" | "1h";

/** Null: not known. */
export interface ModelLimits {
  /** The tokens of its context window. */
  readonly context: number | null;
  /** The tokens of its longest answer. */
  readonly output: number | null;
}

/** What models of another maker than the tool's can do. */
export interface Foreign {
  readonly hasEffort: boolean;
  readonly canSearch: boolean;
  /** What the config says of the models that the tool asks for by itself. */
  readonly main?: string | null;
  readonly small?: string | null;
}

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** The models that the key can call, or else those that the config names. */
  readonly models: readonly string[];
  readonly limits?: ReadonlyMap<string, ModelLimits>;
  /** Some requests of the group are converted. */
  readonly converts?: boolean;
  /** Requests are converted for models that are not the tool's. */
  readonly foreign?: Foreign;
  /** Chat Completions reach every model of the group, and nothing else reaches some. */
  readonly speaksChat?: boolean;
  /** All channels of the group are at the own address of the platform's maker. */
  readonly isDirect?: boolean;
  /** Why the gateway would refuse the searches of such a group; null: it would not. */
  readonly searchRefusal?: string | null;
  /** The model that the user's own settings of the tool name; null: none. */
  readonly ownModel?: string | null;
  /** The newest of the tool's models for small requests; null: none, or not to be named. */
  readonly smallModel?: string | null;
  /** A channel of the group offers a WebSocket. */
  readonly websocket?: boolean;
  /** The lifetime of prompt caches that the tool should ask for; null: its own. */
  readonly cache?: CacheLifetime | null;
  /** How long the gateway waits; absent: the tool's own limits are right. */
  readonly patienceMs?: number;
  /** Each request becomes a span of a trace. */
  readonly hasTraces?: boolean;
  /** The channel passes on the tool's own login: the secret goes next to it. */
  readonly usesLogin?: boolean;
  /** What the tool sends as `x-gateway-label`, in ASCII; null: nothing. */
  readonly label: string | null;
  /** For a tool that names neither its session nor itself. */
  readonly run?: { readonly session: string; readonly tool: string | null };
}

/** A variable with header fields that a tool adds to each request. */
export interface HeaderVariable {
  readonly name: string;
  readonly separator: string;
}

/** The official SDKs read these. */
export const ANTHROPIC_HEADERS: HeaderVariable = { name: "ANTHROPIC_CUSTOM_HEADERS", separator: "\n" };
export const OPENAI_HEADERS: HeaderVariable = { name: "OPENAI_CUSTOM_HEADERS", separator: "\n" };

/** None of them goes upstream. */
export function listHeaders({ label, run, secret, usesLogin = false }: Connection): Record<string, string> {
  return {
    ...(usesLogin && { "x-gateway-key": secret }),
    ...(run !== undefined && { "x-gateway-session": run.session }),
    ...(typeof run?.tool === "string" && { "x-gateway-tool": run.tool }),
    ...(label !== null && { "x-gateway-label": label }),
  };
}

export interface OwnModels {
  readonly pattern: RegExp;
  readonly variable: string | null;
  readonly flags: readonly string[];
  /** Of a word such as `sonnet`: the variable that names its model. */
  readonly variableOf?: (word: string) => string | null;
  /** Models that it asks for: for its work, and for titles and summaries. */
  readonly asked: { readonly main: readonly string[]; readonly small: string };
  /** Only an argument names its model, and it asks for no others. */
  readonly isFixed?: true;
}

/** A row of tools.ts. Each `env` is the environment that the tool will see. */
export interface ToolRow {
  readonly title: string;
  /** Null for a library: the user names the command that uses it. */
  readonly program: { readonly name: string; readonly install: string } | null;
  /** The variables and arguments that it needs. */
  connect(connection: Connection, env: Environment): ToolSettings;
  /** Variables that make the tool bypass the gateway, or give it another credential: each was
   *  tried. */
  readonly misleading?: readonly string[];
  /** It can send its own login next to the key. These variables mislead it then. */
  readonly login?: { readonly misleading: readonly string[] };
  /** A variable that adds header fields. Otherwise `connect` or `overlay` does. */
  readonly headers?: HeaderVariable;
  /** Its own settings files override the environment with these variables. */
  readonly readVariables?: (env: Environment) => Environment;
  /** What a file of the user must contain; null: nothing. */
  readonly file?: (connection: Connection, setting: ToolEnvironment, env: Environment) => ToolFile | null;
  /** Writes files for a run into a folder, and returns the settings that make the tool read
   *  them. */
  readonly overlay?: (
    connection: Connection,
    setting: ToolEnvironment,
    env: Environment,
    folder: string,
  ) => Pick<ToolSettings, "env" | "args">;
  /** After the run: brings back what the tool has written there. */
  readonly keep?: (env: Environment, folder: string) => void;
  /** What the user has to know. `words`: the arguments of a run; null: for `gateway env`. */
  readonly describe?: (
    connection: Connection,
    env: Environment,
    words: readonly string[] | null,
  ) => ReadonlyArray<string | false>;
  /** Where its login of a subscription is: a file, a field with an object, and the login's name. */
  readonly findLogin?: (env: Environment) => string | null;
  /** It speaks Responses and nothing else. */
  readonly needsResponses?: true;
  /** It uses a proxy whatever NO_PROXY says: it gets none. */
  readonly ignoresNoProxy?: true;
  /** Whether its settings must name the models. */
  readonly needsModels?: true;
  /** A setting of it decides how long its caches live. */
  readonly hasCaches?: true;
  /** An overlay can give it a status line. */
  readonly hasStatusline?: true;
  /** The models for its small requests: behind a base URL, it takes the main model for them. */
  readonly smallModels?: RegExp;
  /** The model that the user's own settings name; null: none. */
  readonly findOwnModel?: (env: Environment) => string | null;
  /** The models that it asks for by itself, and how the user names others. */
  readonly ownModels?: OwnModels;
}

export interface Tool extends ToolRow {
  readonly name: string;
  readonly platforms: readonly Platform[];
  readonly misleading: readonly string[];
}

export interface ToolSettings {
  readonly env: Readonly<Record<string, string>>;
  /** More variables, where the user has set none. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Placed before the user's own arguments. */
  readonly args: readonly string[];
}

/** A tool's settings relative to the environment that it starts in. */
export interface ToolEnvironment extends Pick<ToolSettings, "env" | "args"> {
  /** Variables that the tool must not see. */
  readonly unset: readonly string[];
  /** The command that prints the tool's status line; absent: the tool keeps its own. */
  readonly statusline?: string;
}

interface ToolFile {
  readonly path: string;
  readonly content: object;
  /** The rest of a sentence that begins with the tool's title. */
  readonly advice: string;
}

/** The variables that mislead the tool with this connection. */
export function listMisleading({ misleading, login }: Tool, { usesLogin }: Connection): readonly string[] {
  return usesLogin === true && login !== undefined ? login.misleading : misleading;
}

/** The base of the tool's own paths. */
export function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

/** The maker whose API a tool uses if it can use only one. */
export function mainMakerOf(platform: Platform): string {
  return MAKERS_OF[platform][0] ?? "";
}

/** The models of one maker. A model goes to the one whose family its name suggests. */
export function listModelsOf(maker: string, { platform, models }: Connection): string[] {
  return models.filter(
    (model) => MAKERS_OF[platform].length === 1 || /gemini|gemma/i.test(model) === (maker === "google"),
  );
}

/** A folder of the user: as a variable names it, or below the home. */
export function folderOf(env: Environment, variable: string, below: string): string {
  return env[variable] || join(env["HOME"] || homedir(), below);
}

/** The text at this place of the first settings file that has one. */
export function findText(names: readonly string[], files: readonly string[]): string | null {
  const texts = files.map((file) => names.reduce<unknown>(getField, readSettings(file)));
  const isText = (text: unknown): text is string => typeof text === "string" && text !== "";
  return texts.find(isText) ?? null;
}

/** Reads JSON with comments. Null for an unreadable file, which the tool itself reports. */
export function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readPlain(path));
  } catch {
    return null;
  }
}
