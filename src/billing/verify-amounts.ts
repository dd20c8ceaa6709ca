// The amounts of a million lines, quickly: lines of one form are checked alike.
// Whatever is not found right is for verify-line.ts to judge.

import { isObject, parseJson } from "../lib/json.ts";
import { AmountCheck } from "./charge.ts";
import type { Form } from "./ledger-form.ts";
import type { ScannedLine } from "./ledger-scan.ts";

export class AmountChecker {
  readonly #checks = new WeakMap<Form, AmountCheck | null>();

  /** True: certainly right. False: look closer. */
  isRight({ form, counts, official, charge }: ScannedLine): boolean {
    if (form.prices === null || official === null || charge === null) return true;
    let check = this.#checks.get(form);
    if (check === undefined) this.#checks.set(form, (check = createCheck(form, form.prices)));
    return check !== null && check.passes(counts, official, charge);
  }
}

function createCheck({ kinds, multiplier }: Form, prices: string): AmountCheck | null {
  const read = parseJson(prices);
  const rates: Record<string, string> = {};
  for (const [name, rate] of Object.entries(isObject(read) ? read : {})) {
    if (typeof rate === "string") rates[name] = rate;
  }
  try {
    return new AmountCheck(kinds, rates, multiplier);
  } catch {
    return null;
  }
}
