// The requests of the ledger, as they are joined with those of logs: each with its latest amounts.

import { parseJson } from "../../lib/json/json.ts";
import { type Decimal, parseDecimal } from "../../lib/money.ts";
import { readLine } from "../ledger/check.ts";
import type { AnyLine, ClientIdentity, Line } from "../ledger/line.ts";
import { readLines } from "../ledger/reader.ts";
import { holdLedgerFiles } from "../ledger/rotation.ts";
import { getOrAdd } from "./entry.ts";

export interface OurLine extends Pick<Line, "id" | "model" | "usage" | "basis"> {
  readonly official: Decimal | null;
  /** The model that the answer names; empty: none. */
  readonly answeredBy: string;
  /** When the request came, and when its response had ended, in ms. */
  readonly time: number;
  readonly ended: number;
  readonly client: ClientIdentity;
  /** The upstream's. Empty: it named none. */
  readonly requestId: string;
}

/** Those of a period, in the order of the ledger. */
export function* readOurLines(path: string, since: number, until: number): Generator<OurLine, void> {
  // They come after their requests, so the ledger is read for them first: no list of all its lines has to wait for them.
  const corrections = new Map<string, Pick<OurLine, "usage" | "official">>();
  for (const line of readAll(path, '"corrects"'))
    if ("corrects" in line)
      corrections.set(line.corrects, { usage: line.usage, official: readUsd(line.official_usd) });
  // Many lines have the same one: memory holds it once.
  const clients = new Map<string, ClientIdentity>();
  for (const line of readAll(path)) {
    const time = Date.parse(line.time);
    if (!("status" in line) || time < since || time >= until) continue;
    const { id, model, usage, basis, client = {} } = line;
    yield {
      id,
      model,
      usage,
      official: readUsd(line.official_usd),
      basis,
      answeredBy: line.upstream_model ?? "",
      time,
      ended: time + (line.duration_ms ?? 0),
      client: getOrAdd(clients, Object.values(client).join("\n"), client),
      requestId: line.upstream_request_id ?? "",
      ...corrections.get(id),
    };
  }
}

function readUsd(text: string | null): Decimal | null {
  return text === null ? null : parseDecimal(text);
}

/** Every line of the ledger that contains the words and has the right shape. */
function* readAll(path: string, words = ""): Generator<AnyLine, void> {
  using held = holdLedgerFiles(path);
  for (const source of held.sources) {
    for (const { text, whole } of readLines(source)) {
      const line = whole && text.includes(words) ? readLine(parseJson(text)) : null;
      if (line !== null) yield line;
    }
  }
}
