// The amounts of a million lines, quickly: lines of one form are checked alike.
// Whatever is not found right is for verify-line.ts to judge.

import { isObject, parseJson } from "../lib/json.ts";
import { AmountCheck } from "./charge.ts";
import type { Form } from "./ledger-form.ts";
import type { ScannedLine } from "./ledger-scan.ts";

interface Check {
  readonly amounts: AmountCheck;
  /** For each of the line's kinds, where its parts' counts of it stand. */
  readonly addends: readonly (readonly number[])[];
}

export class AmountChecker {
  readonly #checks = new WeakMap<Form, Check | null>();

  /** True: certainly right. False: look closer. */
  isRight({ form, counts, official, charge }: ScannedLine): boolean {
    if (form.prices === null || official === null || charge === null) return true;
    let check = this.#checks.get(form);
    if (check === undefined) this.#checks.set(form, (check = createCheck(form, form.prices)));
    if (check === null) return false;
    if (form.parts.length === 0) return check.amounts.passes(counts, 0, official, charge);
    return check.amounts.passes(counts, form.kinds.length, official, charge) && addsUp(counts, check.addends);
  }
}

function createCheck({ kinds, parts, multiplier }: Form, prices: string): Check | null {
  const addends = findAddends(kinds, parts);
  const priced = parts.map((part) => ({ kinds: part.kinds, prices: readRates(part.prices) }));
  try {
    const amounts = new AmountCheck({ kinds, prices: readRates(prices) }, priced, multiplier);
    return addends === null ? null : { amounts, addends };
  } catch {
    return null;
  }
}

function readRates(text: string): Record<string, string> {
  const read = parseJson(text);
  const rates: Record<string, string> = {};
  for (const [name, rate] of Object.entries(isObject(read) ? read : {})) {
    if (typeof rate === "string") rates[name] = rate;
  }
  return rates;
}

/** Null where a part counts what the line does not. */
function findAddends(kinds: readonly string[], parts: Form["parts"]): number[][] | null {
  const addends = kinds.map((): number[] => []);
  let at = kinds.length;
  for (const part of parts) {
    for (const kind of part.kinds) {
      const own = addends[kinds.indexOf(kind)];
      if (own === undefined) return null;
      own.push(at);
      at += 1;
    }
    // Its amount.
    at += 1;
  }
  return addends;
}

function addsUp(counts: ArrayLike<number>, addends: readonly (readonly number[])[]): boolean {
  return addends.every((places, index) => {
    const sum = places.reduce((added, place) => added + (counts[place] ?? 0), 0);
    return sum === counts[index];
  });
}
