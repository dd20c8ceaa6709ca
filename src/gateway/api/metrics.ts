// Counters in the Prometheus text format, fed by the observer. No secret and no prompt gets here.

import { CALL_KINDS } from "../../billing/usage.ts";
import { addUsd, formatUsd, parseUsd, type Usd } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { CHANNEL_STATES, type ChannelView } from "../channels/view.ts";
import type { Gateway } from "../gateway.ts";
import type { MetricsDetail, Observer, RequestRecord } from "../observe/observer.ts";

export interface Metrics {
  readonly observer: Observer;
  readonly render: (gateway: Gateway, detail: MetricsDetail) => string;
}

/** The counters by name, with what each says. */
const COUNTERS = {
  gateway_requests_total: "Requests that have ended.",
  gateway_tokens_total: "Tokens by kind; reasoning is a part of output.",
  gateway_tool_calls_total: "Tool calls that are priced per call, by kind.",
  gateway_charge_usd_total: "Charges since the start. The ledger is exact.",
  gateway_plan_usd_total: "What plans paid since the start, by official prices.",
} as const;
type Counter = keyof typeof COUNTERS;

interface Row {
  readonly counter: Counter;
  /** The label with the key's name. */
  readonly owner: string;
  readonly labels: string;
  value: Value;
}

type Value = number | Usd;

/** Clients choose model names, so their number has no bound. Beyond this many rows, the model is "other". */
const MAX_ROWS = 20_000;
const CALLS: ReadonlySet<string> = new Set(CALL_KINDS);

export function createMetrics(): Metrics {
  const rows = new Map<string, Row>();
  let openStreams = 0;
  return {
    observer: {
      requestDone: (record) => countRequest(rows, record),
      streamOpened: () => (openStreams += 1),
      streamClosed: () => (openStreams -= 1),
      notice: () => {},
      limitNear: () => {},
    },
    render: ({ channels, catalog, ledger, openSockets, now }, detail) => {
      const views = channels.view(catalog, now());
      return [
        ...renderCounters([...rows.values()], detail),
        ...renderLatencies(views),
        ...renderChannels(views),
        ...(detail === "all" ? renderWindows(views) : []),
        ...renderGauge("gateway_open_streams", "Streams that are being forwarded.", openStreams),
        ...renderGauge("gateway_websockets", "WebSockets of clients that are open.", openSockets),
        ...renderGauge(
          "gateway_ledger_writable",
          "0 while the ledger cannot be written.",
          ledger.problem !== null ? 0 : 1,
        ),
        "",
      ].join("\n");
    },
  };
}

function countRequest(rows: Map<string, Row>, record: RequestRecord): void {
  const { endpoint, outcome, status, usage, chargeUsd, planUsd } = record;
  const add = (counter: Counter, own: Readonly<Record<string, string>>, added: Value): void => {
    const row = findRow(rows, counter, record, own);
    row.value = addValue(row.value, added);
  };
  add("gateway_requests_total", { endpoint, status: String(status), outcome }, 1);
  if (record.channel === null) return;
  const model = rows.size < MAX_ROWS ? (record.model ?? "") : "other";
  for (const [kind, count] of Object.entries(usage ?? {})) {
    const counter = CALLS.has(kind) ? "gateway_tool_calls_total" : "gateway_tokens_total";
    if (count !== undefined) add(counter, { model, kind }, count);
  }
  if (chargeUsd !== null) add("gateway_charge_usd_total", { model }, parseUsd(chargeUsd));
  if (planUsd !== undefined) add("gateway_plan_usd_total", { model }, parseUsd(planUsd));
}

function findRow(
  rows: Map<string, Row>,
  counter: Counter,
  { key, group, channel }: RequestRecord,
  own: Readonly<Record<string, string>>,
): Row {
  const id = [counter, key, channel, ...Object.values(own)].join("\n");
  let row = rows.get(id);
  if (row === undefined) {
    const labels = writeLabels({ group: group ?? "", channel: channel ?? "", ...own });
    row = { counter, owner: writeLabels({ key: key ?? "" }), labels, value: 0 };
    rows.set(id, row);
  }
  return row;
}

/** A sum begins with 0. */
function addValue(sum: Value, added: Value): Value {
  if (typeof added === "number") return Number(sum) + added;
  return typeof sum === "number" ? added : addUsd(sum, added);
}

/** In public, there are no amounts, and the rows of all keys with the same other labels are one. */
function renderCounters(rows: readonly Row[], detail: MetricsDetail): string[] {
  const owner = typeof detail === "string" ? null : writeLabels(detail);
  const isPublic = detail === "public";
  return Object.entries(COUNTERS).flatMap(([counter, about]) => {
    if (isPublic && counter.endsWith("_usd_total")) return [];
    const sums = new Map<string, Value>();
    for (const row of rows) {
      if (row.counter !== counter || (owner ?? row.owner) !== row.owner) continue;
      const labels = isPublic ? row.labels : `${row.owner},${row.labels}`;
      sums.set(labels, addValue(sums.get(labels) ?? 0, row.value));
    }
    const write = (value: Value): string => (typeof value === "number" ? String(value) : formatUsd(value));
    const lines = Array.from(sums, ([labels, sum]) => `${counter}{${labels}} ${write(sum)}`);
    return [...head(counter, "counter", about), ...lines];
  });
}

/** Of each channel's last responses. */
function renderLatencies(channels: readonly ChannelView[]): string[] {
  const name = "gateway_first_byte_seconds";
  const about = "From a request to the first byte of its response, of a channel's last responses.";
  const write = (channel: string, quantile: string, ms: number | null): string[] =>
    ms === null ? [] : [`${name}{${writeLabels({ channel, quantile })}} ${ms / 1000}`];
  return [
    ...head(name, "gauge", about),
    ...channels.flatMap(({ name: channel, latency_ms, latency_p95_ms }) => [
      ...write(channel, "0.5", latency_ms),
      ...write(channel, "0.95", latency_p95_ms),
    ]),
  ];
}

function renderChannels(channels: readonly ChannelView[]): string[] {
  return [
    ...head("gateway_channel_state", "gauge", "1 for the state that a channel is in."),
    ...channels.flatMap(({ name, state }) =>
      CHANNEL_STATES.map(
        (each) =>
          `gateway_channel_state{${writeLabels({ channel: name, state: each })}} ${each === state ? 1 : 0}`,
      ),
    ),
  ];
}

function renderWindows(channels: readonly ChannelView[]): string[] {
  const rows = channels.flatMap(({ name: channel, allowance = [] }) =>
    allowance.flatMap(({ kind, name, used }) =>
      kind === "window"
        ? [`gateway_plan_window_used_percent{${writeLabels({ channel, window: name })}} ${used}`]
        : [],
    ),
  );
  const about = "How full a window of a plan is, as its upstream said last.";
  return rows.length === 0 ? [] : [...head("gateway_plan_window_used_percent", "gauge", about), ...rows];
}

function renderGauge(name: string, about: string, value: number): string[] {
  return [...head(name, "gauge", about), `${name} ${value}`];
}

function head(name: string, type: string, about: string): string[] {
  return [`# HELP ${name} ${about}`, `# TYPE ${name} ${type}`];
}

function writeLabels(labels: Readonly<Record<string, string>>): string {
  const escape = (value: string): string =>
    escapeUnprintable(value.slice(0, 200)).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(value)}"`)
    .join(",");
}
