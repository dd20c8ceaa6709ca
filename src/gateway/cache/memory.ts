// Remembers, without texts, what each session's requests left in upstreams' caches.

import { countSame, findChange } from "./change.ts";
import { judgeMiss, type Miss } from "./judge.ts";
import { findContinuation } from "./match.ts";
import { type CountedTurn, isShort, type Left, type PastTurn, keepTurn, type CacheTurn } from "./turn.ts";

const MAX_KEPT_PER_SESSION = 16;
/** This many parts take 37 MB if each prompt has 128. */
const MAX_PARTS = 2_097_152;
const PARTS_FOR_PROMPT = 128;
const NOTHING: Left = { tokens: 0, end: 0 };

export class CacheMemory {
  /** The least recently used first. */
  readonly #sessions = new Map<string, readonly PastTurn[]>();
  #parts = 0;

  get parts(): number {
    return this.#parts;
  }

  /** False: the turn can neither miss nor leave anything in the cache. */
  needsPrompt(session: string, turn: CountedTurn): boolean {
    const { tokens, reason } = turn;
    if (tokens.total === 0) return false;
    const isCached = tokens.read + tokens.written > 0;
    return isCached || reason !== null || !isShort(turn) || this.#sessions.has(session);
  }

  learn(session: string, turn: CacheTurn): Miss | null {
    const known = this.#sessions.get(session) ?? [];
    const continuation = findContinuation(known, turn);
    const miss = judgeMiss(turn, continuation);
    const before = continuation?.kept ?? null;
    const isLonger = before !== null && isContinued(before, turn);
    const kept = keepTurn(turn, before, {
      earlier: before && findEarlier(before, turn, isLonger),
      read: before === null ? NOTHING : findRead(before, turn, known),
    });
    // A longer prompt replaces the earlier one. Otherwise, both may be continued.
    const isReplaced = isLonger && kept !== null && kept.tokens >= before.tokens;
    const others = isReplaced ? known.filter((each) => each !== before) : known;
    this.#sessions.delete(session);
    if (isReplaced) this.#count(before, -1);
    this.#keep(session, kept === null ? others : [...others, kept], kept);
    return miss;
  }

  #keep(session: string, all: readonly PastTurn[], added: PastTurn | null): void {
    if (added !== null) this.#count(added, 1);
    for (const lost of all.slice(0, -MAX_KEPT_PER_SESSION)) this.#count(lost, -1);
    if (all.length > 0) this.#sessions.set(session, all.slice(-MAX_KEPT_PER_SESSION));
    for (const [oldest, kept] of this.#sessions) {
      if (this.#parts <= MAX_PARTS) return;
      this.#sessions.delete(oldest);
      for (const each of kept) this.#count(each, -1);
    }
  }

  #count({ turn }: PastTurn, sign: 1 | -1): void {
    const { count, shapes, settings, others } = turn.prompt;
    this.#parts += sign * (PARTS_FOR_PROMPT + count + shapes.length + settings.size + others.size);
  }
}

function isContinued(before: PastTurn, turn: CacheTurn): boolean {
  const { model, channel } = before.turn;
  return model === turn.model && channel === turn.channel && findChange(before, turn) === null;
}

function findEarlier(before: PastTurn, turn: CacheTurn, isLonger: boolean): Left | null {
  const { tokens, end, earlier } = before;
  const { read } = turn.tokens;
  if (isLonger && read >= tokens) return { tokens, end };
  if (earlier === null || before.turn.prompt.continues !== null || read < earlier.tokens) return null;
  return isContinued({ ...before, end: earlier.end }, turn) ? earlier : null;
}

/** A changed prompt reads at most what it shares with one turn of `all`. */
function findRead(before: PastTurn, turn: CacheTurn, all: readonly PastTurn[]): Left {
  if (before.turn.prompt.continues !== null) return NOTHING;
  const { read } = turn.tokens;
  const same = countSame(before, turn);
  const known = before.read.end <= same ? before.read : NOTHING;
  const isNew = same < before.end && read <= before.tokens && read !== known.tokens;
  if (!isNew || turn.prompt.edited) return read >= known.tokens ? known : NOTHING;
  return { tokens: read, end: Math.max(...all.map((each) => countSame(each, turn))) };
}
