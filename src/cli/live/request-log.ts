// The line of each request that `gateway serve` prints: for eyes (text) or for
// scripts (json). Its columns are request-columns.ts, where lines go is log-screen.ts.

import type { Observer, RequestRecord } from "../../gateway/observe/observer.ts";
import type { LogScreen } from "./log-screen.ts";
import { createRequestTable, describeTrouble, type RequestTable } from "./request-columns.ts";
import { paint } from "../terminal.ts";
import { measure, stripControls } from "../text.ts";

export type LogForm = "text" | "json" | "off";

export interface LogOptions {
  readonly form: LogForm;
  readonly screen: LogScreen;
  /** Names as long as those to come. */
  readonly expected: { readonly key: string; readonly channel: string };
  /** What the day comes to so far, a decimal in USD. */
  readonly today: () => string;
}

export type RequestLog = Pick<Observer, "requestDone" | "notice"> & {
  /** Says what stands in the columns. */
  readonly head: () => void;
};

export function createRequestLog(options: LogOptions): RequestLog {
  const { form, screen } = options;
  if (form === "text") return createTextLog(options);
  const head = (): void => {};
  if (form === "json") {
    return {
      head,
      requestDone: (record) => screen.print(JSON.stringify(describeRecord(record))),
      notice: (level, text) =>
        screen.print(JSON.stringify({ time: new Date().toISOString(), level, notice: text })),
    };
  }
  return {
    head,
    requestDone: () => {},
    notice: (level, text) => {
      if (level !== "note") screen.warn(`${level}: ${text}`);
    },
  };
}

/** For scripts: what the ledger's line has too bears the same name. */
export function describeRecord(record: RequestRecord): Record<string, unknown> {
  const { time, firstByteMs, durationMs, chargeUsd, ...rest } = record;
  return {
    ...rest,
    time: new Date(time).toISOString(),
    first_byte_ms: firstByteMs,
    duration_ms: durationMs,
    charge_usd: chargeUsd,
  };
}

function createTextLog({ screen, expected, today }: LogOptions): RequestLog {
  const table = createRequestTable(expected, true);
  let titles = "";
  /** Again when a resize has brought other columns. */
  const head = (): void => {
    const line = table.head(screen.room());
    const now = line.replaceAll(/\s+/g, " ");
    if (now !== titles) screen.print(paint("dim", line));
    titles = now;
  };
  return {
    head,
    requestDone: (record) => {
      const lines = writeLines(record, today(), table, screen.room());
      head();
      lines.forEach(screen.print);
    },
    notice: (level, text) => {
      const [first = "", ...rest] = text.split("\n").map(stripControls);
      for (const line of [level === "note" ? first : `${level}: ${first}`, ...rest]) screen.warn(line);
    },
  };
}

const INDENT = "          ";

/** One line; on a terminal, what went wrong has lines of its own where it would not fit. */
function writeLines(record: RequestRecord, today: string, table: RequestTable, room: number): string[] {
  const row = table.row(record, today, room);
  const trouble = stripControls(describeTrouble(record));
  if (trouble === "") return [row];
  if (measure(row) + 2 + measure(trouble) <= room) return [`${row}  ${paint("yellow", trouble)}`];
  const wrapped = Bun.wrapAnsi(trouble, Math.max(20, room - INDENT.length), { hard: true });
  return [row, ...wrapped.split("\n").map((line) => `${INDENT}${paint("yellow", line)}`)];
}
