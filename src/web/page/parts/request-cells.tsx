// The row of one request, of the ledger or live.

import type { RequestRecord, RequestRow } from "../../api.ts";
import { hrefOf } from "../state/route.ts";
import { Pill } from "./basic.tsx";
import {
  formatCharge,
  formatClock,
  formatCount,
  formatFull,
  formatMoment,
  formatMs,
  formatRate,
  formatShort,
  isFailed,
} from "./format.ts";
import { Amount, type Column } from "./table.tsx";

/** `when`: they are listed by their beginning, or as they end. `linkTo`: where a row leads. */
export function listColumns(
  when: "began" | "ended",
  linkTo: (id: string) => string,
): readonly Column<RequestRow>[] {
  return [
    [
      when === "began" ? "Time" : "Ended",
      "",
      ({ id, time, duration_ms: duration }) => (
        <a href={linkTo(id)}>
          <time title={`began ${formatFull(Date.parse(time))}`}>
            {when === "began"
              ? formatMoment(Date.parse(time))
              : formatClock(Date.parse(time) + (duration ?? 0))}
          </time>
        </a>
      ),
    ],
    ["Model", "name", ({ model }) => model],
    ["Key", "name more", ({ key }) => key],
    ["Tool", "name some", ({ tool }) => tool],
    ["Label", "name some", ({ label }) => label],
    ["Session", " some", ({ session }) => <SessionName id={session} />],
    ["Channel", "name rare", ({ channel }) => channel],
    ["Status", "", (row) => <Outcome row={row} />],
    ["First byte", "number rare", (row) => formatMs(row.first_byte_ms)],
    ["Duration", "number some", (row) => formatMs(row.duration_ms)],
    ["In", "number some", ({ input }) => (input === 0 ? null : formatShort(input))],
    ["Cached", "number some", (row) => (row.input === 0 ? null : <Cached row={row} />)],
    ["Out", "number some", ({ output }) => (output === 0 ? null : formatShort(output))],
    [
      "Charge",
      "number",
      (row) => <Amount text={formatCharge(row.charge_usd, row.paid_by_plan_usd)} href={linkTo(row.id)} />,
    ],
  ];
}

/** Enough to tell sessions apart. */
const ID_LENGTH = 8;
const INFERRED = /^inferred-/;

function SessionName({ id }: { readonly id: string }) {
  if (id === "") return "–";
  return (
    <a title={id} href={hrefOf(["sessions", id])}>
      {id.replace(INFERRED, "").slice(0, ID_LENGTH)}
    </a>
  );
}

function Cached({ row: { cached, input, missed } }: { readonly row: RequestRow }) {
  const share = formatRate(cached / input);
  if (missed === undefined) return share;
  const { tokens, because } = missed;
  return (
    <span class="missed" title={`${formatCount(tokens)} tokens were missed: ${because.replaceAll("_", " ")}`}>
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

const write = (name: string | null | undefined): string => name ?? "";

/** Of the live feed, as the ledger's have it. */
export function toRow({ id, time, client, usage, ...request }: RequestRecord): RequestRow {
  const { status, outcome, planUsd } = request;
  const { tool = null, label = null, session, agent } = client ?? {};
  const { cache_read: cached = 0, output = 0 } = usage ?? {};
  return {
    id,
    time: new Date(time).toISOString(),
    key: write(request.key),
    group: write(request.group),
    channel: write(request.channel),
    model: write(request.model),
    tool,
    label,
    session: write(session),
    agent: write(agent),
    status,
    outcome,
    first_byte_ms: request.firstByteMs,
    duration_ms: request.durationMs,
    input: sumInput(usage ?? {}),
    cached,
    output,
    charge_usd: request.chargeUsd,
    ...(planUsd && { paid_by_plan_usd: planUsd }),
  };
}

const INPUTS = /^(input|cache_read|cache_write|tool_prompt)/;

function sumInput(usage: NonNullable<RequestRecord["usage"]>): number {
  return Object.entries(usage).reduce(
    (sum, [kind, count]) => sum + (INPUTS.test(kind) ? (count ?? 0) : 0),
    0,
  );
}
