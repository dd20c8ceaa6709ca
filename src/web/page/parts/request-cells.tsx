// The columns of the requests in the ledger.

import type { RequestRow } from "../../../billing/reports/requests.ts";
import { describeCause } from "../../../billing/reports/words.ts";
import { Charge, Moment, Pill } from "./basic.tsx";
import { formatCount, formatMs, formatRate, formatShort, isFailed } from "./format.ts";
import type { Column } from "./table.tsx";

export const REQUEST_COLUMNS: readonly Column<RequestRow>[] = [
  ["Time", "", ({ time }) => <Moment time={time} />],
  ["Model", "name", ({ model }) => model],
  ["Key", "name more", ({ key }) => key],
  ["Tool", "name some", ({ tool }) => tool],
  ["Label", "name some", ({ label }) => label],
  ["Session", " some", ({ session }) => session.replace(INFERRED, "").slice(0, ID_LENGTH)],
  ["Channel", "name rare", ({ channel }) => channel],
  ["Status", "", (row) => <Outcome row={row} />],
  ["First byte", "number rare", (row) => formatMs(row.first_byte_ms)],
  ["Duration", "number some", (row) => formatMs(row.duration_ms)],
  ["In", "number some", ({ input }) => (input === 0 ? null : formatShort(input))],
  ["Cached", "number some", (row) => (row.input === 0 ? null : <Cached row={row} />)],
  ["Out", "number some", ({ output }) => (output === 0 ? null : formatShort(output))],
  ["Charge", "number", (row) => <Charge usd={row.charge_usd} plan={row.paid_by_plan_usd} />],
];

/** Enough to tell sessions apart. */
const ID_LENGTH = 8;
const INFERRED = /^inferred-/;

function Cached({ row: { cached, input, missed } }: { readonly row: RequestRow }) {
  const share = formatRate(cached / input);
  if (missed === undefined) return share;
  return (
    <span class="missed" title={`${formatCount(missed.tokens)} tokens were missed: ${describeCause(missed)}`}>
      {share}
    </span>
  );
}

function Outcome({ row: { outcome, status } }: { readonly row: RequestRow }) {
  if (outcome === "complete" && (status ?? 0) < 400) return <Pill tone="good">{status ?? "ok"}</Pill>;
  const tone = outcome === "client_closed" ? "calm" : isFailed(outcome) ? "bad" : "warn";
  return (
    <Pill tone={tone}>
      {status}
      <span class="more"> {outcome.replaceAll("_", " ")}</span>
    </Pill>
  );
}
