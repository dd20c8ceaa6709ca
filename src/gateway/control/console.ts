// The console's page, as the gateway sees it. web/ makes it, which is right of this folder: start.ts gets it as a
// parameter.

import type { ConfigOutcome } from "../../config/file/watch.ts";
import type { Exchange } from "../../lib/http/exchange.ts";
import type { Gateway } from "../gateway.ts";
import type { UnroutedCall } from "../intake/call.ts";
import type { Activity } from "../observe/activity.ts";
import type { Observer } from "../observe/observer.ts";

export interface Console {
  /** Sees what happens in the gateway. */
  readonly observer: Observer;
  /** Answers a request for the page, or one that the page makes. */
  answer(call: UnroutedCall): Promise<void>;
  /** Whether the page is served on this listener. */
  readonly isServed: boolean;
  isSignedIn(exchange: Exchange): boolean;
  /** A link that signs a browser in, once and soon. Throws if the page is not served. */
  createLink(): string;
  /** Ends its event streams, which would go on for ever. */
  close(): void;
}

/** What the console gets of the gateway. */
export interface ConsoleParts {
  readonly gateway: Gateway;
  readonly activity: Activity;
  /** Known once the gateway listens. */
  readonly port: () => number;
  /** Null for a demo. */
  readonly configPath: string | null;
  readonly follow: Follow;
}

/** Has changed files applied at once, as after a second without it. Null: this gateway follows no file. */
export interface Follow {
  /** `written`: the hash of the text that was put in place. */
  readonly config: (written: string) => Promise<ConfigOutcome | null>;
  readonly prices: () => ConfigOutcome | null;
}

export const FOLLOWS_NOTHING: Follow = { config: () => Promise.resolve(null), prices: () => null };

export type OpenConsole = (parts: ConsoleParts) => Console;
