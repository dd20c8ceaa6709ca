// Prints a line for each request of `gateway serve`, for people (text) or scripts (json).
// request-columns.ts has the columns, log-screen.ts does the output.

import { describeWarning, formatMoment, type LimitWarning } from "../../billing/limits/alerts.ts";
import type { Observer, RequestRecord } from "../../gateway/observe/observer.ts";
import { formatUsd } from "../../lib/money.ts";
import { createRequestTable, describeProblem, type RequestTable } from "./request-columns.ts";
import { encodeJson, paint, readRoom } from "../terminal/terminal.ts";
import { measure } from "../terminal/text.ts";
import { escapeLines } from "../../lib/text/printable.ts";

export type LogForm = "text" | "json" | "off";

export interface LogOptions {
  readonly form: LogForm;
  readonly screen: LogScreen;
  /** The longest names to come. */
  readonly expected: { readonly key: string; readonly channel: string };
  /** The spending of the day so far, a decimal in USD. */
  readonly today: () => string;
}

export type RequestLog = Pick<Observer, "requestDone" | "notice" | "limitNear"> & {
  /** Prints the titles of the columns. */
  readonly head: () => void;
};

export function createRequestLog(options: LogOptions): RequestLog {
  const { form, screen } = options;
  if (form === "text") return createTextLog(options);
  const head = (): void => {};
  if (form === "json") {
    const print = (level: string, notice: string, more: object = {}): void =>
      screen.print(encodeJson({ time: new Date().toISOString(), level, notice, ...more }));
    return {
      head,
      requestDone: (record) => screen.print(encodeJson(describeRecord(record))),
      notice: print,
      limitNear: (warning) => print("warning", describeWarning(warning), { limit: describeInJson(warning) }),
    };
  }
  return {
    head,
    requestDone: () => {},
    notice: (level, text) => {
      if (level !== "note") screen.warn(`${level}: ${text}`);
    },
    limitNear: (warning) => screen.warn(`warning: ${describeWarning(warning)}`),
  };
}

function describeInJson(warning: LimitWarning): object {
  const { holder, limit, percent, resets } = warning;
  if ("count" in warning) return { ...holder, limit, percent, count: warning.count, resets };
  const ends = resets === null ? null : formatMoment(resets);
  if ("used" in warning) return { ...holder, limit, percent, used: warning.used, resets: ends };
  const { usd, spent } = warning;
  return { ...holder, limit, percent, usd: formatUsd(usd), spent_usd: formatUsd(spent), resets: ends };
}

/** For scripts. Fields that a ledger line has too have the same name. */
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

function createTextLog({ screen, expected, today }: LogOptions): RequestLog {
  const table = createRequestTable(expected, true);
  let titles = "";
  /** Prints the titles again if a resize has changed the columns. */
  const head = (): void => {
    const line = table.head(screen.room());
    const now = line.replaceAll(/\s+/g, " ");
    if (now !== titles) screen.print(line);
    titles = now;
  };
  const notice: Observer["notice"] = (level, text) =>
    screen.warn(level === "note" ? text : `${level}: ${text}`);
  return {
    head,
    requestDone: (record) => {
      const lines = writeLines(record, today(), table, screen.room());
      head();
      lines.forEach(screen.print);
    },
    notice,
    limitNear: (warning) => notice("warning", describeWarning(warning)),
  };
}

const INDENT = "          ";

/** One line. A problem that does not fit next to it has lines of its own. */
function writeLines(record: RequestRecord, today: string, table: RequestTable, room: number): string[] {
  const [row = ""] = table.rows([{ record, today }], room);
  const trouble = describeProblem(record);
  if (trouble === "") return [row];
  if (measure(row) + 2 + measure(trouble) <= room) return [`${row}  ${paint("yellow", trouble)}`];
  const wrapped = Bun.wrapAnsi(trouble, Math.max(20, room - INDENT.length), { hard: true });
  return [row, ...wrapped.split("\n").map((line) => `${INDENT}${paint("yellow", line)}`)];
}

export interface LogScreen {
  /** Cells in a line. Infinite where nothing is cut. */
  readonly room: () => number;
  readonly print: (line: string) => void;
  /** For people. A message may name models, and what an upstream said. */
  readonly warn: (text: string) => void;
}

export function openLogScreen(): LogScreen {
  // The gateway must go on serving when nobody reads its log any more.
  process.stdout.on("error", () => {});
  return {
    room: readRoom,
    print: (line) => void process.stdout.write(`${line}\n`),
    warn: (text) => void process.stderr.write(`${escapeLines(text)}\n`),
  };
}
