// A tool is a row: its program, its settings for a connection, and the files that it reads. The
// user's files never change: a run gets temporary ones.

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
  /** Tokens of the context window. */
  readonly context: number | null;
  /** Tokens of the longest answer. */
  readonly output: number | null;
}

/** What another maker's models can do. */
export interface Foreign {
  readonly hasEffort: boolean;
  readonly canSearch: boolean;
  /** The config's models for what the tool asks for by itself. */
  readonly main?: string | null;
  readonly small?: string | null;
}

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** The key's models, or else those that the config names. */
  readonly models: readonly string[];
  readonly limits?: ReadonlyMap<string, ModelLimits>;
  /** Some requests of the group are converted. */
  readonly converts?: boolean;
  /** Requests are converted for models of another maker. */
  readonly foreign?: Foreign;
  /** Only Chat Completions reach every model of the group. */
  readonly speaksChat?: boolean;
  /** All channels are at the own address of the platform's maker. */
  readonly isDirect?: boolean;
  /** Why the gateway would refuse searches; null: it would not. */
  readonly searchRefusal?: string | null;
  /** The model in the user's settings of the tool; null: none. */
  readonly ownModel?: string | null;
  /** The newest model for small requests; null: none, or not to be named. */
  readonly smallModel?: string | null;
  /** A channel of the group offers a WebSocket. */
  readonly websocket?: boolean;
  /** The cache lifetime to ask for; null: the tool's own. */
  readonly cache?: CacheLifetime | null;
  /** How long the gateway waits; absent: the tool's own limits are right. */
  readonly patienceMs?: number;
  /** Each request becomes a span of a trace. */
  readonly hasTraces?: boolean;
  /** The channel passes the tool's login on; the secret goes next to it. */
  readonly usesLogin?: boolean;
  /** Sent as `x-gateway-label`, in ASCII; null: nothing. */
  readonly label: string | null;
  /** For a tool that names neither its session nor itself. */
  readonly run?: { readonly session: string; readonly tool: string | null };
}

/** A variable with header fields for each request. */
export interface HeaderVariable {
  readonly name: string;
  readonly separator: string;
}

/** For the official SDKs. */
export const ANTHROPIC_HEADERS: HeaderVariable = { name: "ANTHROPIC_CUSTOM_HEADERS", separator: "\n" };
export const OPENAI_HEADERS: HeaderVariable = { name: "OPENAI_CUSTOM_HEADERS", separator: "\n" };

/** None of these fields goes upstream. */
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
  /** The variable that names the model of a word such as `sonnet`. */
  readonly variableOf?: (word: string) => string | null;
  /** Models that the tool asks for: for work, and for titles and summaries. */
  readonly asked: { readonly main: readonly string[]; readonly small: string };
  /** Only an argument names the model, and the tool asks for no others. */
  readonly isFixed?: true;
}

/** A row of tools.ts. Each `env` is what the tool will see. */
export interface ToolRow {
  readonly title: string;
  /** Null: a library, whose user names the command. */
  readonly program: { readonly name: string; readonly install: string } | null;
  connect(connection: Connection, env: Environment): ToolSettings;
  /** Variables that bypass the gateway or give another credential: each was tried. */
  readonly misleading?: readonly string[];
  /** The tool can send its own login next to the key. These variables then mislead it. */
  readonly login?: { readonly misleading: readonly string[] };
  /** A variable that adds header fields. Otherwise `connect` or `overlay` adds them. */
  readonly headers?: HeaderVariable;
  /** Variables of the tool's settings files, which override the environment. */
  readonly readVariables?: (env: Environment) => Environment;
  /** What a user's file must contain; null: nothing. */
  readonly file?: (connection: Connection, setting: ToolEnvironment, env: Environment) => ToolFile | null;
  /** Writes a run's files into a folder, and returns the settings that make the tool read them. */
  readonly overlay?: (
    connection: Connection,
    setting: ToolEnvironment,
    env: Environment,
    folder: string,
  ) => Pick<ToolSettings, "env" | "args">;
  /** After the run: brings back what the tool wrote there. */
  readonly keep?: (env: Environment, folder: string) => void;
  /** What the user has to know. `words`: a run's arguments; null: `gateway env`. */
  readonly describe?: (
    connection: Connection,
    env: Environment,
    words: readonly string[] | null,
  ) => ReadonlyArray<string | false>;
  /** Finds a subscription's login and returns its name; null: none. */
  readonly findLogin?: (env: Environment) => string | null;
  /** The tool speaks only Responses. */
  readonly needsResponses?: true;
  /** The tool ignores NO_PROXY: it gets no proxy. */
  readonly ignoresNoProxy?: true;
  /** The tool's settings must name the models. */
  readonly needsModels?: true;
  /** A setting decides how long the tool's caches live. */
  readonly hasCaches?: true;
  /** An overlay can give it a status line. */
  readonly hasStatusline?: true;
  /** Models for small requests: behind a base URL, the tool uses the main model. */
  readonly smallModels?: RegExp;
  /** The model in the user's settings; null: none. */
  readonly findOwnModel?: (env: Environment) => string | null;
  /** The models that the tool asks for by itself, and how users name others. */
  readonly ownModels?: OwnModels;
}

export interface Tool extends ToolRow {
  readonly name: string;
  readonly platforms: readonly Platform[];
  readonly misleading: readonly string[];
}

export interface ToolSettings {
  readonly env: Readonly<Record<string, string>>;
  /** More variables, unless the user has set them. */
  readonly defaults?: Readonly<Record<string, string>>;
  /** Placed before the user's own arguments. */
  readonly args: readonly string[];
}

/** A tool's settings relative to the environment that it starts in. */
export interface ToolEnvironment extends Pick<ToolSettings, "env" | "args"> {
  /** Variables that the tool must not see. */
  readonly unset: readonly string[];
  /** The command of the tool's status line; absent: the tool keeps its own. */
  readonly statusline?: string;
}

interface ToolFile {
  readonly path: string;
  readonly content: object;
  /** Continues a sentence that begins with the tool's title. */
  readonly advice: string;
}

export function listMisleading({ misleading, login }: Tool, { usesLogin }: Connection): readonly string[] {
  return usesLogin === true && login !== undefined ? login.misleading : misleading;
}

/** The base of the tool's own paths. */
export function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

/** The maker for tools that use only one maker's API. */
export function mainMakerOf(platform: Platform): string {
  return MAKERS_OF[platform][0] ?? "";
}

/** A maker's models, by the family that a name suggests. */
export function listModelsOf(maker: string, { platform, models }: Connection): string[] {
  return models.filter(
    (model) => MAKERS_OF[platform].length === 1 || /gemini|gemma/i.test(model) === (maker === "google"),
  );
}

/** A user's folder: from a variable, or below the home. */
export function folderOf(env: Environment, variable: string, below: string): string {
  return env[variable] || join(env["HOME"] || homedir(), below);
}

/** The text at this place of the first settings file that has one. */
export function findText(names: readonly string[], files: readonly string[]): string | null {
  const texts = files.map((file) => names.reduce<unknown>(getField, readSettings(file)));
  const isText = (text: unknown): text is string => typeof text === "string" && text !== "";
  return texts.find(isText) ?? null;
}

/** Reads JSON with comments. Null: an unreadable file, which the tool reports. */
export function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readPlain(path));
  } catch {
    return null;
  }
}
