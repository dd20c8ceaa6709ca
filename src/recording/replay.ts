// Finds a request's recorded exchange: the first unused one with the same request.
// If all are used, the last one answers again, for example a request for models.

import { dropKey, pathOf, queryOf } from "../dialects/path.ts";
import { type Difference, findDifference, readComparable } from "./match.ts";
import type { RecordedExchange, Recording } from "./store.ts";

export interface AskedRequest {
  readonly method: string;
  readonly target: string;
  readonly body: Uint8Array;
  readonly transport?: "websocket";
}

export type FoundExchange =
  | { readonly kind: "found"; readonly exchange: RecordedExchange; readonly place: number }
  /** `why` may quote the request; `where` never does. */
  | { readonly kind: "miss"; readonly where: string; readonly why: string };

interface Entry {
  readonly exchange: RecordedExchange;
  readonly place: number;
  readonly route: string;
  isUsed: boolean;
}

export class Replay {
  readonly recording: Recording;
  readonly #entries: readonly Entry[];
  misses = 0;

  constructor(recording: Recording) {
    this.recording = recording;
    this.#entries = recording.exchanges.map((exchange, index) => ({
      exchange,
      place: index + 1,
      route: nameRoute(exchange.request.method, exchange.request.target, exchange.transport),
      isUsed: false,
    }));
  }

  get total(): number {
    return this.#entries.length;
  }

  get used(): number {
    return this.#entries.filter(({ isUsed }) => isUsed).length;
  }

  find(asked: AskedRequest): FoundExchange {
    const differences = new Map<Entry, Difference>();
    const entry = this.#findSame(asked, differences);
    if (entry !== null) {
      entry.isUsed = true;
      return { kind: "found", exchange: entry.exchange, place: entry.place };
    }
    this.misses += 1;
    return explainMiss(`${asked.method} ${pathOf(asked.target)}`, differences);
  }

  #findSame(
    { method, target, body, transport }: AskedRequest,
    differences: Map<Entry, Difference>,
  ): Entry | null {
    const route = nameRoute(method, target, transport);
    const all = this.#entries.filter((entry) => entry.route === route);
    const sent = readComparable(body);
    const used = all.filter(({ isUsed }) => isUsed).toReversed();
    for (const entry of [...all.filter(({ isUsed }) => !isUsed), ...used]) {
      const recorded = readComparable(this.recording.readRequest(entry.exchange));
      const difference = findDifference(recorded, sent);
      if (difference === null) return entry;
      differences.set(entry, difference);
    }
    return null;
  }

  readAnswer(exchange: RecordedExchange): Buffer[] {
    const response = this.recording.readResponse(exchange);
    let end = 0;
    return exchange.response.chunks.map(([, size]) => response.subarray(end, (end += size)));
  }
}

/** Names the recorded request that begins most like the sent one. Unused requests come first. */
function explainMiss(what: string, differences: ReadonlyMap<Entry, Difference>): FoundExchange {
  const [nearest] = [...differences].toSorted(
    ([a, one], [b, other]) => Number(a.isUsed) - Number(b.isUsed) || other.equal - one.equal,
  );
  if (nearest === undefined) {
    const where = `the recording has no ${what}`;
    return { kind: "miss", where, why: where };
  }
  const [{ place }, { path, recorded, sent }] = nearest;
  const where = `${what} differs from request ${place} of the recording, first in ${path === "" ? "the body" : path}`;
  return {
    kind: "miss",
    where,
    why: `${where}: recorded ${JSON.stringify(recorded)}, sent ${JSON.stringify(sent)}`,
  };
}

function nameRoute(method: string, target: string, transport: string | undefined): string {
  const parts = dropKey(queryOf(target)).slice(1).split("&");
  const kept = parts.filter((part) => part !== "").toSorted();
  return [transport ?? "", method, pathOf(target), ...kept].join(" ");
}
