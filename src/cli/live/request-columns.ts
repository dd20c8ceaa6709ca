// The columns of a finished request, for the log of `gateway serve` and for `gateway top`.

import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS, type Usage } from "../../billing/usage.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { type Column, createTable } from "../terminal/table.ts";
import { paint } from "../terminal/terminal.ts";
import { formatAmount, shortenId, shortenSession } from "../terminal/text.ts";

interface RequestColumn extends Column {
  /** `today`: the spending of the day including this request, a decimal in USD. */
  readonly read: (record: RequestRecord, today: string) => string;
}

const COLUMNS: readonly RequestColumn[] = [
  { title: "TIME", spare: 3, firm: true, read: ({ time }) => formatTime(time) },
  { title: "ID", spare: 5, least: 9, read: ({ id }) => shortenId(id) },
  { title: "KEY", name: true, spare: 6, firm: true, least: 8, most: 16, read: ({ key }) => key ?? "-" },
  { title: "MODEL", name: true, least: 14, most: 32, read: ({ model, endpoint }) => model ?? endpoint },
  { title: "CHANNEL", spare: 10, least: 20, most: 20, read: ({ channel }) => channel ?? "-" },
  { title: "LABEL", spare: 13, least: 8, most: 20, read: ({ client }) => client?.label ?? "" },
  { title: "SESSION", spare: 14, least: 9, read: ({ client }) => shortenSession(client?.session ?? "") },
  { title: "STATUS", read: ({ status }) => String(status) },
  number("FIRST", 11, ({ firstByteMs }) => formatMs(firstByteMs)),
  { ...number("TOOK", 4, ({ durationMs }) => formatMs(durationMs)), firm: true },
  number("IN", 8, ({ usage }) => formatCell(countInput(usage))),
  number("CACHED", 9, ({ usage }) => describeCachedShare(usage)),
  number("OUT", 7, ({ usage }) => formatCell(sumKinds(usage, OUTPUT_KINDS))),
  { title: "CHARGE", align: "right", read: describeCharge },
  number("TODAY", 12, (_, today) => `$${formatAmount(today)}`),
];

function number(title: string, spare: number, read: RequestColumn["read"]): RequestColumn {
  return { title, spare, align: "right", read };
}

function sumKinds(usage: Usage | null, kinds: ReadonlyArray<keyof Usage>): number {
  return kinds.reduce((sum, kind) => sum + (usage?.[kind] ?? 0), 0);
}

function countInput(usage: Usage | null): number {
  return sumKinds(usage, PROMPT_KINDS);
}

function formatCell(count: number): string {
  return count === 0 ? "" : String(count);
}

/** The share of the input that was read from the cache. Rounded down: 100% means all of it. */
function describeCachedShare(usage: Usage | null): string {
  const cached = sumKinds(usage, CACHE_READ_KINDS);
  return cached === 0 ? "" : `${Math.floor((cached / countInput(usage)) * 100)}%`;
}

function describeCharge({ chargeUsd, usage }: RequestRecord): string {
  if (chargeUsd !== null) return `$${formatAmount(chargeUsd)}`;
  return usage === null ? "" : "unpriced";
}

export interface RequestTable {
  head(room: number): string;
  rows(records: readonly RequestRecord[], today: string, room: number): string[];
}

/** `expected`: the longest names to come. `total`: with the spending of the day. */
export function createRequestTable(
  expected: { readonly key: string; readonly channel: string },
  total: boolean,
): RequestTable {
  const columns = total ? COLUMNS : COLUMNS.filter(({ title }) => title !== "TODAY");
  const usual: Readonly<Record<string, string>> = {
    ...USUAL_CELLS,
    KEY: expected.key,
    CHANNEL: expected.channel,
  };
  const table = createTable(
    columns,
    columns.map(({ title }) => usual[title] ?? ""),
  );
  return {
    head: (room) => table.head(room),
    rows: (records, today, room) =>
      table.rows(
        records.map((record) => columns.map(({ read }) => read(record, today))),
        room,
        (title, text, row) => paintCell(title, text, records[row]?.status ?? 0),
      ),
  };
}

/** Cells of usual width, so that the first lines align with later ones. */
const USUAL_CELLS = {
  TIME: "12:00:00",
  ID: "0mi9x2k3a",
  SESSION: "~0mi9x2k3",
  MODEL: "claude-sonnet-4-5",
  FIRST: "999ms",
  TOOK: "999ms",
  IN: "99999",
  OUT: "99999",
  CHARGE: "$0.000000",
  TODAY: "$0.000000",
} as const;

function paintCell(title: string, text: string, status: number): string {
  if (title === "STATUS") return paint(status < 400 ? "green" : status < 500 ? "yellow" : "red", text);
  return title === "TIME" || title === "TODAY" ? paint("dim", text) : text;
}

/** Why the request was refused or how it broke. Empty if all is well. */
export function describeProblem({ outcome, problem }: RequestRecord): string {
  const why = escapeUnprintable((problem ?? "").replaceAll(/\s+/g, " "));
  if (outcome === "complete") return why;
  const what = outcome.replaceAll("_", " ");
  return problem === null ? what : `${what}: ${why}`;
}

function formatTime(time: number): string {
  return new Date(time).toTimeString().slice(0, 8);
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "-";
  if (ms < 1000) return `${ms}ms`;
  return ms < 600_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.round(ms / 60_000)}min`;
}
