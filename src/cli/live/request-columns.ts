// The columns of a finished request, for the log of `gateway serve` and for `gateway top`.

import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS, type Usage } from "../../billing/usage.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { type Column, createTable, number, type Table } from "../terminal/table.ts";
import { paint } from "../terminal/terminal.ts";
import { formatAmount, formatMs, shortenId, shortenSession } from "../terminal/text.ts";

interface RequestRow {
  readonly record: RequestRecord;
  /** The spending of the day including this request, a decimal in USD. */
  readonly today: string;
}

/** The status of a request that has not ended. */
export const OPEN = 0;

/** Some cells are of usual width, so that the first lines align with later ones. */
const COLUMNS: ReadonlyArray<Column<RequestRow>> = [
  {
    title: "TIME",
    spare: 3,
    usual: "12:00:00",
    read: ({ record }) => new Date(record.time).toTimeString().slice(0, 8),
    paint: (text) => paint("dim", text),
  },
  { title: "ID", spare: 5, least: 9, usual: "0mi9x2k3a", read: ({ record }) => shortenId(record.id) },
  {
    title: "KEY",
    name: true,
    spare: 6,
    least: 8,
    most: 16,
    read: ({ record }) => record.key ?? "-",
  },
  {
    title: "MODEL",
    name: true,
    least: 14,
    most: 32,
    usual: "claude-sonnet-4-5",
    read: ({ record: { model, endpoint } }) => model ?? endpoint,
  },
  { title: "CHANNEL", spare: 10, least: 20, most: 20, read: ({ record }) => record.channel ?? "-" },
  { title: "LABEL", spare: 13, least: 8, most: 20, read: ({ record }) => record.client?.label ?? "" },
  {
    title: "SESSION",
    spare: 14,
    least: 9,
    usual: "~0mi9x2k3",
    read: ({ record }) => shortenSession(record.client?.session ?? ""),
  },
  {
    title: "STATUS",
    read: ({ record: { status } }) => (status === OPEN ? "open" : String(status)),
    paint: (text, { record: { status } }) =>
      paint(status < 400 ? "green" : status < 500 ? "yellow" : "red", text),
  },
  { ...number("FIRST", ({ record }) => formatMs(record.firstByteMs), 11), usual: "999ms" },
  { ...number("TOOK", ({ record }) => formatMs(record.durationMs), 4), usual: "999ms" },
  { ...number("IN", ({ record }) => formatCell(countInput(record.usage)), 8), usual: "99999" },
  number("CACHED", ({ record }) => describeCachedShare(record.usage), 9),
  { ...number("OUT", ({ record }) => formatCell(sumKinds(record.usage, OUTPUT_KINDS)), 7), usual: "99999" },
  { ...number("CHARGE", ({ record }) => describeCharge(record)), usual: "$0.000000" },
  {
    ...number("TODAY", ({ today }) => `$${formatAmount(today)}`, 12),
    usual: "$0.000000",
    paint: (text) => paint("dim", text),
  },
];

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

/** What a plan paid is not a charge: it has a sign of its own. */
function describeCharge({ status, chargeUsd, planUsd, usage }: RequestRecord): string {
  if (status === OPEN) return "";
  if (planUsd !== undefined) return `(plan $${formatAmount(planUsd)})`;
  if (chargeUsd !== null) return `$${formatAmount(chargeUsd)}`;
  return usage === null ? "" : "unpriced";
}

export type RequestTable = Table<RequestRow>;

/** `expected`: the longest names to come. `total`: with the spending of the day. */
export function createRequestTable(
  expected: { readonly key: string; readonly channel: string },
  total: boolean,
): RequestTable {
  const columns = total ? COLUMNS : COLUMNS.filter(({ title }) => title !== "TODAY");
  const names = new Map([
    ["KEY", expected.key],
    ["CHANNEL", expected.channel],
  ]);
  return createTable(
    columns.map((column) => ({ ...column, usual: names.get(column.title) ?? column.usual ?? "" })),
  );
}

/** Why the request was refused or how it broke. Empty if all is well. */
export function describeProblem({ outcome, problem }: RequestRecord): string {
  const why = escapeUnprintable((problem ?? "").replaceAll(/\s+/g, " "));
  if (outcome === "complete") return why;
  const what = outcome.replaceAll("_", " ");
  return problem === null ? what : `${what}: ${why}`;
}
