import { readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** Linux reports a loop after this many. */
const MAX_LINKS = 40;

/** Follows links at the path, not among its folders. The file may be missing. */
export function followLinks(path: string, most = MAX_LINKS): string {
  const target = most > 0 ? readLink(path) : null;
  return target === null ? path : followLinks(target, most - 1);
}

export function resolveFolder(path: string): string {
  return join(realpathSync(dirname(path)), basename(path));
}

/** `realpathSync` would fail while the file is replaced. */
export function resolveLinks(path: string): string {
  return resolveFolder(followLinks(path));
}

function readLink(path: string): string | null {
  try {
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    // Not a link.
    return null;
  }
}
