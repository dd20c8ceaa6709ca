// What the gateway is doing and has just done, in bounded memory: the last
// requests, the streams that are open, counts since the start. For the control path.

import type { Observer, OpenStream, RequestRecord } from "./observer.ts";

export type ActivityEvent =
  | { readonly type: "request"; readonly record: RequestRecord }
  | { readonly type: "stream_opened"; readonly stream: Omit<OpenStream, "tokens"> }
  | { readonly type: "stream_closed"; readonly id: string }
  | { readonly type: "notice"; readonly level: string; readonly text: string };

export interface Totals {
  readonly requests: number;
  readonly failed: number;
  readonly refused: number;
}

export interface Activity {
  readonly observer: Observer;
  readonly since: number;
  /** Oldest first. */
  recent(): readonly RequestRecord[];
  open(): readonly OpenStream[];
  totals(): Totals;
  /** Returns what ends it. */
  follow(listener: (event: ActivityEvent) => void): () => void;
}

const RECENT_KEPT = 100;
const FAILED = new Set(["upstream_cut", "upstream_error", "interrupted"]);

export function createActivity(now: () => number): Activity {
  const recent: RequestRecord[] = [];
  const open = new Map<string, OpenStream>();
  const listeners = new Set<(event: ActivityEvent) => void>();
  const totals = { requests: 0, failed: 0, refused: 0 };
  const tell = (event: ActivityEvent): void => listeners.forEach((listener) => listener(event));
  return {
    observer: {
      requestDone: (record) => {
        recent.push(record);
        if (recent.length > RECENT_KEPT) recent.shift();
        totals.requests += 1;
        if (FAILED.has(record.outcome)) totals.failed += 1;
        else if (record.outcome === "refused") totals.refused += 1;
        if (listeners.size > 0) tell({ type: "request", record });
      },
      streamOpened: (stream) => {
        open.set(stream.id, stream);
        const { tokens: _, ...told } = stream;
        if (listeners.size > 0) tell({ type: "stream_opened", stream: told });
      },
      streamClosed: (id) => {
        if (open.delete(id) && listeners.size > 0) tell({ type: "stream_closed", id });
      },
      notice: (level, text) => tell({ type: "notice", level, text }),
    },
    since: now(),
    recent: () => recent,
    open: () => [...open.values()],
    totals: () => ({ ...totals }),
    follow: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
