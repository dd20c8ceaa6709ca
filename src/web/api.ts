// What the console's page and its server share besides the reports and actions of gateway/api. All text comes from clients,
// upstreams or the config: the page shows it as text and never as markup.

import type { ChannelView } from "../gateway/channels/view.ts";
import type { OpenStream, RequestRecord } from "../gateway/observe/observer.ts";

/** The header that every request of the page carries, next to the cookie. */
export const TOKEN_HEADER = "x-gateway-console";

export const DEFAULT_PERIOD = "7d";
/** How many rows a list begins with, and has at most. */
export const ROWS = 100;
export const MAX_ROWS = 2000;

export interface StreamRow extends Omit<OpenStream, "tokens"> {
  readonly tokens: number;
}

/** About this run of the gateway. */
export interface About {
  readonly version: string;
  /** ISO. */
  readonly since: string;
  readonly address: string;
  /** Null for a demo, which has no file that could be changed. */
  readonly config: string | null;
  readonly timezone: string;
  /** What starts a tool with a key and asks for the secret, but for the tool's name. */
  readonly run: string;
}

/** One event of the live feed. The first has everything; later ones only what has changed. */
export interface LiveEvent {
  readonly about?: About;
  readonly streams?: readonly StreamRow[];
  /** Oldest first. In the first event the last ones, later the new ones. */
  readonly requests?: readonly RequestRecord[];
  readonly channels?: readonly ChannelView[];
  readonly spend?: Spend;
  readonly notices?: readonly Notice[];
  /** Why lines cannot be written; null: they can. */
  readonly ledgerProblem?: string | null;
  /** Counts the changes of the config since the start. */
  readonly revision?: number;
}

export interface Spend {
  readonly today_usd: string;
}

export interface Notice {
  readonly time: number;
  readonly level: "note" | "warning" | "error";
  readonly text: string;
}
