// The requests of the ledger, as they are compared with what others say of them: each with its latest amounts.

import { getCount, getField } from "../../lib/json/json.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { readRows, type Row } from "../ledger/row.ts";
import { getOrAdd, readText } from "./entry.ts";

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
export function* readOurLines(path: string, since: number, until: number): Generator<OurLine, void> {
  const corrections = readCorrections(path);
  // Many lines have the same one: memory holds it once.
  const clients = new Map<string, ClientIdentity>();
  for (const row of readRows(path)) {
    if (row === null || row.was !== null) continue;
    const time = Date.parse(row.time);
    if (time < since || time >= until) continue;
    const line = describe(row, time);
    const client = getOrAdd(clients, Object.values(line.client).join("\n"), line.client);
    yield Object.assign(line, { client }, corrections.get(line.id));
  }
}

/** They come after their requests, so the ledger is read for them first: no list of all its lines has to wait for them. */
function readCorrections(path: string): ReadonlyMap<string, Partial<OurLine>> {
  const corrections = new Map<string, Partial<OurLine>>();
  for (const row of readRows(path, '"corrects"')) {
    const id = readText(row?.line["corrects"]);
    if (row === null || id === "") continue;
    const { usage, official, basis } = row;
    corrections.set(id, { ...corrections.get(id), usage, official, ...(basis !== "" && { basis }) });
  }
  return corrections;
}

function describe(row: Row, time: number): OurLine {
  const { id, line, client, channel, model, answeredBy, usage, official, basis } = row;
  const read = (name: string): string => readText(line[name]);
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
    requestId: read("upstream_request_id"),
    outcome: read("outcome"),
    priceSource: read("price_source"),
    providerUsd: read("provider_usd"),
    isOwnKey: getField(line["raw_usage"], "is_byok") === true,
  };
}
