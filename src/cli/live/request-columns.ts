// A finished request as one row of a table: for the log of `gateway serve` and for `gateway top`.

import type { Usage } from "../../billing/usage.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { createFlexTable, type FlexColumn, type FlexTable } from "../table.ts";
import { paint } from "../terminal.ts";

interface RequestColumn extends FlexColumn {
  /** `today`: what the day comes to with this request, a decimal in USD. */
  readonly read: (record: RequestRecord, today: string) => string;
}

const COLUMNS: readonly RequestColumn[] = [
  { title: "TIME", rank: 3, least: 8, most: 8, read: ({ time }) => formatTime(time) },
  { title: "KEY", rank: 6, least: 8, most: 16, read: ({ key }) => key ?? "-" },
  { title: "MODEL", rank: 1, least: 14, most: 32, read: ({ model, endpoint }) => model ?? endpoint },
  { title: "CHANNEL", rank: 10, least: 10, most: 20, read: ({ channel }) => channel ?? "-" },
  { title: "STATUS", rank: 0, least: 3, most: 6, read: ({ status }) => String(status) },
  right("FIRST", 11, 5, ({ firstByteMs }) => formatMs(firstByteMs)),
  right("TOOK", 4, 5, ({ durationMs }) => formatMs(durationMs)),
  tokens("IN", 8, ["input", "input_audio", "input_image", "input_video", "tool_prompt"]),
  tokens("READ", 12, ["cache_read", "cache_read_audio", "cache_read_image", "cache_read_video"]),
  tokens("WRITE", 13, ["cache_write", "cache_write_5m", "cache_write_1h"]),
  tokens("OUT", 7, ["output", "output_audio", "output_image", "output_video"]),
  { title: "CHARGE", rank: 2, least: 9, most: 15, read: describeCharge },
  { title: "TODAY", rank: 9, least: 9, most: 16, read: (_, today) => `$${today}` },
];

/** From this rank on, columns come only where no name is cut for them. */
const FIRST_EXTRA = 7;

function right(title: string, rank: number, least: number, read: RequestColumn["read"]): RequestColumn {
  return { title, rank, least, most: 9, align: "right", read };
}

function tokens(title: string, rank: number, kinds: ReadonlyArray<keyof Usage>): RequestColumn {
  return right(title, rank, 5, ({ usage }) => {
    const count = kinds.reduce((sum, kind) => sum + (usage?.[kind] ?? 0), 0);
    return count === 0 ? "" : String(count);
  });
}

function describeCharge({ chargeUsd, usage }: RequestRecord): string {
  if (chargeUsd !== null) return `$${chargeUsd}`;
  return usage === null ? "" : "unpriced";
}

export interface RequestTable {
  head(room: number): string;
  row(record: RequestRecord, today: string, room: number): string;
}

/** `expected`: names as long as those to come. `total`: with what the day comes to. */
export function createRequestTable(
  expected: { readonly key: string; readonly channel: string },
  total: boolean,
): RequestTable {
  const columns = total ? COLUMNS : COLUMNS.filter(({ title }) => title !== "TODAY");
  const usual: Readonly<Record<string, string>> = {
    ...USUAL,
    KEY: expected.key,
    CHANNEL: expected.channel,
  };
  const table: FlexTable = createFlexTable(
    columns.map((column) => (column.rank < FIRST_EXTRA ? column : { ...column, extra: true })),
    columns.map(({ title }) => usual[title] ?? ""),
  );
  return {
    head: (room) => table.head(room),
    row: (record, today, room) =>
      table.row(
        columns.map(({ read }) => read(record, today)),
        room,
        (column, text) => paintCell(column.title, text, record),
      ),
  };
}

/** So that the first lines stand as the later ones do. */
const USUAL = {
  TIME: "12:00:00",
  MODEL: "claude-sonnet-4-5",
  FIRST: "999ms",
  TOOK: "999ms",
  IN: "99999",
  READ: "99999",
  OUT: "99999",
  CHARGE: "$0.000000",
} as const;

function paintCell(title: string, text: string, { status }: RequestRecord): string {
  if (title === "STATUS") return paint(status < 400 ? "green" : status < 500 ? "yellow" : "red", text);
  return title === "TIME" || title === "TODAY" ? paint("dim", text) : text;
}

/** Why it was refused or how it broke; empty where all is well. */
export function describeTrouble({ outcome, problem }: RequestRecord): string {
  if (outcome === "complete") return problem ?? "";
  const what = outcome.replaceAll("_", " ");
  return problem === null ? what : `${what}: ${problem}`;
}

function formatTime(time: number): string {
  return new Date(time).toTimeString().slice(0, 8);
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "-";
  if (ms < 1000) return `${ms}ms`;
  return ms < 600_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.round(ms / 60_000)}min`;
}
