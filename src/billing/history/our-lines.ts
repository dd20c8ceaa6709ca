// The requests of the ledger, as they are joined with those of logs: each with its latest amounts.

import { getCount } from "../../lib/json/json.ts";
import type { ClientIdentity } from "../ledger/line.ts";
import { readRows, type Row } from "../ledger/row.ts";
import { getOrAdd, readText } from "./entry.ts";

export interface OurLine extends Pick<Row, "model" | "answeredBy" | "usage" | "official" | "basis"> {
  readonly id: string;
  /** When the request came, and when its response had ended, in ms. */
  readonly time: number;
  readonly ended: number;
  readonly client: ClientIdentity;
  /** The upstream's. Empty: it named none. */
  readonly requestId: string;
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
  const { id, line, client, model, answeredBy, usage, official, basis } = row;
  return {
    model,
    answeredBy,
    usage,
    official,
    basis,
    id: readText(id),
    time,
    ended: time + (getCount(line["duration_ms"]) ?? 0),
    client: client ?? {},
    requestId: readText(line["upstream_request_id"]),
  };
}
