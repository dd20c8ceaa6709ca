// Keeps hashes of a session's earlier parts, so that only new ones are read.

import type { PartFacts } from "../../dialects/prompt/blocks.ts";
import type { Lists } from "../../lib/scan.ts";

const MAX_CONVERSATIONS = 16;
/** The parts of all sessions together: up to 30 MB. */
const MAX_PARTS = 65_536;

type Known = Lists<PartFacts>;

export class KnownParts {
  /** The least recently used session first; in it, the last conversation first. */
  readonly #sessions = new Map<string, readonly Known[]>();
  #parts = 0;

  find(session: string): readonly Known[] {
    return this.#sessions.get(session) ?? [];
  }

  keep(session: string, lists: Known): void {
    const known = this.find(session);
    const all = [lists];
    for (const each of known) if (all.length < MAX_CONVERSATIONS && !isContinued(each, lists)) all.push(each);
    this.#sessions.delete(session);
    this.#sessions.set(session, all);
    this.#parts += countParts(all) - countParts(known);
    for (const [oldest, lost] of this.#sessions) {
      if (this.#parts <= MAX_PARTS) break;
      this.#sessions.delete(oldest);
      this.#parts -= countParts(lost);
    }
  }
}

const MAX_FIRST = 4;

/** Whether one of each list's first parts is unchanged.
 *  Claude Code's very first part changes every time. */
function isContinued(known: Known, lists: Known): boolean {
  for (const [name, { parts }] of known) {
    const now = lists.get(name)?.parts;
    if (now === undefined || parts.length === 0) continue;
    let at = 0;
    while (at < MAX_FIRST && parts[at] !== now[at]) at += 1;
    if (at >= Math.min(MAX_FIRST, parts.length)) return false;
  }
  return true;
}

function countParts(all: readonly Known[]): number {
  let sum = 0;
  for (const lists of all) for (const { parts } of lists.values()) sum += parts.length;
  return sum;
}
