// What the routes answer and are given, for the page, which cannot load the gateway.

import type { Holder } from "../../billing/ledger/sums.ts";
import type { Group } from "../../config/catalog.ts";
import type { Document } from "./reports.ts";

export interface OverviewReply extends Document<"overview"> {
  readonly limits: readonly LimitRow[];
}

export interface SessionReply extends Document<"session"> {
  /** What its key and their group may spend in one session. */
  readonly limits: readonly LimitRow[];
}

export interface LimitRow {
  readonly holder: { readonly kind: Holder["kind"]; readonly name: string };
  /** As the config names it. */
  readonly limit: string;
  readonly usd: string;
  readonly spent_usd: string;
  readonly left_usd: string;
  /** ISO; null: never. */
  readonly resets: string | null;
  /** The highest percentage of `alerts.at` that is reached; null: none. */
  readonly warning: number | null;
}

export interface ChannelChoices {
  readonly presets: readonly {
    readonly id: string;
    readonly title: string;
    /** The variable for its credential; null: nobody has to give one. */
    readonly credential: string | null;
  }[];
  /** Of an upstream that is no preset. */
  readonly platforms: readonly string[];
}

export interface NewChannel {
  /** A preset, or the URL of an upstream. */
  readonly what: string;
  /** With a URL. */
  readonly platform?: string | undefined;
  /** Absent: as the preset or the host. */
  readonly name?: string | undefined;
  /** Absent: a new group. */
  readonly group?: string | undefined;
  readonly credential?: string | undefined;
}

export interface GroupChoice extends Pick<Group, "name" | "platform" | "multiplier" | "description"> {
  /** The tools and SDKs that speak its platform. */
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
  /** As the config names them. */
  readonly limits: Readonly<Record<string, string>>;
  readonly limits_used: readonly LimitRow[];
}

export interface KeysReply {
  readonly keys: readonly KeyRow[];
  readonly groups: readonly GroupChoice[];
  /** Why keys cannot be changed here; null: they can. */
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
  /** For `limit`: null removes one. */
  readonly limits?: Readonly<Record<string, string | null>> | undefined;
}

export interface KeysChanged extends KeysReply {
  /** Why the gateway does not use the changed file; null: it does. */
  readonly problem: string | null;
  /** The only reply that ever has a secret. */
  readonly secret?: { readonly name: string; readonly text: string; readonly group: string };
}
