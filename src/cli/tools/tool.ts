// `gateway run` never changes a user's settings files.
// It writes new ones for the tool.

import { homedir } from "node:os";
import { join } from "node:path";
import { type Platform, PLATFORM_FACTS } from "../../config/schema.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { readPathPrefix } from "../../dialects/platforms.ts";
import { readPlain } from "../../lib/files/own-file.ts";
import { getField } from "../../lib/json/json.ts";

export type CacheLifetime = "5m" | "1h";

export interface ModelLimits {
  readonly context: number | null;
  readonly output: number | null;
}

export interface Foreign {
  readonly hasEffort: boolean;
  readonly canSearch: boolean;
  readonly main?: string | null;
  readonly small?: string | null;
}

export interface Connection {
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  readonly models: readonly string[];
  readonly limits?: ReadonlyMap<string, ModelLimits>;
  readonly converts?: boolean;
  readonly foreign?: Foreign;
  /** The tool needs Chat Completions to reach all models. */
  readonly speaksChat?: boolean;
  /** All channels have the address of the platform's maker. */
  readonly isDirect?: boolean;
  readonly searchRefusal?: string | null;
  readonly ownModel?: string | null;
  readonly smallModel?: string | null;
  readonly websocket?: boolean;
  readonly cache?: CacheLifetime | null;
  /** How long the tool has to wait for the gateway. */
  readonly patienceMs?: number;
  readonly hasTraces?: boolean;
  /** The channel passes the tool's login on. */
  readonly usesLogin?: boolean;
  /** Sent as `x-gateway-label`, in ASCII; null: nothing. */
  readonly label: string | null;
  /** For a tool that names neither its session nor itself. */
  readonly run?: { readonly session: string; readonly tool: string | null };
}

export interface HeaderVariable {
  readonly name: string;
  readonly separator: string;
}

export const ANTHROPIC_HEADERS: HeaderVariable = { name: "ANTHROPIC_CUSTOM_HEADERS", separator: "\n" };
export const OPENAI_HEADERS: HeaderVariable = { name: "OPENAI_CUSTOM_HEADERS", separator: "\n" };

/** Header fields for the gateway. None of them goes upstream. */
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
  /** A word such as `sonnet` stands for the model in this variable. */
  readonly variableOf?: (word: string) => string | null;
  readonly asked: { readonly main: readonly string[]; readonly small: string };
  /** `gateway run` names a foreign model in an argument. */
  readonly isFixed?: true;
}

export interface ToolRow {
  readonly title: string;
  /** Null: a library, whose user names the command. */
  readonly program: { readonly name: string; readonly install: string } | null;
  connect(connection: Connection, env: Environment): ToolSettings;
  /** Variables that bypass the gateway. */
  readonly misleading?: readonly string[];
  /** The misleading variables where the tool uses its own login. */
  readonly login?: { readonly misleading: readonly string[] };
  /** Absent: `connect` or `overlay` adds header fields. */
  readonly headers?: HeaderVariable;
  /** Variables of settings files override the environment. */
  readonly readVariables?: (env: Environment) => Environment;
  readonly file?: (connection: Connection, setting: ToolEnvironment, env: Environment) => ToolFile | null;
  readonly overlay?: (
    connection: Connection,
    setting: ToolEnvironment,
    env: Environment,
    folder: string,
  ) => Pick<ToolSettings, "env" | "args">;
  /** After the run: keeps what the tool wrote into `folder`. */
  readonly keep?: (env: Environment, folder: string) => void;
  /** `words` has a run's arguments, and is null for `gateway env`. */
  readonly describe?: (
    connection: Connection,
    env: Environment,
    words: readonly string[] | null,
  ) => ReadonlyArray<string | false>;
  readonly findLogin?: (env: Environment) => string | null;
  readonly needsResponses?: true;
  /** The tool ignores NO_PROXY, so it gets no proxy. */
  readonly ignoresNoProxy?: true;
  readonly needsModels?: true;
  readonly hasCaches?: true;
  readonly hasStatusline?: true;
  /** With a base URL, the tool would use its main model instead of these. */
  readonly smallModels?: RegExp;
  readonly findOwnModel?: (env: Environment) => string | null;
  readonly ownModels?: OwnModels;
}

export interface Tool extends ToolRow {
  readonly name: string;
  readonly platforms: readonly Platform[];
  readonly misleading: readonly string[];
}

export interface ToolSettings {
  readonly env: Readonly<Record<string, string>>;
  readonly defaults?: Readonly<Record<string, string>>;
  readonly args: readonly string[];
}

export interface ToolEnvironment extends Pick<ToolSettings, "env" | "args"> {
  readonly unset: readonly string[];
  readonly statusline?: string;
}

interface ToolFile {
  readonly path: string;
  readonly content: object;
  readonly advice: string;
}

export function needFile(name: string, what: string, path: string, content: object): ToolFile {
  const advice = `needs the gateway ${what} in ${path}: \`gateway env ${name} --json\` prints it as \`file\``;
  return { path, content, advice };
}

export function listMisleading({ misleading, login }: Tool, { usesLogin }: Connection): readonly string[] {
  return usesLogin === true && login !== undefined ? login.misleading : misleading;
}

export function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

export function mainMakerOf(platform: Platform): string {
  return PLATFORM_FACTS[platform].makers[0] ?? "";
}

export function listModelsOf(maker: string, { platform, models }: Connection): string[] {
  return models.filter(
    (model) =>
      PLATFORM_FACTS[platform].makers.length === 1 || /gemini|gemma/i.test(model) === (maker === "google"),
  );
}

export function folderOf(env: Environment, variable: string, below: string): string {
  return env[variable] || join(env["HOME"] || homedir(), below);
}

export function findText(names: readonly string[], files: readonly string[]): string | null {
  const texts = files.map((file) => names.reduce<unknown>(getField, readSettings(file)));
  const isText = (text: unknown): text is string => typeof text === "string" && text !== "";
  return texts.find(isText) ?? null;
}

export function readSettings(path: string): unknown {
  try {
    return Bun.JSONC.parse(readPlain(path));
  } catch {
    return null;
  }
}
