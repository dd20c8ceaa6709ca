// Bugs that the simulator must find (bugs.jsonl). They were chosen by somebody who had read the product's source and docs, and
// not the simulator. Each replaces one text of the source, in memory. The text may be in any file, and its white space may
// differ, so that a bug survives moves, renames and new line breaks. If the text is gone, the name says what to break instead.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Change } from "../world/bundle.ts";

export interface Bug {
  /** What is wrong with the gateway. */
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Of a thousand runs with random seeds, how many show it. `planted/main.ts --rate` counts that. */
  readonly perThousand: number;
  /** How many seeds the rate is from, if they were few. */
  readonly seeds?: number;
}

/** How likely it was that so many runs find each bug, the least likely first. */
export function describeChances(runs: number): string[] {
  const chances = BUGS.map(({ name, perThousand, seeds }) => ({
    text: seeds === undefined ? name : `${name} (a rate from ${seeds} seeds)`,
    chance: 1 - (1 - perThousand / 1000) ** runs,
  }));
  return chances
    .toSorted((a, b) => a.chance - b.chance)
    .map(({ text, chance }) => `${(100 * chance).toFixed(0).padStart(5)} %  ${text}`);
}

export const BUGS: readonly Bug[] = readFileSync(join(import.meta.dir, "bugs.jsonl"), "utf8")
  .trimEnd()
  .split("\n")
  .map((line): Bug => JSON.parse(line));

const ROOT = join(import.meta.dir, "../../..");

/** The change that plants the bug. A sentence: why it cannot be planted. */
export function findPlace({ from, to }: Bug): Change | string {
  const pattern = new RegExp(
    from
      .split(/\s+/)
      .map((part) => RegExp.escape(part))
      .join("\\s+"),
    "g",
  );
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
  const places = files
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name): Change[] => {
      const file = join("src", name);
      const texts = readFileSync(join(ROOT, file), "utf8").match(pattern) ?? [];
      return texts.map((text) => ({ file, from: text, to }));
    });
  const [place] = places;
  return place !== undefined && places.length === 1
    ? place
    : `its text is in the source ${places.length} times: write it anew, so that it does what its name says`;
}
