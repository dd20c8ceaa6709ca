// A line for each request, also for `gateway top`.

import { describeWarning, type LimitWarning } from "../../billing/limits/alerts.ts";
import { formatMoment } from "../../config/changes/names.ts";
import { countTokens, OUTPUT_KINDS, PROMPT_KINDS, READ_KINDS } from "../../billing/usage.ts";
import type { Observer, RequestRecord } from "../../gateway/observe/observer.ts";
import { formatUsd } from "../../lib/money.ts";
import { escapeLines, escapeText } from "../../lib/text/printable.ts";
import { type Columns, createTable, type Table } from "../terminal/listing.ts";
import { encodeJson, paint, readRoom } from "../terminal/terminal.ts";
import { formatAmount, measure, shortenId, shortenSession } from "../terminal/text.ts";

export const OPEN = 0;

const countInput = ({ usage }: RequestRecord): number => countTokens(usage ?? {}, PROMPT_KINDS);
const countCached = ({ usage }: RequestRecord): number => countTokens(usage ?? {}, READ_KINDS);

const COLUMNS: Columns<RequestRecord> = [
  [
    "TIME",
    ({ time }) => new Date(time).toTimeString().slice(0, 8),
    "text",
    { spare: 3, paint: (text) => paint("dim", text) },
  ],
  ["ID", ({ id }) => shortenId(id), "text", { spare: 5 }],
  ["KEY", ({ key }) => key ?? "-", "text", { spare: 6 }],
  ["MODEL", ({ model, endpoint }) => model ?? endpoint],
  ["CHANNEL", ({ channel }) => channel ?? "-", "text", { spare: 10 }],
  ["SESSION", ({ client }) => shortenSession(client?.session ?? ""), "text", { spare: 14 }],
  [
    "STATUS",
    ({ status }) => (status === OPEN ? "open" : String(status)),
    "text",
    {
      paint: (text, { status }) => paint(status < 400 ? "green" : status < 500 ? "yellow" : "red", text),
    },
  ],
  ["TOOK", "durationMs", "ms", { spare: 4 }],
  ["IN", (record) => countInput(record) || null, "exact", { spare: 8 }],
  ["CACHED", (record) => countCached(record) / countInput(record) || null, "rate", { spare: 9 }],
  ["OUT", ({ usage }) => countTokens(usage ?? {}, OUTPUT_KINDS) || null, "exact", { spare: 7 }],
  ["CHARGE", describeCharge, "exact"],
];

function describeCharge({ status, chargeUsd, planUsd, usage }: RequestRecord): string {
  if (status === OPEN) return "";
  if (planUsd !== undefined) return `(plan $${formatAmount(planUsd)})`;
  if (chargeUsd !== null) return `$${formatAmount(chargeUsd)}`;
  return usage === null ? "" : "unpriced";
}

/** The columns have room for this. Few requests need more. */
const USUAL: RequestRecord = {
  id: "0mi9x2k3a",
  time: 0,
  key: "workstation",
  group: null,
  model: "claude-sonnet-4-5",
  endpoint: "",
  channel: null,
  client: { session: "0mi9x2k3" },
  status: 200,
  outcome: "complete",
  firstByteMs: null,
  durationMs: 999,
  usage: { input: 99_999, output: 99_999 },
  chargeUsd: "0",
  problem: null,
};

export function createRequestTable(): Table<RequestRecord> {
  const table = createTable(COLUMNS);
  table.rows([USUAL], Infinity);
  return table;
}

export function describeProblem({ outcome, problem }: RequestRecord): string {
  const why = escapeText((problem ?? "").replaceAll(/\s+/g, " "));
  if (outcome === "complete") return why;
  const what = outcome.replaceAll("_", " ");
  return problem === null ? what : `${what}: ${why}`;
}

export type LogForm = "text" | "json" | "off";

export type LogScreen = ReturnType<typeof openLogScreen>;

export function openLogScreen() {
  // The gateway must go on serving when nobody reads its log.
  process.stdout.on("error", () => {});
  return {
    print: (line: string): void => void process.stdout.write(`${line}\n`),
    warn: (text: string): void => void process.stderr.write(`${escapeLines(text)}\n`),
  };
}

type RequestLog = Pick<Observer, "requestDone" | "notice" | "limitNear">;

export function createRequestLog(form: LogForm, { print, warn }: LogScreen): RequestLog {
  if (form === "json") {
    const say = (level: string, notice: string, more: object = {}): void =>
      print(encodeJson({ time: new Date().toISOString(), level, notice, ...more }));
    return {
      requestDone: (record) => print(encodeJson(describeRecord(record))),
      notice: say,
      limitNear: (warning) => say("warning", describeWarning(warning), { limit: describeLimit(warning) }),
    };
  }
  const notice: Observer["notice"] = (level, text) => {
    if (level !== "note") warn(`${level}: ${text}`);
    else if (form === "text") warn(text);
  };
  const table = createRequestTable();
  let isFirst = true;
  return {
    requestDone: (record) => {
      if (form === "off") return;
      const lines = writeLines(record, table, readRoom());
      for (const line of isFirst ? [table.head(readRoom()), ...lines] : lines) print(line);
      isFirst = false;
    },
    notice,
    limitNear: (warning) => notice("warning", describeWarning(warning)),
  };
}

export function describeRecord(record: RequestRecord): Record<string, unknown> {
  const { time, firstByteMs, durationMs, chargeUsd, planUsd, ...rest } = record;
  return {
    ...rest,
    time: new Date(time).toISOString(),
    first_byte_ms: firstByteMs,
    duration_ms: durationMs,
    charge_usd: chargeUsd,
    ...(planUsd !== undefined && { plan_usd: planUsd }),
  };
}

function describeLimit(warning: LimitWarning): object {
  const { holder, limit, percent, usd, spent, resets } = warning;
  const ends = resets === null ? null : formatMoment(new Date(resets));
  return {
    ...holder,
    limit,
    percent,
    usd: formatUsd(usd),
    spent_usd: formatUsd(spent),
    resets: ends,
  };
}

const INDENT = "          ";

function writeLines(record: RequestRecord, table: Table<RequestRecord>, room: number): string[] {
  const [row = ""] = table.rows([record], room);
  const trouble = describeProblem(record);
  if (trouble === "") return [row];
  if (measure(row) + 2 + measure(trouble) <= room) return [`${row}  ${paint("yellow", trouble)}`];
  const wrapped = Bun.wrapAnsi(trouble, Math.max(20, room - INDENT.length), { hard: true });
  return [row, ...wrapped.split("\n").map((line) => `${INDENT}${paint("yellow", line)}`)];
}
