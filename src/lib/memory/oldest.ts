// Maps that keep what was used last, in the order of use.

/** Removes the entry that was set first, if there are more than `most`. */
export function dropOldest(map: Map<unknown, unknown>, most: number): void {
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
