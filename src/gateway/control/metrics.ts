// Counters in the Prometheus text format, fed by the observer. No secret and no prompt gets here.

import { CALL_KINDS, USAGE_KINDS } from "../../billing/usage.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
import { CHANNEL_STATES, type ChannelView } from "../channels/view.ts";
import type { MetricsDetail, Observer, RequestRecord } from "../observe/observer.ts";

export interface Metrics {
  readonly observer: Observer;
  readonly render: (now: Gauges, detail: MetricsDetail) => string;
}

/** Gauges. */
export interface Gauges {
  readonly channels: readonly ChannelView[];
  readonly ledgerFails: boolean;
  readonly websockets: number;
}

const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120] as const;

/** The requests of one key, channel, endpoint, status and outcome. */
interface Series {
  /** The label with the key's name. */
  readonly owner: string;
  readonly labels: string;
  requests: number;
}

/** The usage and charge of one key, channel and model. */
interface Spending {
  readonly owner: string;
  readonly labels: string;
  readonly used: Map<string, number>;
  charge: Usd;
  /** What a plan paid. */
  plan: Usd;
}

interface Latency {
  readonly labels: string;
  readonly buckets: Uint32Array;
  count: number;
  sumSeconds: number;
}

/** Counting records in batches is cheaper. */
const BATCH_SIZE = 64;
/** Clients choose model names, so their number has no bound. Beyond this many series, the model is "other". */
const MAX_SERIES = 2000;

export function createMetrics(): Metrics {
  const series = new Map<string, Series>();
  const spendings = new Map<string, Spending>();
  const latencies = new Map<string, Latency>();
  let openStreams = 0;
  const count = (record: RequestRecord): void => {
    countRequest(series, record);
    if (record.channel === null) return;
    if (record.usage !== null || record.chargeUsd !== null) countSpending(spendings, record);
    if (record.firstByteMs !== null) countLatency(latencies, record.channel, record.firstByteMs / 1000);
  };
  let uncounted: RequestRecord[] = [];
  const countAll = (): void => {
    const records = uncounted;
    uncounted = [];
    records.forEach(count);
  };
  return {
    observer: {
      requestDone: (record) => {
        if (uncounted.push(record) >= BATCH_SIZE) countAll();
      },
      streamOpened: () => (openStreams += 1),
      streamClosed: () => (openStreams -= 1),
      notice: () => {},
      limitNear: () => {},
    },
    render: (now, detail) => {
      countAll();
      const isShown = ({ owner }: { readonly owner: string }): boolean =>
        typeof detail === "string" || owner === writeOwner(detail);
      return [
        ...head("gateway_requests_total", "counter", "Requests that have ended."),
        ...renderRequests([...series.values()].filter(isShown), detail),
        ...renderSpendings([...spendings.values()].filter(isShown), detail),
        ...renderLatencies([...latencies.values()]),
        ...renderChannels(now.channels),
        ...(detail === "all" ? renderWindows(now.channels) : []),
        ...head("gateway_open_streams", "gauge", "Streams that are being forwarded."),
        `gateway_open_streams ${openStreams}`,
        ...head("gateway_websockets", "gauge", "WebSockets of clients that are open."),
        `gateway_websockets ${now.websockets}`,
        ...head("gateway_ledger_writable", "gauge", "0 while the ledger cannot be written."),
        `gateway_ledger_writable ${now.ledgerFails ? 0 : 1}`,
        "",
      ].join("\n");
    },
  };
}

function countRequest(series: Map<string, Series>, record: RequestRecord): void {
  const { key, channel, endpoint, status, outcome } = record;
  const id = `${key ?? ""}\n${channel ?? ""}\n${endpoint}\n${status}\n${outcome}`;
  let found = series.get(id);
  if (found === undefined) {
    const labels = writeLabels({ ...placeOf(record), endpoint, status: String(status), outcome });
    found = { owner: writeOwner(record), labels, requests: 0 };
    series.set(id, found);
  }
  found.requests += 1;
}

function placeOf({ group, channel }: RequestRecord): Record<string, string> {
  return { group: group ?? "", channel: channel ?? "" };
}

function writeOwner({ key }: Pick<RequestRecord, "key">): string {
  return writeLabels({ key: key ?? "" });
}

function countSpending(spendings: Map<string, Spending>, record: RequestRecord): void {
  const model = spendings.size < MAX_SERIES ? (record.model ?? "") : "other";
  const id = `${record.key}\n${record.channel}\n${model}`;
  let found = spendings.get(id);
  if (found === undefined) {
    const labels = writeLabels({ ...placeOf(record), model });
    found = { owner: writeOwner(record), labels, used: new Map(), charge: ZERO_USD, plan: ZERO_USD };
    spendings.set(id, found);
  }
  if (record.usage !== null) addUsage(found.used, record.usage);
  if (record.chargeUsd !== null) found.charge = addUsd(found.charge, parseUsd(record.chargeUsd));
  if (record.planUsd !== undefined) found.plan = addUsd(found.plan, parseUsd(record.planUsd));
}

function addUsage(used: Map<string, number>, usage: Readonly<Record<string, number | undefined>>): void {
  for (const kind in usage) {
    const count = usage[kind];
    if (count !== undefined) used.set(kind, (used.get(kind) ?? 0) + count);
  }
}

function countLatency(latencies: Map<string, Latency>, channel: string, seconds: number): void {
  let found = latencies.get(channel);
  if (found === undefined) {
    const buckets = new Uint32Array(SECONDS.length);
    found = { labels: writeLabels({ channel }), buckets, count: 0, sumSeconds: 0 };
    latencies.set(channel, found);
  }
  found.count += 1;
  found.sumSeconds += seconds;
  for (let index = SECONDS.length - 1; index >= 0 && seconds <= (SECONDS[index] ?? 0); index -= 1) {
    found.buckets[index] = (found.buckets[index] ?? 0) + 1;
  }
}

interface CountRow {
  readonly owner: string;
  readonly labels: string;
  readonly count: number;
}

/** In public, the series of all keys with the same other labels are one. */
function renderCounts(
  name: string,
  more: string,
  counted: readonly CountRow[],
  detail: MetricsDetail,
): string[] {
  if (detail !== "public")
    return counted.map(({ owner, labels, count }) => `${name}{${owner},${labels}${more}} ${count}`);
  const sums = new Map<string, number>();
  for (const { labels, count } of counted) sums.set(labels, (sums.get(labels) ?? 0) + count);
  return [...sums].map(([labels, sum]) => `${name}{${labels}${more}} ${sum}`);
}

function renderRequests(series: readonly Series[], detail: MetricsDetail): string[] {
  const counted = series.map(({ owner, labels, requests }) => ({ owner, labels, count: requests }));
  return renderCounts("gateway_requests_total", "", counted, detail);
}

function renderSpendings(spendings: readonly Spending[], detail: MetricsDetail): string[] {
  const renderUsage = (name: string, kinds: readonly string[]): string[] =>
    kinds.flatMap((kind) => {
      const counted = spendings.flatMap(({ owner, labels, used }) => {
        const count = used.get(kind);
        return count === undefined ? [] : [{ owner, labels, count }];
      });
      return renderCounts(name, `,kind="${kind}"`, counted, detail);
    });
  return [
    ...head("gateway_tokens_total", "counter", "Tokens by kind; reasoning is a part of output."),
    ...renderUsage("gateway_tokens_total", USAGE_KINDS),
    ...head("gateway_tool_calls_total", "counter", "Tool calls that are priced per call, by kind."),
    ...renderUsage("gateway_tool_calls_total", CALL_KINDS),
    ...(detail === "public" ? [] : renderCharges(spendings)),
  ];
}

function renderCharges(spendings: readonly Spending[]): string[] {
  return [
    ...head("gateway_charge_usd_total", "counter", "Charges since the start. The ledger is exact."),
    ...spendings.map(
      ({ owner, labels, charge }) => `gateway_charge_usd_total{${owner},${labels}} ${formatUsd(charge)}`,
    ),
    ...head("gateway_plan_usd_total", "counter", "What plans paid since the start, by official prices."),
    ...spendings
      .filter(({ plan }) => plan > ZERO_USD)
      .map(({ owner, labels, plan }) => `gateway_plan_usd_total{${owner},${labels}} ${formatUsd(plan)}`),
  ];
}

const FIRST_BYTE = "gateway_first_byte_seconds";

function renderLatencies(latencies: readonly Latency[]): string[] {
  return [
    ...head(FIRST_BYTE, "histogram", "From a request's arrival to the first byte of its response."),
    ...latencies.flatMap(({ labels, buckets, count, sumSeconds }) => [
      ...SECONDS.map((bound, index) => `${FIRST_BYTE}_bucket{${labels},le="${bound}"} ${buckets[index]}`),
      `${FIRST_BYTE}_bucket{${labels},le="+Inf"} ${count}`,
      `${FIRST_BYTE}_sum{${labels}} ${sumSeconds}`,
      `${FIRST_BYTE}_count{${labels}} ${count}`,
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

function head(name: string, type: string, about: string): string[] {
  return [`# HELP ${name} ${about}`, `# TYPE ${name} ${type}`];
}

function writeLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escapeLabel(value)}"`)
    .join(",");
}

function escapeLabel(value: string): string {
  return escapeUnprintable(value.slice(0, 200)).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}
