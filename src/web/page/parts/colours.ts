// The colour of a name. It follows from the name, so that a name looks the same in every period and view. Of the names that
// are shown together, a later one takes the next free colour.

import { OTHERS } from "../../../billing/reports/words.ts";

/** A name that nobody has chosen is grey. */
const COLOURS = 10;

/** As CSS. They differ, if there are enough colours. */
export function colourNames(names: readonly string[]): readonly string[] {
  const used = new Set<number>();
  return names.map((name) => {
    if (name === OTHERS) return colourAt(null);
    let place = hash(name) % COLOURS;
    while (used.has(place) && used.size < COLOURS) place = (place + 1) % COLOURS;
    used.add(place);
    return colourAt(place);
  });
}

function colourAt(place: number | null): string {
  return `var(--c${place === null ? "-others" : place % COLOURS})`;
}

function hash(name: string): number {
  let sum = 7;
  for (let at = 0; at < name.length; at += 1) sum = (sum * 31 + name.charCodeAt(at)) % 9973;
  return sum;
}
