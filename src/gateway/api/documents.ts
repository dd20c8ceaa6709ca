// The types of what routes read and answer. The page imports them.

import type { Holder } from "../../billing/ledger/sums.ts";
import type { Group } from "../../config/catalog.ts";
import type { Document } from "./reports.ts";

export interface OverviewReply extends Document<"overview"> {
  readonly limits: readonly LimitRow[];
}

export interface SessionReply extends Document<"session"> {
  readonly limits: readonly LimitRow[];
}

export interface LimitRow {
  readonly holder: { readonly kind: Holder["kind"]; readonly name: string };
  readonly limit: string;
  readonly usd: string;
  readonly spent_usd: string;
  readonly left_usd: string;
  /** ISO; null: never. */
  readonly resets: string | null;
  /** The highest percentage of `alerts.at` that was reached. */
  readonly warning: number | null;
}

export interface ChannelChoices {
  readonly presets: readonly {
    readonly id: string;
    readonly title: string;
    readonly credential: string | null;
  }[];
  readonly platforms: readonly string[];
}

export interface NewChannel {
  readonly what: string;
  readonly platform?: string | undefined;
  readonly name?: string | undefined;
  readonly group?: string | undefined;
  readonly credential?: string | undefined;
}

export interface GroupChoice extends Pick<Group, "name" | "platform" | "multiplier" | "description"> {
  readonly tools: readonly string[];
}

export interface KeyRow {
  readonly name: string;
  readonly group: string;
  readonly platform: string;
  readonly multiplier: string;
  readonly state: "active" | "disabled" | "expired" | "plan inactive";
  readonly created: string | null;
  readonly expires: string | null;
  readonly last_used: string | null;
  readonly spent_today_usd: string;
  readonly spent_total_usd: string;
  readonly limits: Readonly<Record<string, string>>;
  readonly limits_used: readonly LimitRow[];
}

export interface KeysReply {
  readonly keys: readonly KeyRow[];
  readonly groups: readonly GroupChoice[];
  /** Why the page cannot change keys, or null. */
  readonly fixed: string | null;
}

export interface KeyWish {
  readonly name: string;
  readonly group: string;
  /** `30d`, a date, or `never`. */
  readonly expires: string;
  readonly limits: Readonly<Record<string, string>>;
}

export interface KeyChange {
  readonly name: string;
  readonly action: "disable" | "enable" | "rotate" | "move" | "limit" | "remove";
  readonly group?: string | undefined;
  /** In the action `limit`, null removes a limit. */
  readonly limits?: Readonly<Record<string, string | null>> | undefined;
}

export interface KeysChanged extends KeysReply {
  /** Why the gateway does not use the changed file. */
  readonly problem: string | null;
  readonly secret?: { readonly name: string; readonly text: string; readonly group: string };
}
