// The patterns of the lines that the gateway writes. New forms are made from them.

import { isObject, parseJson } from "../../../lib/json/json.ts";
import { Pieces } from "./bytes.ts";
import { type Form, type Gap, PRICES } from "./form.ts";

const TEXT = String.raw`"([^"\\\x00-\x1f]*)"`;
const PASSED = String.raw`"[^"\\\x00-\x1f]*"`;
const COUNT = String.raw`(?:null|(\d+))`;
/** Without sign, exponent, leading or trailing zeros. */
const DECIMAL = String.raw`(?:0|[1-9]\d*)(?:\.\d*[1-9])?`;
const AMOUNT = `(?:null|"(${DECIMAL})")`;
const KIND = String.raw`${PASSED}:\d+`;
const KINDS = `(?:${KIND}(?:,${KIND})*)?`;
/** The pattern of a part with a price. `open` begins the groups of its counts and its amount. */
const partIn = (open: "(" | "(?:"): string =>
  String.raw`\{"model":${PASSED},"pass":${PASSED},"usage":\{${open}${KINDS})\},"prices":\{[^{}]*\},` +
  String.raw`"tier":(?:null|${PASSED}),"official_usd":"${open}${DECIMAL})"\}`;
const MEMBER = `${PASSED}:(?:${PASSED}|true)`;
const MEMBERS = `(?:${MEMBER}(?:,${MEMBER})*)?`;
const PART = partIn("(?:");

const REQUEST = new RegExp(
  String.raw`"group":${TEXT},"platform":${PASSED},"channel":${TEXT},"endpoint":${PASSED},"model":${TEXT},` +
    String.raw`"upstream_model":(?:null|${TEXT}),"stream":(?:true|false),"status":(?:null|\d+),` +
    String.raw`"outcome":"(?:complete|client_closed|upstream_cut|upstream_error|interrupted)",` +
    String.raw`"basis":"(exact|partial|unpriced|unknown)","usage":\{(${KINDS})\}(?:,"parts":\[(${PART}(?:,${PART})*)\])?,"raw_usage":()`,
  "dy",
);

const COUNT_ENTRY = /"([^"]*)":(\d+)/dg;
const PARTS = new RegExp(partIn("("), "dg");

const MONEY = new RegExp(
  String.raw`${PRICES}(?:null|(\{[^{}]*\})),"price_source":(?:null|${PASSED}),"tier":(?:null|${PASSED}),` +
    String.raw`"official_usd":${AMOUNT},"multiplier":"${DECIMAL}","charge_usd":${AMOUNT},"first_byte_ms":${COUNT},"duration_ms":${COUNT},` +
    String.raw`"attempts":\[[^[\]]*\](?:,"client":\{(${MEMBERS})\})?(?:,"upstream_request_id":${TEXT})?(?:,"(?!client"|upstream_request_id")[a-z_]+":(?:${PASSED}|\[[^[\]{}]*\]|\{[^{}]*\}))*,"prev":"([0-9a-f]{64})"\}$`,
  "dy",
);

/** The form of a line, from its text after the key; null: parse the line as JSON. */
export function learnForm(text: string): Form | null {
  const request = execAt(REQUEST, text, 0);
  const money = request && execAt(MONEY, text, text.indexOf(PRICES, REQUEST.lastIndex));
  // The patterns only guess where objects and lists end.
  if (request === null || money === null || !isObject(parseJson(`{${text}`))) return null;
  // They are rare, and sums need their amounts.
  if (text.includes('"limit_usd":', money.index) || text.includes('"cache":{', money.index)) return null;
  const whole = readCountList(textAt(request, 6), startOf(request, 6));
  const parts = readParts(textAt(request, 7), startOf(request, 7));
  if (!hasAmountsOfBasis(textAt(request, 5), money) || [whole, ...parts].some(hasDouble)) return null;
  if (parts.length > 0 && money[1] === undefined) return null;
  const gaps = [
    ...whole.gaps,
    ...parts.flatMap((part) => part.gaps),
    { gap: "raw", from: startOf(request, 8), to: money.index } as const,
    gapOf("amount", money, 2),
    gapOf("amount", money, 3),
    gapOf("count", money, 4),
    gapOf("count", money, 5),
    gapOf("client", money, 6),
    gapOf("text", money, 7),
    gapOf("prev", money, 8),
  ].filter((gap) => gap !== null);
  return {
    group: textAt(request, 1),
    channel: textAt(request, 2),
    model: textAt(request, 3),
    answeredBy: textAt(request, 4),
    basis: textAt(request, 5),
    kinds: whole.kinds,
    isPriced: money[1] !== undefined,
    pieces: new Pieces(cut(text, gaps)),
    gaps: gaps.map(({ gap }) => gap),
    client: gaps.findIndex(({ gap }) => gap === "client"),
    behindRaw: gaps.findIndex(({ gap }) => gap === "raw") + 1,
    numbers: new Float64Array(gaps.length),
  };
}

interface CountList {
  readonly kinds: readonly string[];
  readonly gaps: readonly (GapSpan | null)[];
}

function readCountList(text: string, offset: number): CountList {
  const counted = [...text.matchAll(COUNT_ENTRY)];
  return {
    kinds: counted.map((each) => textAt(each, 1)),
    gaps: counted.map((each) => gapOf("count", each, 2, offset)),
  };
}

function readParts(text: string, offset: number): CountList[] {
  return Array.from(text.matchAll(PARTS), (part) => {
    const { kinds, gaps } = readCountList(textAt(part, 1), offset + startOf(part, 1));
    return { kinds, gaps: [...gaps, gapOf("amount", part, 2, offset)] };
  });
}

/** Whether a kind is there twice: JSON would take the last one. */
function hasDouble({ kinds }: CountList): boolean {
  return new Set(kinds).size < kinds.length;
}

/** Whether the line has prices and both amounts, or none of them, as its basis says. */
function hasAmountsOfBasis(
  basis: string,
  [, prices, official, charge]: readonly (string | undefined)[],
): boolean {
  const isPriced = basis === "exact" || basis === "partial";
  return [prices, official, charge].every((value) => (value !== undefined) === isPriced);
}

function textAt(match: RegExpExecArray, group: number): string {
  return match[group] ?? "";
}

interface GapSpan {
  readonly gap: Gap;
  readonly from: number;
  readonly to: number;
}

/** The place of a group of a match; null if the group did not match. */
function gapOf(gap: Gap, match: RegExpExecArray, group: number, offset = 0): GapSpan | null {
  const span = match.indices?.[group];
  return span === undefined ? null : { gap, from: offset + span[0], to: offset + span[1] };
}

function startOf(match: RegExpExecArray, group: number): number {
  return match.indices?.[group]?.[0] ?? 0;
}

/** The text between the gaps. */
function cut(text: string, gaps: readonly GapSpan[]): string[] {
  const starts = [0, ...gaps.map(({ to }) => to)];
  return starts.map((start, index) => text.slice(start, gaps[index]?.from));
}

function execAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = Math.max(0, at);
  return pattern.exec(text);
}
