// The colour of a name. It is given at the first sight of the name and kept by this browser, so that a name looks the same in
// every period and view. Models, keys and labels have colours of their own: they are never shown together.

import { OTHERS, type Stack } from "../../api.ts";

/** What has no name is grey. */
const COLOURS = 18;
const STORE = "gateway-colours-of";
/** A browser that has seen this many names of a kind begins again. */
const MAX_NAMES = 200;

/** The colours of names that are shown together, as CSS. They differ, as long as there are enough colours. */
export function colourNames(by: Stack, names: readonly string[]): readonly string[] {
  const known = read(by);
  const named = names.filter((name) => name !== OTHERS);
  const fresh = named.filter((name) => !known.has(name));
  if (known.size + fresh.length > MAX_NAMES) known.clear();
  const shown = new Set(named.flatMap((name) => known.get(name) ?? []));
  for (const name of named) {
    if (known.has(name)) continue;
    const colour = chooseColour([...known.values()], shown);
    known.set(name, colour);
    shown.add(colour);
  }
  if (fresh.length > 0) write(by, known);
  return names.map((name) => colourAt(name === OTHERS ? null : (known.get(name) ?? 0)));
}

export function colourAt(place: number | null): string {
  return `var(--c${place === null ? "-others" : place % COLOURS})`;
}

/** The one that the fewest names have, and none of those beside it. */
function chooseColour(used: readonly number[], shown: ReadonlySet<number>): number {
  const counts = Array.from({ length: COLOURS }, (_, colour) => ({
    colour,
    names: used.filter((each) => each === colour).length + (shown.has(colour) ? MAX_NAMES : 0),
  }));
  return counts.reduce((least, each) => (each.names < least.names ? each : least)).colour;
}

function read(by: Stack): Map<string, number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(`${STORE}-${by}`) ?? "[]");
    if (!Array.isArray(stored)) return new Map();
    const pairs = stored.filter(
      (pair): pair is [string, number] => typeof pair?.[0] === "string" && typeof pair[1] === "number",
    );
    return new Map(pairs);
  } catch {
    return new Map();
  }
}

function write(by: Stack, known: ReadonlyMap<string, number>): void {
  try {
    localStorage.setItem(`${STORE}-${by}`, JSON.stringify([...known]));
  } catch {
    // A browser without storage gives the colours anew each time.
  }
}
