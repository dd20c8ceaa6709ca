// A bug: a few texts of the source, and what replaces them.

import type { Change } from "../world/bundle.ts";

export interface Bug {
  readonly name: string;
  readonly changes: readonly Change[];
}

export function plant(name: string, file: string, from: string, to: string): Bug {
  return { name, changes: [{ file, from, to }] };
}
