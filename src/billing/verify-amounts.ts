// The amounts of a million lines, quickly: requests that pay the same share a
// price list. Whatever a list does not find right is for verify-line.ts to judge.

import { isObject, parseJson } from "../lib/json.ts";
import { PriceList } from "./charge.ts";
import type { ScannedLine } from "./ledger-scan.ts";

const LISTS_KEPT = 1000;

export class AmountChecker {
  readonly #lists = new Map<string, PriceList>();

  /** True: certainly right. False: look closer. */
  isRight({ prices, usage, official, multiplier, charge, basis }: ScannedLine): boolean {
    const isPriced = basis === "exact" || basis === "partial";
    if (official === null || charge === null) return official === charge && prices === "null" && !isPriced;
    if (!isPriced || prices === "null") return false;
    try {
      return this.#listOf(prices).gives(usage, multiplier, { official, charge });
    } catch {
      return false;
    }
  }

  #listOf(text: string): PriceList {
    const known = this.#lists.get(text);
    if (known !== undefined) return known;
    if (this.#lists.size >= LISTS_KEPT) this.#lists.clear();
    const list = new PriceList(readPrices(text));
    this.#lists.set(text, list);
    return list;
  }
}

function readPrices(text: string): Record<string, string> {
  const read = parseJson(text);
  const prices: Record<string, string> = {};
  for (const [name, rate] of Object.entries(isObject(read) ? read : {})) {
    if (typeof rate === "string") prices[name] = rate;
  }
  return prices;
}
