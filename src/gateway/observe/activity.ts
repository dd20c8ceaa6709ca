// The last requests, open streams and totals, in bounded memory.

import { FAILED_OUTCOMES } from "../../billing/ledger/line.ts";
import type { Listener, OpenStream, RequestRecord } from "./observer.ts";

export type Activity = ReturnType<typeof createActivity>;

const MAX_RECENT = 100;
/** Model lists are not shown:
 *  tools and `gateway run` ask for them at each start. */
const MODEL_LIST = /\/models(?:\/\{id\})?$/;

export function createActivity(now: () => number) {
  /** Oldest first. */
  const recent: RequestRecord[] = [];
  const open = new Map<string, OpenStream>();
  const totals = { requests: 0, failed: 0, refused: 0 };
  const listener: Listener = {
    requestDone: (record) => {
      if (MODEL_LIST.test(record.endpoint)) return;
      recent.push(record);
      if (recent.length === 2 * MAX_RECENT) recent.splice(0, MAX_RECENT);
      totals.requests += 1;
      if (FAILED_OUTCOMES.has(record.outcome)) totals.failed += 1;
      else if (record.outcome === "refused") totals.refused += 1;
    },
    streamOpened: (stream) => void open.set(stream.id, stream),
    streamClosed: (id) => void open.delete(id),
  };
  return {
    listener,
    since: now(),
    recent: (): readonly RequestRecord[] => recent.slice(-MAX_RECENT),
    open: () => [...open.values()],
    totals: () => ({ ...totals }),
  };
}
