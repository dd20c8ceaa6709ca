// The requests of the ledger, as they are compared with what others say of them: each with its latest amounts.

import { getCount, getField } from "../../lib/json/json.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { readRows, type Row } from "../ledger/row.ts";
import { readText } from "./entry.ts";

export interface OurLine extends Pick<
  Row,
  "channel" | "model" | "answeredBy" | "usage" | "official" | "basis"
> {
  readonly id: string;
  /** When the request came, and when its response had ended, in ms. */
  readonly time: number;
  readonly ended: number;
  readonly client: ClientIdentity;
  /** The upstream's. Empty: it named none. */
  readonly requestId: string;
  readonly outcome: string;
  readonly priceSource: string;
  /** The seller's own amount. Empty: it named none. */
  readonly providerUsd: string;
  /** The seller used a key of the user's own, whose costs are not in its amount. */
  readonly isOwnKey: boolean;
}

/** Those of a period, in the order of the ledger. */
export function readOurLines(path: string, since: number, until: number): OurLine[] {
  const lines = new Map<string, OurLine>();
  for (const row of readRows(path)) {
    if (row === null || row.line["mark"] !== undefined) continue;
    const corrected = lines.get(readText(row.line["corrects"]));
    if (corrected !== undefined) {
      const { usage, official, basis } = row;
      lines.set(corrected.id, { ...corrected, usage, official, basis: basis || corrected.basis });
    }
    const time = Date.parse(row.time);
    if (row.was === null && time >= since && time < until) lines.set(readText(row.id), describe(row, time));
  }
  return [...lines.values()];
}

function describe(row: Row, time: number): OurLine {
  const { id, line, client, channel, model, answeredBy, usage, official, basis } = row;
  const names = ["upstream_request_id", "outcome", "price_source", "provider_usd"];
  const [requestId = "", outcome = "", priceSource = "", providerUsd = ""] = names.map((name) =>
    readText(line[name]),
  );
  return {
    channel,
    model,
    answeredBy,
    usage,
    official,
    basis,
    id: readText(id),
    time,
    ended: time + (getCount(line["duration_ms"]) ?? 0),
    client: client ?? {},
    requestId,
    outcome,
    priceSource,
    providerUsd,
    isOwnKey: getField(line["raw_usage"], "is_byok") === true,
  };
}
