// Counters in the Prometheus text format, without secrets or prompts.

import { CALL_KINDS } from "../../config/call-kinds.ts";
import { addUsd, formatUsd, parseUsd, type Usd } from "../../lib/money.ts";
import { escapeUnprintable } from "../../lib/text/printable.ts";
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

interface Row {
  readonly counter: string;
  readonly key: string | null;
  readonly labels: string;
  value: Value;
}

/** Clients choose model names. After this many rows, the model is "other". */
const MAX_ROWS = 20_000;
const CALLS: ReadonlySet<string> = new Set(CALL_KINDS);

/** Requests are counted on demand, or when this many wait. */
const MAX_WAITING = 100;

export function createMetrics() {
  const rows = new Map<string, Row>();
  let waiting: RequestRecord[] = [];
  let openStreams = 0;
  const countAll = (): void => {
    for (const record of waiting) countRequest(rows, record);
    waiting = [];
  };
  const listener: Listener = {
    requestDone: (record) => {
      if (waiting.push(record) === MAX_WAITING) countAll();
    },
    streamOpened: () => (openStreams += 1),
    streamClosed: () => (openStreams -= 1),
  };
  return {
    listener,
    render: ({ channels, catalog, ledger, openSockets, now }: Gateway, detail: MetricsDetail): string => {
      const isPublic = detail === "public";
      const counters = Object.entries(COUNTERS).filter(([name]) => !isPublic || !name.endsWith("_usd_total"));
      const isWritable = ledger.problem === null;
      countAll();
      return [
        ...counters.map(([name, about]) => write("counter", name, about, listCounts(rows, name, detail))),
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

function countRequest(rows: Map<string, Row>, record: RequestRecord): void {
  const { key, group, channel, endpoint, outcome, status, usage, chargeUsd, planUsd } = record;
  const add = (counter: keyof typeof COUNTERS, own: Labels, added: Value): void => {
    const id = [counter, key, channel, ...Object.values(own)].join("\n");
    const labels = () => writeLabels({ group, channel, ...own });
    const row = rows.getOrInsertComputed(id, () => ({
      counter,
      key,
      labels: labels(),
      value: 0,
    }));
    row.value = addValue(row.value, added);
  };
  add("gateway_requests_total", { endpoint, status: String(status), outcome }, 1);
  if (channel === null) return;
  const model = rows.size < MAX_ROWS ? record.model : "other";
  for (const [kind, count] of Object.entries(usage ?? {})) {
    const counter = CALLS.has(kind) ? "gateway_tool_calls_total" : "gateway_tokens_total";
    if (count !== undefined) add(counter, { model, kind }, count);
  }
  if (chargeUsd !== null) add("gateway_charge_usd_total", { model }, parseUsd(chargeUsd));
  if (planUsd !== undefined) add("gateway_plan_usd_total", { model }, parseUsd(planUsd));
}

function addValue(sum: Value, added: Value): Value {
  if (typeof added === "number") return Number(sum) + added;
  return typeof sum === "number" ? added : addUsd(sum, added);
}

function listCounts(rows: ReadonlyMap<string, Row>, counter: string, detail: MetricsDetail): Sample[] {
  const sums = new Map<string, Value>();
  for (const { counter: own, key, labels, value } of rows.values()) {
    if (own !== counter || (typeof detail === "object" && key !== detail.key)) continue;
    const shown = detail === "public" ? labels : `${writeLabels({ key })},${labels}`;
    sums.set(shown, addValue(sums.get(shown) ?? 0, value));
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
      "From a request to the first byte of its response, of a channel's last responses.",
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
    escapeUnprintable(value.slice(0, 200)).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${escape(value ?? "")}"`)
    .join(",");
}
