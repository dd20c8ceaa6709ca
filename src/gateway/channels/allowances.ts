// How much of a plan's windows or a credential's rates is left.
// Nothing is refused because of it.

import type { Allowance } from "../../lib/text/allowance.ts";
import type { Fields } from "../../lib/http/fields.ts";
import { readReset } from "../upstream/retry-after.ts";
import type { ChannelRecord } from "./record.ts";

const OF_LIMIT = /^(?:anthropic-ratelimit|x-ratelimit|x-codex)-/;

export function noteHead(record: ChannelRecord, fields: Fields, seen: number): void {
  // Answers may be noted out of order: the newest one counts.
  if (seen < (record.head?.seen ?? 0)) return;
  for (const field of fields)
    if (OF_LIMIT.test(field[0])) {
      record.head = { fields, seen };
      return;
    }
}

export function listAllowances({ head }: ChannelRecord, now: number): Allowance[] {
  if (head === null) return [];
  const found = [...readWindows(head.fields, head.seen), ...readRates(head.fields, head.seen)];
  return found.filter(({ resets }) => resets === null || Date.parse(resets) > now);
}

const MAX_WINDOWS = 6;
const NUMBER = /^\d{1,4}(?:\.\d{1,9})?$/;

export function readWindows(fields: Fields, seen: number): Allowance[] {
  const windows: Allowance[] = [];
  for (const [name, value] of fields) {
    if (!NUMBER.test(value)) continue;
    const window = readShare(fields, seen, name, value) ?? readPercent(fields, seen, name, value);
    if (window !== null && windows.push(window) === MAX_WINDOWS) break;
  }
  return windows;
}

/** If Claude Code uses a plan, answers name the used share of `5h`,
 *  `7d` or `7d_oi`. */
const SHARE = /^(anthropic-ratelimit-unified-(\d{1,3}[hd](?:[_-][a-z0-9]{1,12})?)-)utilization$/;

function readShare(fields: Fields, seen: number, field: string, value: string): Allowance | null {
  const [, prefix, span] = SHARE.exec(field) ?? [];
  if (prefix === undefined || span === undefined) return null;
  const resets = readReset(fields.get(`${prefix}reset`), seen);
  // Rounded, because 0.07 * 100 is 7.000000000000001 as a float.
  const used = Math.round(Number(value) * 1e4) / 100;
  return describe("window", span.replace(/[_-]/, " "), { used, resets, seen });
}

/** Codex 0.169 reads these fields:
 *  two windows of the plan, and windows of single models. */
const PERCENT = /^(x-codex-(?:([a-z0-9]{1,20})-)?(primary|secondary)-)used-percent$/;

function readPercent(fields: Fields, seen: number, field: string, value: string): Allowance | null {
  const [, prefix, model = "", which = ""] = PERCENT.exec(field) ?? [];
  if (prefix === undefined) return null;
  const after = fields.get(`${prefix}reset-after-seconds`);
  const at = readReset(fields.get(`${prefix}reset-at`), seen);
  const resets = at ?? readReset(after && `${after}s`, seen);
  const span = nameSpan(Number(fields.get(`${prefix}window-minutes`))) ?? which;
  const used = Number(value);
  return describe("window", `${span} ${model}`.trim(), { used, resets, seen });
}

function nameSpan(minutes: number): string | null {
  if (!Number.isSafeInteger(minutes) || minutes < 1) return null;
  if (minutes % 1440 === 0) return `${minutes / 1440}d`;
  return minutes % 60 === 0 ? `${minutes / 60}h` : `${minutes}m`;
}

const RATES = ["requests", "tokens", "input-tokens", "output-tokens"];
const COUNT = /^\d{1,15}$/;

function readRates(fields: Fields, seen: number): Allowance[] {
  return RATES.flatMap((rate) => {
    const read = (word: string): string | undefined =>
      fields.get(`anthropic-ratelimit-${rate}-${word}`) ?? fields.get(`x-ratelimit-${word}-${rate}`);
    const [left = "", of = ""] = [read("remaining"), read("limit")];
    if (!COUNT.test(left) || !COUNT.test(of)) return [];
    const resets = readReset(read("reset"), seen);
    return [describe("rate", rate.replace("-", " "), { left, of, resets, seen })];
  });
}

interface Found extends Partial<Pick<Allowance, "used" | "left" | "of">> {
  readonly resets: number | null;
  readonly seen: number;
}

function describe(kind: Allowance["kind"], name: string, { resets, seen, ...amounts }: Found): Allowance {
  const times = {
    resets: resets === null ? null : new Date(resets).toISOString(),
    seen: new Date(seen).toISOString(),
  };
  return { kind, name, used: null, left: null, of: null, ...amounts, ...times };
}
