// What the page and its server share, except the reports and actions of gateway/api.
// Texts come from clients, upstreams or the config:
// the page shows none of their markup.

import type { ChannelView } from "../gateway/channels/view.ts";
import type { OpenStream, RequestRecord } from "../gateway/observe/observer.ts";

/** Every request of the page has this header next to the cookie. */
export const TOKEN_HEADER = "x-gateway-console";

export const DEFAULT_PERIOD = "7d";
export const ROWS = 100;
export const MAX_ROWS = 2000;

export interface StreamRow extends Omit<OpenStream, "tokens"> {
  readonly tokens: number;
}

export interface About {
  readonly version: string;
  readonly since: string;
  readonly address: string;
  /** Null: a demo has no config file. */
  readonly config: string | null;
  readonly timezone: string;
  /** A command that starts a tool and asks for the secret.
   *  The tool's name goes after it. */
  readonly run: string;
}

/** The first event has everything, later ones only changes. */
export interface LiveEvent {
  readonly about?: About;
  readonly streams?: readonly StreamRow[];
  /** Oldest first: the last requests, then only new ones. */
  readonly requests?: readonly RequestRecord[];
  readonly channels?: readonly ChannelView[];
  readonly spend?: { readonly today_usd: string };
  readonly notices?: readonly Notice[];
  readonly ledgerProblem?: string | null;
  readonly revision?: number;
}

export interface Notice {
  readonly time: number;
  readonly level: "note" | "warning" | "error";
  readonly text: string;
}
