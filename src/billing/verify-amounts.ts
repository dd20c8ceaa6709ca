// The amounts of a million lines, quickly: what one token of each kind costs is
// derived once for each list of prices (charge.ts says it), and amounts are the
// sum of counts times that. Whatever does not come out equal, or can't be done so,
// is for verify-line.ts to judge.

import { isObject, parseJson } from "../lib/json.ts";
import { CHARGE_PLACES, type Decimal, multiplyDecimals, parseDecimal, roundDecimal } from "../lib/money.ts";
import { deriveAmounts } from "./charge.ts";
import type { ScannedLine } from "./ledger-scan.ts";

/** The places at which one token's cost is held: enough for usual prices and factors, and quick. Others get the closer look. */
const PLACES = 15;
const MAX_LISTS = 1000;

type UnitCosts = Map<string, bigint | null>;

export class AmountChecker {
  readonly #lists = new Map<string, UnitCosts>();
  readonly #decimals = new Map<string, Decimal>();

  /** True: certainly right. False: look closer. */
  isRight({ prices, usage, official, multiplier, charge, basis }: ScannedLine): boolean {
    const isPriced = basis === "exact" || basis === "partial";
    if (official === null || charge === null) return official === charge && prices === "null" && !isPriced;
    const units = isPriced ? this.#sumCosts(prices, usage) : null;
    return (
      units !== null &&
      equals(parseDecimal(official), { units, scale: PLACES }) &&
      this.#isCharge(units, multiplier, charge)
    );
  }

  /** Null: look closer. */
  #sumCosts(prices: string, usage: ScannedLine["usage"]): bigint | null {
    const costs = this.#costsOf(prices);
    let units = 0n;
    for (const kind in usage) {
      const count = usage[kind];
      if (typeof count !== "number" || !Number.isSafeInteger(count) || count < 0) return null;
      if (count === 0) continue;
      const cost = costOf(costs, prices, kind);
      if (cost === null) return null;
      units += BigInt(count) * cost;
    }
    return units;
  }

  #isCharge(units: bigint, multiplier: string, charge: string): boolean {
    const times = multiplyDecimals({ units, scale: PLACES }, this.#parse(multiplier));
    return equals(parseDecimal(charge), roundDecimal(times, CHARGE_PLACES));
  }

  #costsOf(prices: string): UnitCosts {
    const known = this.#lists.get(prices);
    if (known !== undefined) return known;
    if (this.#lists.size >= MAX_LISTS) this.#lists.clear();
    const costs: UnitCosts = new Map();
    this.#lists.set(prices, costs);
    return costs;
  }

  #parse(text: string): Decimal {
    const known = this.#decimals.get(text);
    if (known !== undefined) return known;
    if (this.#decimals.size >= MAX_LISTS) this.#decimals.clear();
    const value = parseDecimal(text);
    this.#decimals.set(text, value);
    return value;
  }
}

/** Null: there is no price, or one that takes a closer look. */
function costOf(costs: UnitCosts, prices: string, kind: string): bigint | null {
  const known = costs.get(kind);
  if (known !== undefined) return known;
  const cost = deriveCost(prices, kind);
  costs.set(kind, cost);
  return cost;
}

function deriveCost(text: string, kind: string): bigint | null {
  const rates: Record<string, string> = {};
  const read = parseJson(text);
  for (const [name, rate] of Object.entries(isObject(read) ? read : {})) {
    if (typeof rate !== "string") return null;
    rates[name] = rate;
  }
  try {
    const { official } = deriveAmounts({ usage: { [kind]: 1 }, prices: rates, multiplier: "1" });
    if (official === null) return null;
    const { units, scale } = parseDecimal(official);
    return scale > PLACES ? null : units * 10n ** BigInt(PLACES - scale);
  } catch {
    return null;
  }
}

function equals(told: Decimal, derived: Decimal): boolean {
  const places = derived.scale - told.scale;
  return places >= 0 && told.units * raise(places) === derived.units;
}

const POWERS = Array.from({ length: PLACES + 1 }, (_, places) => 10n ** BigInt(places));

function raise(places: number): bigint {
  return POWERS[places] ?? 10n ** BigInt(places);
}
