// What a tool is: its program, its platforms, and its settings for a connection.

import type { Platform } from "../../config/schema.ts";
import type { Overlay, ToolSettings } from "./programs/overlay.ts";

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
  readonly name: string;
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
  return platform === "relay" ? `${base}/${relayPrefix}` : base;
}
