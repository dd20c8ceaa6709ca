// What routes.ts needs for reports and actions.

import type { ConfigOutcome } from "../../config/file/watch.ts";
import type { Gateway } from "../gateway.ts";
import type { Activity } from "../observe/activity.ts";
import type { Console } from "./own-pages.ts";
import type { ChannelChoices, NewChannel } from "./documents.ts";
import type { ReportThread } from "./thread.ts";

export interface ApiParts {
  readonly gateway: Gateway;
  readonly activity: Activity;
  readonly port: () => number;
  readonly configPath: string | null;
  readonly follow: Follow;
  readonly setUp: ChannelSetUp | null;
  readonly console: () => Console | null;
  readonly thread: ReportThread;
}

/** Only cli/ knows the providers, so start.ts gets this as a parameter. */
export interface ChannelSetUp {
  list(): Promise<ChannelChoices>;
  /** Returns the upstream's answer to the credential. Throws a Refusal. */
  add(wish: NewChannel): Promise<{ readonly name: string; readonly finding: string }>;
}

/** Reads changed files again. Null: no file is followed. */
export interface Follow {
  /** `written`: the hash of the written text. */
  readonly config: (written: string) => Promise<ConfigOutcome | null>;
  readonly prices: () => ConfigOutcome | null;
  /** Why the current text of the config is not in force, or null. */
  readonly problem: () => string | null;
}

export const FOLLOWS_NOTHING: Follow = {
  config: () => Promise.resolve(null),
  prices: () => null,
  problem: () => null,
};
