// The requests of the ledger, as they are compared with what others say of them: each with its latest amounts.

import type { Decimal } from "../../lib/money.ts";
import { getCount, getField } from "../../lib/json/json.ts";
import { readRows, type Row } from "../ledger/row.ts";
import { readText } from "./entry.ts";

export interface OurLine {
  readonly id: string;
  /** When the request came, and when its response had ended, in ms. */
  readonly time: number;
  readonly ended: number;
  /** Empty: the request did not say. */
  readonly tool: string;
  readonly session: string;
  readonly agent: string;
  readonly label: string;
  /** The gateway named the session, because the tool did not. */
  readonly isInferred: boolean;
  readonly channel: string;
  readonly platform: string;
  readonly model: string;
  readonly answeredBy: string;
  readonly requestId: string;
  readonly usage: Row["usage"];
  readonly official: Decimal | null;
  readonly basis: string;
  readonly outcome: string;
  readonly priceSource: string;
  /** The seller's own amount, if it named one. */
  readonly providerUsd: string | null;
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

function describe(
  { id, line, client, model, answeredBy, usage, official, basis, channel }: Row,
  time: number,
): OurLine {
  const { tool = "", session = "", agent = "", label = "", inferred = false } = client ?? {};
  const amount = getField(line, "provider_usd");
  return {
    id: readText(id),
    time,
    ended: time + (getCount(line["duration_ms"]) ?? 0),
    tool,
    session,
    agent,
    label,
    isInferred: inferred,
    channel,
    platform: readText(line["platform"]),
    model,
    answeredBy,
    requestId: readText(line["upstream_request_id"]),
    usage,
    official,
    basis,
    outcome: readText(line["outcome"]),
    priceSource: readText(line["price_source"]),
    providerUsd: typeof amount === "string" ? amount : null,
  };
}
