// Answers of a broken or dishonest upstream: some values of an answer are replaced by values of another kind, where a
// reader expects a text, a count, a list or an object.

import { Random } from "../../simulate/world/random.ts";

/** JSON texts. A double cannot hold all of them. */
const ODD_NUMBERS: readonly string[] = [
  "5000000",
  "9223372036854775808",
  "9007199254740993",
  "1e300",
  "1e999",
];
const ODD_VALUES: readonly string[] = [
  "-1",
  "0.5",
  "0",
  "null",
  "true",
  '""',
  '"5000000"',
  '"\\ud800"',
  "[]",
  "[1e300]",
  "{}",
  '{"text":1e300}',
  '{"text":5000000,"type":9007199254740993,"cost":1.5}',
  `"${"x".repeat(70_000)}"`,
  `${"[".repeat(600)}${"]".repeat(600)}`,
];

/** What an event or a body gets for one of its values, before it is JSON. */
const PLACE = "\u0001odd\u0001";

/** The pieces of an answer, of which one to three values are others. The same seed makes the same answer. */
export function mutatePieces(pieces: readonly string[], ...seed: readonly (string | number)[]): string[] {
  const random = new Random("mutate", ...seed);
  const changed = [...pieces];
  for (let left = random.between(1, 3); left > 0; left -= 1) {
    const index = random.int(changed.length);
    changed[index] = mutatePiece(changed[index] ?? "", random);
  }
  return changed;
}

/** A piece is an event with one line of data, or a body. */
function mutatePiece(piece: string, random: Random): string {
  const [, before = "", json = "", after = ""] = /^([^{[]*?)([{[].*[}\]])([^}\]]*)$/s.exec(piece) ?? [];
  const value = parse(json);
  if (value === undefined) return piece;
  const places = listPlaces(value);
  if (places.length === 0) return piece;
  const leaves = places.filter(({ holder, name }) => typeof Reflect.get(holder, name) !== "object");
  const { holder, name } = random.pick(leaves.length > 0 && random.chance(700) ? leaves : places);
  Reflect.set(holder, name, PLACE);
  const odd = random.pick(random.chance(500) ? ODD_NUMBERS : ODD_VALUES);
  return before + JSON.stringify(value).replace(JSON.stringify(PLACE), () => odd) + after;
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

interface Place {
  readonly holder: object;
  readonly name: string;
}

function listPlaces(value: unknown): Place[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => [{ holder: value, name }, ...listPlaces(inner)]);
}
