// Hashes of a session's earlier parts: only new ones are read. Memory is bounded, without texts.

import type { PartFacts } from "../../dialects/prompt/blocks.ts";
import type { Lists } from "../../lib/scan.ts";

const MAX_CONVERSATIONS = 16;
/** Of all sessions: 30 MB. */
const MAX_PARTS = 65_536;

type Known = Lists<PartFacts>;

export class KnownParts {
  /** The least recently used first; in each, the last conversation first. */
  readonly #sessions = new Map<string, readonly Known[]>();
  #parts = 0;

  find(session: string): readonly Known[] {
    return this.#sessions.get(session) ?? [];
  }

  keep(session: string, lists: Known): void {
    const known = this.find(session);
    const others = known.filter((each) => !isContinued(each, lists));
    const all = [lists, ...others].slice(0, MAX_CONVERSATIONS);
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

/** Each list begins as before, or is gone. Claude Code's line about itself always differs. */
function isContinued(known: Known, lists: Known): boolean {
  for (const [name, { parts }] of known) {
    const now = lists.get(name)?.parts;
    if (now === undefined || parts.length === 0) continue;
    if (!parts.slice(0, MAX_FIRST).some((part, at) => part === now[at])) return false;
  }
  return true;
}

function countParts(all: readonly Known[]): number {
  return all.reduce(
    (sum, lists) => [...lists.values()].reduce((most, { parts }) => most + parts.length, sum),
    0,
  );
}
