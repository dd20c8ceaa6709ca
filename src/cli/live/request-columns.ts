// The columns of a finished request, for the log of `gateway serve` and for `gateway top`.

import { CACHE_READ_KINDS, OUTPUT_KINDS, PROMPT_KINDS, type Usage } from "../../billing/usage.ts";
import type { RequestRecord } from "../../gateway/observe/observer.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { createColumns, type ListColumn } from "../terminal/listing.ts";
import { createTable, type Table } from "../terminal/table.ts";
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
const COLUMNS: ReadonlyArray<ListColumn<RequestRow>> = [
  ["TIME", ({ record }) => formatTime(record), "text", { spare: 3, usual: "12:00:00", paint: paintDim }],
  ["ID", ({ record }) => shortenId(record.id), "text", { spare: 5, least: 9, usual: "0mi9x2k3a" }],
  ["KEY", ({ record }) => record.key ?? "-", "text", { name: true, spare: 6, least: 8, most: 16 }],
  [
    "MODEL",
    ({ record: { model, endpoint } }) => model ?? endpoint,
    "text",
    { name: true, least: 14, most: 32, usual: "claude-sonnet-4-5" },
  ],
  ["CHANNEL", ({ record }) => record.channel ?? "-", "text", { spare: 10, least: 20, most: 20 }],
  ["LABEL", ({ record }) => record.client?.label, "text", { spare: 13, least: 8, most: 20 }],
  [
    "SESSION",
    ({ record }) => shortenSession(record.client?.session ?? ""),
    "text",
    { spare: 14, least: 9, usual: "~0mi9x2k3" },
  ],
  [
    "STATUS",
    ({ record: { status } }) => (status === OPEN ? "open" : String(status)),
    "text",
    {
      paint: (text, { record: { status } }) =>
        paint(status < 400 ? "green" : status < 500 ? "yellow" : "red", text),
    },
  ],
  ["FIRST", ({ record }) => formatMs(record.firstByteMs), "exact", { spare: 11, usual: "999ms" }],
  ["TOOK", ({ record }) => formatMs(record.durationMs), "exact", { spare: 4, usual: "999ms" }],
  ["IN", ({ record }) => countInput(record.usage) || null, "exact", { spare: 8, usual: "99999" }],
  ["CACHED", ({ record }) => describeCachedShare(record.usage), "exact", { spare: 9 }],
  [
    "OUT",
    ({ record }) => sumKinds(record.usage, OUTPUT_KINDS) || null,
    "exact",
    { spare: 7, usual: "99999" },
  ],
  ["CHARGE", ({ record }) => describeCharge(record), "exact", { usual: "$0.000000" }],
  [
    "TODAY",
    ({ today }) => `$${formatAmount(today)}`,
    "exact",
    { spare: 12, usual: "$0.000000", paint: paintDim },
  ],
];

function paintDim(text: string): string {
  return paint("dim", text);
}

function formatTime({ time }: RequestRecord): string {
  return new Date(time).toTimeString().slice(0, 8);
}

function sumKinds(usage: Usage | null, kinds: ReadonlyArray<keyof Usage>): number {
  return kinds.reduce((sum, kind) => sum + (usage?.[kind] ?? 0), 0);
}

function countInput(usage: Usage | null): number {
  return sumKinds(usage, PROMPT_KINDS);
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
  const columns = createColumns(COLUMNS).filter(({ title }) => total || title !== "TODAY");
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
