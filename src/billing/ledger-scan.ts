// Reads a line by the order in which the gateway writes its fields, several times
// faster than JSON does: reports read a million of them. Exact, not a guess: what
// does not look just so is no match, and is read as JSON. Only `raw_usage`, which
// no report needs, is passed over unread.

import { isObject, parseJson } from "../lib/json.ts";

export interface ScannedLine {
  readonly id: string;
  readonly time: string;
  readonly key: string;
  readonly group: string;
  readonly channel: string;
  readonly model: string;
  readonly basis: string;
  readonly usage: Readonly<Record<string, unknown>>;
  /** The JSON text of the prices: equal for all requests that pay the same. */
  readonly prices: string;
  readonly official: string | null;
  readonly multiplier: string;
  readonly charge: string | null;
  readonly prev: string;
}

const TEXT = String.raw`"([^"\\]*)"`;
const PASSED = String.raw`"[^"\\]*"`;
const COUNT = String.raw`(?:null|\d+)`;
/** Without sign, exponent, leading or trailing zeros. */
const DECIMAL = String.raw`(?:0|[1-9]\d*)(?:\.\d*[1-9])?`;
const AMOUNT = `(?:null|"(${DECIMAL})")`;

const HEAD = new RegExp(
  String.raw`^\{"v":1,"id":${TEXT},"time":${TEXT},"key":${TEXT},"group":${TEXT},"platform":${PASSED},"channel":${TEXT},` +
    String.raw`"endpoint":${PASSED},"model":${TEXT},"upstream_model":(?:null|${PASSED}),"stream":(?:true|false),"status":${COUNT},` +
    String.raw`"outcome":"(?:complete|client_closed|upstream_cut|upstream_error|interrupted)",` +
    String.raw`"basis":"(exact|partial|unpriced|unknown)","usage":(\{[^{}]*\}),"raw_usage":`,
);

const PRICES = ',"prices":';

const TAIL = new RegExp(
  String.raw`,"prices":(null|\{[^{}]*\}),"price_source":(?:null|${PASSED}),"tier":(?:null|${PASSED}),"official_usd":${AMOUNT},` +
    String.raw`"multiplier":"(${DECIMAL})","charge_usd":${AMOUNT},"first_byte_ms":${COUNT},"duration_ms":${COUNT},` +
    String.raw`"attempts":\[[^[\]]*\](?:,"[a-z_]+":(?:${PASSED}|\[[^[\]{}]*\]|\{[^{}]*\}))*,"prev":"([0-9a-f]{64})"\}$`,
  "y",
);

type Fields = readonly (string | undefined)[];

/** Null: read it as JSON. */
export function scanLine(text: string): ScannedLine | null {
  const head = HEAD.exec(text);
  TAIL.lastIndex = Math.max(0, text.lastIndexOf(PRICES));
  const tail = head === null ? null : TAIL.exec(text);
  return head === null || tail === null ? null : joinFields(head, tail);
}

function joinFields(head: Fields, tail: Fields): ScannedLine | null {
  const usage = parseJson(textAt(head, 8));
  if (!isObject(usage)) return null;
  return {
    id: textAt(head, 1),
    time: textAt(head, 2),
    key: textAt(head, 3),
    group: textAt(head, 4),
    channel: textAt(head, 5),
    model: textAt(head, 6),
    basis: textAt(head, 7),
    usage,
    prices: textAt(tail, 1),
    official: tail[2] ?? null,
    multiplier: textAt(tail, 3),
    charge: tail[4] ?? null,
    prev: textAt(tail, 5),
  };
}

function textAt(fields: Fields, index: number): string {
  return fields[index] ?? "";
}
