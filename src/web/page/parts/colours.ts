// The colour of a name. It is given at the first sight of the name and kept by this browser, so that a name looks the same in
// every period and view.

const COLOURS = 7;
const STORE = "gateway-colours";
/** A browser that has seen this many names begins again. */
const MAX_NAMES = 200;

let known = read();

function read(): Map<string, number> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORE) ?? "[]");
    if (!Array.isArray(stored)) return new Map();
    const names = stored.filter((name): name is string => typeof name === "string");
    return new Map(names.map((name, index) => [name, index % COLOURS]));
  } catch {
    return new Map();
  }
}

/** The colours of names that are shown together. Nearby names differ, as long as there are enough colours. */
export function colourNames(names: readonly string[]): readonly number[] {
  const fresh = names.filter((name) => !known.has(name));
  if (fresh.length > 0) remember(fresh);
  return names.map((name) => known.get(name) ?? 0);
}

function remember(names: readonly string[]): void {
  if (known.size + names.length > MAX_NAMES) known = new Map();
  for (const name of names) known.set(name, known.size % COLOURS);
  try {
    localStorage.setItem(STORE, JSON.stringify([...known.keys()]));
  } catch {
    // A browser without storage gives the colours anew in each window.
  }
}
