// What the reports and actions of routes.ts get of the gateway.

import type { ConfigOutcome } from "../../config/file/watch.ts";
import type { Gateway } from "../gateway.ts";
import type { Activity } from "../observe/activity.ts";
import type { Console } from "./own-pages.ts";
import type { ChannelChoices, NewChannel } from "./documents.ts";
import type { ReportThread } from "./thread.ts";

export interface ApiParts {
  readonly gateway: Gateway;
  readonly activity: Activity;
  /** Known once the gateway listens. */
  readonly port: () => number;
  /** Null for a demo. */
  readonly configPath: string | null;
  readonly follow: Follow;
  /** Null: this gateway has no config file. */
  readonly setUp: ChannelSetUp | null;
  /** Null: there is none. */
  readonly console: () => Console | null;
  readonly thread: ReportThread;
}

/** Adds a channel. It belongs to the shell, which knows the providers, so start.ts gets it as a parameter. */
export interface ChannelSetUp {
  list(): Promise<ChannelChoices>;
  /** Returns what the upstream said of the credential. Throws a Refusal. */
  add(wish: NewChannel): Promise<{ readonly name: string; readonly finding: string }>;
}

/** Has changed files applied at once, as after a second without it. Null: this gateway follows no file. */
export interface Follow {
  /** `written`: the hash of the text that was put in place. */
  readonly config: (written: string) => Promise<ConfigOutcome | null>;
  readonly prices: () => ConfigOutcome | null;
}

export const FOLLOWS_NOTHING: Follow = { config: () => Promise.resolve(null), prices: () => null };
