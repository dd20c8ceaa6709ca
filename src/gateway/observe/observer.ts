// What happens in the gateway, told to whoever watches: the request log, the
// metrics and the live view. Watchers never slow a request: they are called with
// plain records, synchronously, and must not throw.

import type { Usage } from "../../billing/usage.ts";

export interface RequestRecord {
  readonly id: string;
  /** Wall clock at arrival, milliseconds. */
  readonly time: number;
  readonly key: string | null;
  readonly group: string | null;
  readonly model: string | null;
  readonly channel: string | null;
  readonly endpoint: string;
  readonly status: number;
  readonly outcome: string;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly usage: Usage | null;
  readonly chargeUsd: string | null;
  /** Why it was refused or broke, for people. */
  readonly problem: string | null;
}

/** A stream that is open now, for the live view. */
export interface OpenStream {
  readonly id: string;
  readonly key: string;
  readonly model: string | null;
  readonly channel: string;
  readonly since: number;
  readonly tokens: () => number;
}

export interface Observer {
  requestDone(record: RequestRecord): void;
  streamOpened(stream: OpenStream): void;
  streamClosed(id: string): void;
  notice(level: "note" | "warning" | "error", text: string): void;
}

/** Calls several watchers as one. */
export function joinObservers(observers: readonly Observer[]): Observer {
  return {
    requestDone: (record) => observers.forEach((observer) => observer.requestDone(record)),
    streamOpened: (stream) => observers.forEach((observer) => observer.streamOpened(stream)),
    streamClosed: (id) => observers.forEach((observer) => observer.streamClosed(id)),
    notice: (level, text) => observers.forEach((observer) => observer.notice(level, text)),
  };
}

/** A fault of the gateway itself, with the place where it happened: for whoever mends it. */
export function reportFault(error: unknown, observer: Observer): void {
  const told = error instanceof Error ? (error.stack ?? error.message) : String(error);
  observer.notice("error", `the gateway failed inside, please report this: ${told}`);
}
