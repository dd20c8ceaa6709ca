// Counters in the Prometheus text format, without secrets or prompts.

import type { Counts } from "../../billing/usage.ts";
import { CALL_KINDS } from "../../config/call-kinds.ts";
import { addUsd, formatUsd, parseUsd, type Usd, ZERO_USD } from "../../lib/money.ts";
import { escapeText } from "../../lib/text/printable.ts";
import { CHANNEL_STATES, type ChannelView } from "../channels/view.ts";
import type { Gateway } from "../gateway.ts";
import type { Listener, MetricsDetail, RequestRecord } from "../observe/observer.ts";

const COUNTERS = {
  gateway_requests_total: "Requests that have ended.",
  gateway_tokens_total: "Tokens by kind; reasoning is a part of output.",
  gateway_tool_calls_total: "Tool calls that are priced per call, by kind.",
  gateway_charge_usd_total: "Charges since the start. The ledger is exact.",
  gateway_plan_usd_total: "What plans paid since the start, by official prices.",
} as const;

type Labels = Readonly<Record<string, string | null>>;
type Value = number | Usd;
type Sample = readonly [labels: string, value: Value];

interface Series {
  readonly first: RequestRecord;
  readonly model: string | null;
  requests: number;
  readonly usage: Map<string, number>;
  charge: Usd | null;
  plan: Usd | null;
}

/** Clients choose model names. Beyond this many series, the model is "other". */
const MAX_SERIES = 5000;
const CALLS: ReadonlySet<string> = new Set(CALL_KINDS);

export function createMetrics() {
  const all = new Map<string, Series>();
  let openStreams = 0;
  const listener: Listener = {
    requestDone: (record) => countRequest(all, record),
    streamOpened: () => (openStreams += 1),
    streamClosed: () => (openStreams -= 1),
  };
  return {
    listener,
    render: ({ channels, catalog, ledger, openSockets, now }: Gateway, detail: MetricsDetail): string => {
      const isPublic = detail === "public";
      const counters = Object.entries(COUNTERS).filter(([name]) => !isPublic || !name.endsWith("_usd_total"));
      const isWritable = ledger.problem === null;
      return [
        ...counters.map(([name, about]) => write("counter", name, about, listCounts(all, name, detail))),
        ...describeChannels(channels.view(catalog, now()), detail),
        write("gauge", "gateway_open_streams", "Streams that are being forwarded.", [["", openStreams]]),
        write("gauge", "gateway_websockets", "WebSockets of clients that are open.", [["", openSockets]]),
        write("gauge", "gateway_ledger_writable", "0 while the ledger cannot be written.", [
          ["", isWritable ? 1 : 0],
        ]),
      ].join("");
    },
  };
}

function countRequest(all: Map<string, Series>, record: RequestRecord): void {
  const { channel, usage, chargeUsd, planUsd } = record;
  const series = findSeries(all, record);
  series.requests += 1;
  if (channel === null) return;
  const counts: Counts = usage ?? {};
  for (const kind in counts) series.usage.set(kind, (series.usage.get(kind) ?? 0) + (counts[kind] ?? 0));
  if (chargeUsd !== null) series.charge = addUsd(series.charge ?? ZERO_USD, parseUsd(chargeUsd));
  if (planUsd !== undefined) series.plan = addUsd(series.plan ?? ZERO_USD, parseUsd(planUsd));
}

function findSeries(all: Map<string, Series>, record: RequestRecord): Series {
  const { key, group, channel, endpoint, outcome, status } = record;
  const model = channel === null ? null : all.size < MAX_SERIES ? record.model : "other";
  const id = `${key}\n${group}\n${channel}\n${endpoint}\n${status}\n${outcome}\n${model}`;
  let series = all.get(id);
  if (series !== undefined) return series;
  series = { first: record, model, requests: 0, usage: new Map(), charge: null, plan: null };
  all.set(id, series);
  return series;
}

type Count = readonly [counter: keyof typeof COUNTERS, labels: Labels, value: Value | null];

function listSeries({ first, model, requests, usage, charge, plan }: Series): readonly Count[] {
  const { endpoint, status, outcome } = first;
  const kinds = Array.from(usage, ([kind, count]): Count => {
    return [CALLS.has(kind) ? "gateway_tool_calls_total" : "gateway_tokens_total", { model, kind }, count];
  });
  return [
    ["gateway_requests_total", { endpoint, status: String(status), outcome }, requests],
    ...kinds,
    ["gateway_charge_usd_total", { model }, charge],
    ["gateway_plan_usd_total", { model }, plan],
  ];
}

function addValue(sum: Value, added: Value): Value {
  if (typeof added === "number") return Number(sum) + added;
  return typeof sum === "number" ? added : addUsd(sum, added);
}

function listCounts(all: ReadonlyMap<string, Series>, counter: string, detail: MetricsDetail): Sample[] {
  const sums = new Map<string, Value>();
  for (const series of all.values()) {
    const { key, group, channel } = series.first;
    if (typeof detail === "object" && key !== detail.key) continue;
    for (const [name, own, value] of listSeries(series)) {
      if (name !== counter || value === null) continue;
      const shown = writeLabels({ ...(detail !== "public" && { key }), group, channel, ...own });
      sums.set(shown, addValue(sums.get(shown) ?? 0, value));
    }
  }
  return [...sums];
}

function describeChannels(views: readonly ChannelView[], detail: MetricsDetail): string[] {
  const firstBytes = views.flatMap(({ name: channel, latency_ms, latency_p95_ms }) =>
    [["0.5", latency_ms] as const, ["0.95", latency_p95_ms] as const].flatMap(([quantile, ms]): Sample[] =>
      ms === null ? [] : [[writeLabels({ channel, quantile }), ms / 1000]],
    ),
  );
  const states = views.flatMap(({ name: channel, state: current }) =>
    CHANNEL_STATES.map((state): Sample => [writeLabels({ channel, state }), state === current ? 1 : 0]),
  );
  const windows = views.flatMap(({ name: channel, allowance = [] }) =>
    allowance.flatMap(({ name, used }): Sample[] =>
      used === null ? [] : [[writeLabels({ channel, window: name }), used]],
    ),
  );
  const name = "gateway_plan_window_used_percent";
  return [
    write(
      "gauge",
      "gateway_first_byte_seconds",
      "Seconds from a request to the first byte of its response, for a channel's last responses.",
      firstBytes,
    ),
    write("gauge", "gateway_channel_state", "1 for the state that a channel is in.", states),
    detail !== "all" || windows.length === 0
      ? ""
      : write("gauge", name, "How full a window of a plan is, as its upstream said last.", windows),
  ];
}

function write(type: "counter" | "gauge", name: string, about: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => {
    const text = typeof value === "number" ? String(value) : formatUsd(value);
    return `${name}${labels === "" ? "" : `{${labels}}`} ${text}\n`;
  });
  return `# HELP ${name} ${about}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

function writeLabels(labels: Labels): string {
  const escape = (value: string): string =>
    escapeText(value.slice(0, 200)).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(value ?? "")}"`)
    .join(",");
}
