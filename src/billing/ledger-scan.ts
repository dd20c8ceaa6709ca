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

const TARIFF = new RegExp(
  String.raw`${PRICES}(null|\{[^{}]*\}),"price_source":(?:null|${PASSED}),"tier":(?:null|${PASSED}),"official_usd":`,
  "y",
);

const END = new RegExp(
  String.raw`${AMOUNT},"multiplier":"(${DECIMAL})","charge_usd":${AMOUNT},"first_byte_ms":${COUNT},"duration_ms":${COUNT},` +
    String.raw`"attempts":\[[^[\]]*\](?:,"[a-z_]+":(?:${PASSED}|\[[^[\]{}]*\]|\{[^{}]*\}))*,"prev":"([0-9a-f]{64})"\}$`,
  "y",
);

/** The stretch of a line that is the same for all requests that pay the same. */
interface Tariff {
  readonly text: string;
  readonly prices: string;
}

const TARIFFS_KEPT = 16;

export class LineScanner {
  readonly #tariffs: Tariff[] = [];
  #oldest = 0;

  /** Null: read it as JSON. */
  scan(text: string): ScannedLine | null {
    const head = HEAD.exec(text);
    if (head === null) return null;
    const at = text.indexOf(PRICES, head[0].length);
    const tariff = this.#tariffs.find((known) => text.startsWith(known.text, at)) ?? this.#learn(text, at);
    if (tariff === null) return null;
    END.lastIndex = at + tariff.text.length;
    const end = END.exec(text);
    return end === null ? null : joinFields(head, tariff.prices, end);
  }

  #learn(text: string, at: number): Tariff | null {
    TARIFF.lastIndex = Math.max(0, at);
    const found = TARIFF.exec(text);
    if (found === null) return null;
    const tariff = { text: found[0], prices: textAt(found, 1) };
    this.#tariffs[this.#oldest] = tariff;
    this.#oldest = (this.#oldest + 1) % TARIFFS_KEPT;
    return tariff;
  }
}

type Fields = readonly (string | undefined)[];

function joinFields(head: Fields, prices: string, end: Fields): ScannedLine | null {
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
    prices,
    official: end[1] ?? null,
    multiplier: textAt(end, 2),
    charge: end[3] ?? null,
    prev: textAt(end, 4),
  };
}

function textAt(fields: Fields, index: number): string {
  return fields[index] ?? "";
}
