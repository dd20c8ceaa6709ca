// What one line or correction adds to what its key, group and session have spent.

import { type Decimal, roundUsd, subtractUsd, type Usd, ZERO_USD } from "../../../lib/money.ts";
import type { Row } from "../row.ts";

export interface Entry {
  /** Of the request. */
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly session: string | undefined;
  /** Null: it is a correction. */
  readonly usage: Row["usage"] | null;
  readonly charged: Usd;
  /** What a plan paid, by official prices. */
  readonly byPlan: Usd;
  /** What limits count in addition while the cost of the request is not known. */
  readonly estimated: Usd;
  /** How full the windows of a plan were after it, by name, in percent; undefined: it has none. */
  readonly windows: Readonly<Record<string, number>> | undefined;
  /** An earlier estimate, of a request at `time`, that counts no longer. */
  readonly replaced: { readonly time: string; readonly estimated: Usd } | null;
}

type Source = Pick<
  Row,
  | "time"
  | "key"
  | "group"
  | "channel"
  | "model"
  | "client"
  | "usage"
  | "official"
  | "charge"
  | "limit"
  | "replaced"
  | "paidBy"
> &
  Pick<Entry, "windows"> & { readonly was: Pick<Row, "official" | "charge"> | null };

export function entryOf(row: Source): Entry {
  const { time, key, group, channel, model, was, limit, replaced, windows } = row;
  const charge = row.charge ?? ZERO_USD;
  const before = was?.charge ?? ZERO_USD;
  return {
    time,
    key,
    group,
    channel,
    model,
    session: row.client?.session,
    usage: was === null ? row.usage : null,
    windows,
    charged: subtractUsd(charge, before),
    byPlan: row.paidBy === "plan" ? subtractUsd(round(row.official), round(was?.official ?? null)) : ZERO_USD,
    estimated: limit === null ? ZERO_USD : subtractUsd(limit, charge),
    replaced:
      replaced === null ? null : { time: replaced.time, estimated: subtractUsd(replaced.limit, before) },
  };
}

function round(official: Decimal | null): Usd {
  return official === null ? ZERO_USD : roundUsd(official);
}
