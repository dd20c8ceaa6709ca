// Events for the log, metrics and live view. Listeners must be fast and not throw.

import type { LimitWarning } from "../../billing/limits/alerts.ts";
import type { Identity, LineDraft } from "../../billing/ledger/line.ts";
import type { Usage } from "../../billing/usage.ts";

export interface RequestRecord {
  readonly id: string;
  /** Wall clock at arrival, milliseconds. */
  readonly time: number;
  readonly key: string | null;
  readonly group: string | null;
  readonly model: string | null;
  readonly channel: string | null;
  readonly client: Identity | null;
  readonly endpoint: string;
  readonly status: number;
  readonly outcome: string;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly usage: Usage | null;
  readonly chargeUsd: string | null;
  readonly planUsd?: string | undefined;
  readonly problem: string | null;
}

export interface OpenStream {
  readonly id: string;
  readonly key: string;
  readonly client: Identity;
  readonly model: string | null;
  readonly channel: string;
  readonly since: number;
  readonly tokens: () => number;
}

export interface Observer {
  limitNear(warning: LimitWarning): void;
  requestDone(record: RequestRecord, line?: LineDraft | null): void;
  streamOpened(stream: OpenStream): void;
  streamClosed(id: string): void;
  notice(level: "note" | "warning" | "error", text: string): void;
}

/** `public`: no amounts and no key names. An object:
 *  only the series of its key. */
export type MetricsDetail = "all" | "public" | { readonly key: string };

export type Listener = Partial<Observer>;

export function joinListeners(listeners: readonly Listener[]): Observer {
  return {
    limitNear: (warning) => listeners.forEach((each) => each.limitNear?.(warning)),
    requestDone: (record, line) => {
      for (const each of listeners) each.requestDone?.(record, line);
    },
    streamOpened: (stream) => listeners.forEach((each) => each.streamOpened?.(stream)),
    streamClosed: (id) => listeners.forEach((each) => each.streamClosed?.(id)),
    notice: (level, text) => listeners.forEach((each) => each.notice?.(level, text)),
  };
}

export function reportFault(error: unknown, observer: Observer): void {
  const details = error instanceof Error ? (error.stack ?? error.message) : String(error);
  observer.notice("error", `the gateway failed inside, please report this: ${details}`);
}

const SHORTAGE_PAUSE_MS = 60_000;

export type ShortageAlarm = (why: string) => void;

export function createShortageAlarm(observer: Pick<Observer, "notice">, now: () => number): ShortageAlarm {
  let lastAt = Number.NEGATIVE_INFINITY;
  return (why) => {
    // The difference is negative after the clock was set back.
    if (Math.abs(now() - lastAt) < SHORTAGE_PAUSE_MS) return;
    lastAt = now();
    observer.notice(
      "warning",
      `requests are refused: ${why}. The channels are not to blame, and none gets a cooldown for it.`,
    );
  };
}
