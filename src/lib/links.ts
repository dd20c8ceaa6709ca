// Where a path leads that may be a symbolic link.

import { readlinkSync, realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** As many as systems follow before they speak of a loop. */
const MOST_LINKS = 40;

/** The file at the end of the links, also where it is yet to be made. Links among the folders stay as written. */
export function followLinks(path: string, most = MOST_LINKS): string {
  const target = most > 0 ? readLink(path) : null;
  return target === null ? path : followLinks(target, most - 1);
}

function readLink(path: string): string | null {
  try {
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    // No link.
    return null;
  }
}
