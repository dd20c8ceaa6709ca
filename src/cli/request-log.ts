// The line of each request that `gateway serve` prints: for eyes (text) or for scripts (json).

import type { Observer, RequestRecord } from "../gateway/observer.ts";
import type { Usage } from "../billing/usage.ts";

export type LogForm = "text" | "json" | "off";

type Print = (line: string) => void;

const SILENT: Observer = {
  requestDone: () => {},
  streamOpened: () => {},
  streamClosed: () => {},
  notice: () => {},
};

/** `print` writes a line for requests, `warn` one for people. */
export function createRequestLog(form: LogForm, print: Print, warn: Print): Observer {
  if (form === "off")
    return { ...SILENT, notice: (level, text) => level !== "note" && warn(`${level}: ${text}`) };
  if (form === "json") {
    return {
      ...SILENT,
      requestDone: (record) =>
        print(JSON.stringify({ ...record, time: new Date(record.time).toISOString() })),
      notice: (level, text) => print(JSON.stringify({ time: new Date().toISOString(), level, notice: text })),
    };
  }
  return {
    ...SILENT,
    requestDone: (record) => print(formatRecord(record)),
    notice: (level, text) => warn(level === "note" ? text : `${level}: ${text}`),
  };
}

export function formatRecord(record: RequestRecord): string {
  const columns = [
    new Date(record.time).toTimeString().slice(0, 8),
    (record.key ?? "-").padEnd(12),
    (record.model ?? record.endpoint).padEnd(28),
    (record.channel ?? "-").padEnd(16),
    String(record.status).padEnd(3),
    `first ${formatMs(record.firstByteMs)}`.padEnd(13),
    `total ${formatMs(record.durationMs)}`.padEnd(13),
    formatUsage(record.usage),
    record.chargeUsd === null ? "" : `$${record.chargeUsd}`,
    record.outcome === "complete" ? "" : record.outcome,
    record.problem ?? "",
  ];
  return columns
    .filter((column) => column !== "")
    .join("  ")
    .trimEnd();
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "-";
  return ms < 10_000 ? `${ms}ms` : `${(ms / 1000).toFixed(1)}s`;
}

const SHORT: ReadonlyArray<readonly [label: string, kinds: readonly (keyof Usage)[]]> = [
  ["in", ["input", "input_audio", "input_image", "input_video", "tool_prompt"]],
  ["read", ["cache_read", "cache_read_audio", "cache_read_image", "cache_read_video"]],
  ["write", ["cache_write", "cache_write_5m", "cache_write_1h"]],
  ["out", ["output", "output_audio", "output_image"]],
];

/** Tokens by kind, those that are not zero: `in 12 read 11000 out 350`. */
export function formatUsage(usage: Usage | null): string {
  if (usage === null) return "";
  const parts = SHORT.map(([label, kinds]) => ({
    label,
    tokens: kinds.reduce((sum, kind) => sum + (usage[kind] ?? 0), 0),
  }));
  return parts
    .filter(({ tokens }) => tokens > 0)
    .map(({ label, tokens }) => `${label} ${tokens}`)
    .join(" ");
}
