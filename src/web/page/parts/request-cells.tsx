// The row of one request, of the ledger or live.

import type { RequestRecord, RequestRow } from "../../api.ts";
import { Charge, type Column, Name, Pill } from "./basic.tsx";
import { formatCharge, formatCount, formatMs, formatRate, formatShort, isFailed } from "./format.ts";
import { SessionName } from "./session-name.tsx";

/** `time`: what the first column has. */
export function listColumns(time: string): readonly Column[] {
  return [
    [time],
    ["Model"],
    ["Key", "more"],
    ["Tool", "some"],
    ["Label", "some"],
    ["Session", "some"],
    ["Channel", "rare"],
    ["Status"],
    ["First byte", "number rare"],
    ["Duration", "number some"],
    ["In", "number some"],
    ["Cached", "number some"],
    ["Out", "number some"],
    ["Charge", "number"],
  ];
}

/** All but the time. */
export function RequestCells({ row, href }: { readonly row: RequestRow; readonly href: string }) {
  const { model, key, tool, label, channel, input, cached, output, missed } = row;
  return (
    <>
      <Name text={model} />
      <Name text={key} more="more" />
      <Name text={tool} more="some" />
      <Name text={label} more="some" />
      <SessionName id={row.session} />
      <Name text={channel} more="rare" />
      <td>
        <Outcome row={row} />
      </td>
      <td class="number rare">{formatMs(row.first_byte_ms)}</td>
      <td class="number some">{formatMs(row.duration_ms)}</td>
      <td class="number some">{input === 0 ? "–" : formatShort(input)}</td>
      <td
        class={missed === undefined ? "number some" : "number some missed"}
        title={
          missed && `${formatCount(missed.tokens)} tokens were missed: ${missed.because.replaceAll("_", " ")}`
        }
      >
        {input === 0 ? "–" : formatRate(cached / input)}
      </td>
      <td class="number some">{output === 0 ? "–" : formatShort(output)}</td>
      <Charge text={formatCharge(row.charge_usd, row.paid_by_plan_usd)} href={href} />
    </>
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
