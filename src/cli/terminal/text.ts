// Text for a terminal.

import { formatRounded } from "../../lib/money.ts";

const ASCII = /^[ -~]*$/;

export function measure(text: string): number {
  return ASCII.test(text) ? text.length : Bun.stringWidth(text);
}

export function arePlain(texts: readonly string[]): boolean {
  return ASCII.test(texts.join(""));
}

export function alignText(text: string, room: number, align?: "right"): string {
  const cut = cutText(text, room);
  const gap = " ".repeat(room - measure(cut));
  return align === "right" ? gap + cut : cut + gap;
}

export function cutText(text: string, room: number): string {
  if (measure(text) <= room) return text;
  let cut = "";
  let width = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    width += measure(segment);
    if (width > room - 1) break;
    cut += segment;
  }
  return room < 1 ? "" : `${cut}…`;
}

/** A command between backticks is not broken. */
const WORD = /( *)((?:`[^`]*`|[^ ])+)/g;

export function wrapWords(line: string, room: number, hang = 0): string[] {
  if (measure(line) <= room) return [line];
  const start = " ".repeat(line.search(/[^ ]|$/) + hang);
  const lines: string[] = [];
  let current = "";
  for (const [whole, , word = ""] of line.matchAll(WORD)) {
    const isHopeless = start.length + measure(word) > room;
    if (current === "" || isHopeless || measure(current + whole) <= room) current += whole;
    else {
      lines.push(current);
      current = start + word;
    }
  }
  return [...lines, current];
}

/** Each line is a count. Loading `Intl` would take 10 ms. */
export function groupDigits(counts: string): string {
  return counts.replaceAll(/\B(?=(?:\d{3})+$)/gm, ",");
}

export function formatCount(count: number, word: string): string {
  return `${groupDigits(String(count))} ${word}${count === 1 ? "" : "s"}`;
}

/** `gateway ledger show` accepts the short id. */
export function shortenId(id: string): string {
  return id.replace(/^req_/, "").slice(0, 9);
}

const INFERRED = /^inferred-/;

/** `~` stands for a session that the tool did not name. */
export function shortenSession(id: string, length = 8): string {
  return INFERRED.test(id) ? `~${id.replace(INFERRED, "").slice(0, length)}` : id.slice(0, length);
}

export function lengthenSession(words: string): string {
  return words.replace(/^~/, "inferred-");
}

export function formatMs(ms: number | null): string {
  if (ms === null) return "-";
  if (ms < 1000) return `${ms}ms`;
  return ms < 600_000 ? `${(ms / 1000).toFixed(1)}s` : `${Math.round(ms / 60_000)}min`;
}

/** `2m 05s`, `3h 12m`, `2d 4h`. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 60) return `${seconds}s`;
  const two = (count: number): string => String(count).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  return hours < 24 ? `${hours}h ${two(minutes % 60)}m` : `${Math.floor(hours / 24)}d ${hours % 24}h`;
}

const AMOUNT_PLACES = 6;

export function formatAmount(usd: string): string {
  return formatRounded(usd, AMOUNT_PLACES);
}

/** Has enough digits to be compared with a small budget. */
export function formatCents(usd: string): string {
  const roundTo = (places: number): string => formatRounded(usd, places);
  const rounded = [2, 4].map(roundTo).find((text) => /[1-9].*\d$/.test(text));
  return `$${usd === "0" ? "0.00" : (rounded ?? formatAmount(usd))}`;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const MAX_DAYS_AGO = 30;

export function formatAgo(moment: Date | null, now: Date): string {
  if (moment === null) return "";
  const ms = now.getTime() - moment.getTime();
  const span = Math.abs(ms);
  if (span < MINUTE_MS) return ms >= 0 ? "just now" : "in less than 1 min";
  if (span >= MAX_DAYS_AGO * DAY_MS) return formatLocalMinute(moment).slice(0, 10);
  const text =
    span < HOUR_MS
      ? `${Math.floor(span / MINUTE_MS)} min`
      : span < 2 * DAY_MS
        ? `${Math.floor(span / HOUR_MS)} h`
        : `${Math.floor(span / DAY_MS)} days`;
  return ms >= 0 ? `${text} ago` : `in ${text}`;
}

export function formatDay(moment: string): string {
  return moment.replace("T00:00:00Z", "").replace("T", " ").replace("Z", " UTC");
}

export function formatLocalMinute(moment: Date | null): string {
  return formatLocalSecond(moment).slice(0, 16);
}

export function formatLocalSecond(moment: Date | null): string {
  if (moment === null || Number.isNaN(moment.getTime())) return "";
  const local = new Date(moment.getTime() - moment.getTimezoneOffset() * MINUTE_MS);
  return local.toISOString().slice(0, 19).replace("T", " ");
}

export function formatBytes(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let size = bytes;
  let unit = 0;
  for (; size >= 1000 && unit < units.length - 1; unit += 1) size /= 1000;
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
