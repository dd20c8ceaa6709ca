// What a tool is: its program, its platforms, and its settings for a connection. Some settings work only in a tool's own
// files, or override the environment there: an overlay is temporary files for one run. The user's files never change.

import { homedir } from "node:os";
import { MAKERS_OF } from "../../billing/prices/sellers.ts";
import type { Group } from "../../config/catalog.ts";
import { CHAT, type Platform } from "../../config/schema.ts";
import type { Environment } from "../../config/yaml/expand.ts";
import { readPathPrefix, type ToolName } from "../../dialects/platforms.ts";
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
  /** What the config says of the models that the tool asks for by itself; absent: nothing. */
  readonly main?: string | null;
  readonly small?: string | null;
}

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** The models that the key can call; where they are not known, those that the config names. */
  readonly models: readonly string[];
  readonly limits?: ReadonlyMap<string, ModelLimits>;
  /** Some requests of the group are converted. */
  readonly converts?: boolean;
  /** Requests are converted for models that are not the tool's; absent: they are not. */
  readonly foreign?: Foreign;
  /** Every model of the group is reached by Chat Completions, and some by nothing else. */
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
  /** How long the gateway waits for the upstream; absent: the tool's own limits are right. */
  readonly patienceMs?: number;
  /** Each request becomes a span of a trace. */
  readonly hasTraces?: boolean;
  /** The group's channel passes on the tool's own login: the secret goes next to it. */
  readonly usesLogin?: boolean;
  /** What the tool sends as `x-gateway-label`, in ASCII; null: nothing. */
  readonly label: string | null;
  /** Of this run, for a tool that names neither its session nor itself; absent: none. */
  readonly run?: { readonly session: string; readonly tool: string | null };
}

/** The header by which a request says what it belongs to. It never goes upstream. */
const LABEL_HEADER = "x-gateway-label";
/** Of a tool that names neither itself. They never go upstream, either. */
const SESSION_HEADER = "x-gateway-session";
const TOOL_HEADER = "x-gateway-tool";

/** The header for the gateway's key, where the tool's own login is in `Authorization`. */
const KEY_HEADER = "x-gateway-key";

/** A variable with header fields that a tool adds to each request. */
export interface HeaderVariable {
  readonly name: string;
  readonly separator: string;
}

/** The official SDKs read these. */
export const ANTHROPIC_HEADERS: HeaderVariable = { name: "ANTHROPIC_CUSTOM_HEADERS", separator: "\n" };
export const OPENAI_HEADERS: HeaderVariable = { name: "OPENAI_CUSTOM_HEADERS", separator: "\n" };

/** For settings in which header fields are an object. With the tool's own login, the key is one of them. */
export function listHeaders(connection: Connection): Record<string, string> | null {
  const { label, run, secret, usesLogin = false } = connection;
  if (label === null && run === undefined && !usesLogin) return null;
  return {
    ...(usesLogin && { [KEY_HEADER]: secret }),
    ...(run !== undefined && { [SESSION_HEADER]: run.session }),
    ...(typeof run?.tool === "string" && { [TOOL_HEADER]: run.tool }),
    ...(label !== null && { [LABEL_HEADER]: label }),
  };
}

export interface OwnModels {
  readonly pattern: RegExp;
  /** For people. */
  readonly shown: string;
  readonly variable: string | null;
  readonly flags: readonly string[];
  /** Of a word such as `sonnet`: the variable that names its model. */
  readonly variableOf?: (word: string) => string | null;
  /** Models that it asks for: for its work, and for titles and summaries. */
  readonly asked: { readonly main: readonly string[]; readonly small: string };
  /** Nothing but an argument names its model, and nothing makes it ask for others in the background. */
  readonly isFixed?: true;
}

/** A row of tools.ts. */
export interface ToolRow {
  readonly title: string;
  /** Null for a library: the user names the command that uses it. */
  readonly program: { readonly name: string; readonly install: string } | null;
  /** It speaks Responses and nothing else. */
  readonly needsResponses?: true;
  /** It sends requests for the gateway to a proxy, whatever NO_PROXY says: it gets no proxy at all. */
  readonly ignoresNoProxy?: true;
  /** Whether its settings must name the models. */
  readonly needsModels?: true;
  /** The models for its small requests. Behind a base URL, it takes the main model for them unless its settings name one. */
  readonly smallModels?: RegExp;
  /** The model that the user's own settings name; null: none. */
  readonly findOwnModel?: (env: Environment) => string | null;
  /** The models that it asks for by itself, and how the user names another one. */
  readonly ownModels?: OwnModels;
  /** What else its variables do in a shell, for `gateway env`: a sentence. */
  readonly sideEffect?: string;
  /** Its overlay can give it a status line. */
  readonly hasStatusline?: true;
  /** For tools that need files as well as variables. */
  readonly overlay?: (connection: Connection) => Overlay;
  /** If a variable can add the label. Otherwise `connect` or the overlay does, where the tool lets headers be set. */
  readonly headers?: HeaderVariable;
  connect(connection: Connection): ToolSettings;
  /** It can send its own login next to the gateway's key. These variables would replace that login. */
  readonly login?: { readonly misleading: readonly string[] };
  /** Variables for the lifetime of its caches; absent: it has no such setting. */
  readonly cacheVariables?: Readonly<Record<CacheLifetime, Readonly<Record<string, string>>>>;
  /** Variables that make a request through the gateway what it is without, unless the user has set them. */
  readonly equalise?: (connection: Connection, env: Environment) => Readonly<Record<string, string>>;
  /** What the tool can do without the gateway and not with this connection; null: nothing. */
  readonly describeLoss?: (connection: Connection) => string | null;
  /** What a run does otherwise than the tool by itself, with these arguments; null: nothing. */
  readonly describeRun?: (env: Environment, words: readonly string[]) => string | null;
}

export interface Tool extends ToolRow {
  readonly name: ToolName;
  readonly platforms: readonly Platform[];
  /** Variables that make the tool bypass the gateway, or give it another credential. */
  readonly misleading: readonly string[];
}

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

/** The variables that mislead the tool with this connection. */
export function listMisleading({ misleading, login }: Tool, { usesLogin }: Connection): readonly string[] {
  return usesLogin === true && login !== undefined ? login.misleading : misleading;
}

/** Every channel of the group speaks Chat Completions, which the tool does not, and nothing is converted. */
export function lacksResponses({ needsResponses }: Tool, { convert, channels }: Group): boolean {
  return needsResponses === true && !convert && channels.every(({ platform }) => platform === CHAT);
}

/** The base of the tool's own paths. */
export function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

/** The base URL as the SDKs of the platform's main maker take it. */
export function sdkBaseOf(connection: Connection): string {
  return rootOf(connection) + (mainMakerOf(connection.platform) === "openai" ? "/v1" : "");
}

/** The maker whose API a tool uses if it can use only one. */
export function mainMakerOf(platform: Platform): string {
  return MAKERS_OF[platform][0] ?? "";
}

/** The version in the paths of a maker's API. */
export function versionOf(maker: string): string {
  return maker === "google" ? "v1beta" : "v1";
}

/** The models of one maker. If a platform serves several, a model goes to the one whose family its name suggests. */
export function listModelsOf(maker: string, { platform, models }: Connection): string[] {
  return models.filter(
    (model) => MAKERS_OF[platform].length === 1 || /gemini|gemma/i.test(model) === (maker === "google"),
  );
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
