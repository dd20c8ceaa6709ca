// What a tool is: its program, its platforms, and its settings for a connection.

import { type Platform, PLATFORMS } from "../../../config/schema.ts";
import { PLATFORM_ROWS, readPathPrefix, type ToolName } from "../../../dialects/platforms.ts";
import type { Overlay, ToolSettings } from "./overlay.ts";

export interface Connection {
  /** Without a trailing slash. */
  readonly base: string;
  readonly relayPrefix: string;
  readonly platform: Platform;
  readonly secret: string;
  /** The models that the key can call; where they are not known, those that the config names. */
  readonly models: readonly string[];
}

export interface Tool {
  readonly name: ToolName;
  readonly title: string;
  /** Null for a library: the user names the command that uses it. */
  readonly program: { readonly name: string; readonly install: string } | null;
  readonly platforms: readonly Platform[];
  /** Variables that make the tool bypass the gateway, or give it another credential. */
  readonly misleading: readonly string[];
  /** It sends requests for the gateway to a proxy, whatever NO_PROXY says: it gets no proxy at all. */
  readonly ignoresNoProxy?: true;
  /** Whether its settings must name the models. */
  readonly needsModels?: true;
  /** For tools that need files as well as variables. */
  readonly overlay?: (connection: Connection) => Overlay;
  connect(connection: Connection): ToolSettings;
}

/** The base of the tool's own paths. */
export function rootOf({ base, platform, relayPrefix }: Connection): string {
  return base + readPathPrefix(platform, relayPrefix);
}

/** The maker whose API a tool uses if it can use only one. */
export function mainMakerOf(platform: Platform): string {
  return PLATFORM_ROWS[platform].makers[0]?.name ?? "";
}

/** The models of one maker. If a platform serves several, a model goes to the one whose family its name suggests. */
export function listModelsOf(maker: string, { platform, models }: Connection): string[] {
  return models.filter(
    (model) =>
      PLATFORM_ROWS[platform].makers.length === 1 || /gemini|gemma/i.test(model) === (maker === "google"),
  );
}

export function listPlatforms(tool: ToolName): readonly Platform[] {
  return PLATFORMS.filter((platform) => PLATFORM_ROWS[platform].tools.includes(tool));
}
