// Reads `--since` and `--until`. Days are UTC, like the times in the ledger.

import { readMoment } from "../../config/scalars.ts";
import { refuseUsage } from "../terminal.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

export interface PeriodFlags {
  readonly since?: string;
  readonly until?: string;
}

/** A value is null if its flag is absent. */
export function readPeriod(flags: PeriodFlags): {
  readonly since: string | null;
  readonly until: string | null;
} {
  const since = readSince(flags.since, new Date());
  const until = readUntil(flags.until);
  if (since !== null && until !== null && until <= since)
    refuseUsage(`--until: ${flags.until} is before --since.`);
  return { since, until };
}

/** `7d` is the last seven days including today, `12h` is the last twelve hours, and a date begins at 00:00. */
export function readSince(text: string | undefined, now: Date): string | null {
  if (text === undefined) return null;
  const [, count = "", unit = ""] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  if (unit === "h") return new Date(now.getTime() - Number(count) * HOUR_MS).toISOString();
  if (unit === "") return readDate(text, "--since", "7d, 12h, 2w, ").toISOString();
  const days = Number(count) * (unit === "w" ? 7 : 1);
  const today = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  return new Date(today - Math.max(0, days - 1) * DAY_MS).toISOString();
}

/** The first moment after the period. A date includes its whole day. */
export function readUntil(text: string | undefined): string | null {
  if (text === undefined) return null;
  const moment = readDate(text, "--until");
  return (text.includes("T") ? moment : new Date(moment.getTime() + DAY_MS)).toISOString();
}

/** `besides`: other values that the flag accepts. */
function readDate(text: string, flag: string, besides = ""): Date {
  try {
    return readMoment(text);
  } catch {
    return refuseUsage(
      `${flag}: expected ${besides}a date such as 2026-11-20, or a moment such as 2026-11-20T12:00:00Z.`,
    );
  }
}
