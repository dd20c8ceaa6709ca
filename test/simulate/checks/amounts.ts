// Computes every amount of the ledger again, from its line alone and without the gateway's code: in exact decimals, and
// rounded once.

import type { World } from "../run.ts";

interface Part {
  readonly usage: Readonly<Record<string, number>>;
  readonly prices: Readonly<Record<string, string>> | null;
}

/** What a line says of its money. */
export interface Billed extends Part {
  readonly model: string;
  readonly basis: string;
  readonly official_usd: string | null;
  readonly charge_usd: string | null;
  readonly multiplier: string;
  /** Several passes or calls, each with prices of its own. */
  readonly parts?: readonly Part[];
}

export function checkAmounts(world: World, lines: readonly Billed[]): void {
  for (const line of lines) {
    const { model, basis, multiplier, official_usd: official, charge_usd: charge } = line;
    const whole = sum((line.parts ?? [line]).map(costOf));
    if ((official === null) !== (whole === null))
      world.accuse(
        "amounts",
        `The official amount of ${model} (${basis}) is ${official}, but ${whole === null ? "not all" : "all"} of its usage has a price.`,
      );
    if (official === null || whole === null) continue;
    if (!isSame(read(official), whole))
      world.accuse(
        "amounts",
        `The official amount of ${model} is ${official}, but usage × prices is ${show(whole)}.`,
      );
    const product = round(times(whole, read(multiplier)));
    if (charge === null || !isSame(read(charge), product))
      world.accuse(
        "amounts",
        `The charge of ${model} (${basis}) is ${charge}, but should be ${show(product)}.`,
      );
  }
}

/** Tokens have a price per million, and calls one per thousand. Factors (a service tier, a region) are for tokens only.
 *  Null: something has no price. */
function costOf({ usage, prices }: Part): Exact | null {
  if (prices === null) return null;
  const factors = Object.entries(prices).filter(([name]) => name.startsWith("factor:"));
  const factor = factors.reduce((product, [, text]) => times(product, read(text)), ONE);
  const counted = Object.entries(usage).filter(([kind, count]) => kind !== "reasoning" && count > 0);
  const amounts = counted.map(([kind, count]) => {
    const [perMillion, perThousand] = [prices[kind], prices[`${kind}_per_1k`]];
    const number = { units: BigInt(count), places: 0 };
    if (perMillion !== undefined) return times(shift(number, 6), times(read(perMillion), factor));
    return perThousand === undefined ? null : times(shift(number, 3), read(perThousand));
  });
  return sum(amounts);
}

/** `units` / 10^`places` */
interface Exact {
  readonly units: bigint;
  readonly places: number;
}

const NOTHING: Exact = { units: 0n, places: 0 };
const ONE: Exact = { units: 1n, places: 0 };
const CHARGE_PLACES = 12;

function read(text: string): Exact {
  const [whole = "0", fraction = ""] = text.split(".");
  return { units: BigInt(whole + fraction), places: fraction.length };
}

function times(one: Exact, other: Exact): Exact {
  return { units: one.units * other.units, places: one.places + other.places };
}

/** Divided by 10^`digits`. */
function shift({ units, places }: Exact, digits: number): Exact {
  return { units, places: places + digits };
}

function sum(amounts: ReadonlyArray<Exact | null>): Exact | null {
  return amounts.reduce((total, amount) => total && amount && plus(total, amount), NOTHING);
}

function plus(one: Exact, other: Exact): Exact {
  const places = Math.max(one.places, other.places);
  return { units: unitsAt(one, places) + unitsAt(other, places), places };
}

function isSame(one: Exact, other: Exact): boolean {
  const places = Math.max(one.places, other.places);
  return unitsAt(one, places) === unitsAt(other, places);
}

function unitsAt({ units, places }: Exact, wanted: number): bigint {
  return units * 10n ** BigInt(wanted - places);
}

/** Half away from zero. No amount is negative. */
function round(amount: Exact): Exact {
  if (amount.places <= CHARGE_PLACES) return amount;
  const unit = 10n ** BigInt(amount.places - CHARGE_PLACES);
  return { units: (amount.units + unit / 2n) / unit, places: CHARGE_PLACES };
}

function show({ units, places }: Exact): string {
  const text = units.toString().padStart(places + 1, "0");
  return `${text.slice(0, text.length - places)}.${text.slice(text.length - places)}`;
}
