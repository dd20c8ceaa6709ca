// Notes what prompts consist of, for `gateway context`. No text is kept.

import { existsSync } from "node:fs";
import {
  markOf,
  MAX_FILE_BYTES,
  MAX_FOLDER_BYTES,
  nameFile,
  nameFolder,
  openKey,
  shrinkFolder,
} from "../../billing/reports/context-notes.ts";
import type { LineDraft } from "../../billing/ledger/line.ts";
import { countTokens, PROMPT_KINDS } from "../../billing/usage.ts";
import type { Piece } from "../../dialects/prompt/blocks.ts";
import { BoundedMap } from "../../lib/memory/bounded-map.ts";
import { messageOf } from "../../lib/errors.ts";
import { appendOwn } from "../../lib/files/own-file.ts";
import { REMOVED } from "../../lib/text/printable.ts";
import { makeFolder } from "../../lib/files/private-folder.ts";

export type ContextNotes = Pick<Contexts, "note" | "last"> & { close(): void | Promise<void> };

interface AboutTurn {
  readonly isContinued?: boolean;
  readonly called?: readonly string[] | undefined;
  readonly isSecret?: (name: string) => boolean;
}

interface LastPrompt {
  readonly tokens: number;
  readonly shares: Readonly<Record<string, number>>;
}

/** What a session has sent. Each part is noted once. */
interface Session {
  readonly numbers: Map<number, number>;
  bytes: number;
  /** The last prompt of each agent. The main agent has no name. */
  readonly prompts: BoundedMap<string, NotedPrompt>;
}

interface NotedPrompt {
  readonly tokens: number;
  readonly pieces: readonly Piece[];
  readonly numbers: readonly number[];
}

const MAX_SESSIONS = 64;
const MAX_AGENTS = 16;
const MAX_PARTS = 10_000;
const WRITE_MS = 1000;
/** The folder's size is checked each time that this much was written. */
const SHRINK_BYTES = MAX_FOLDER_BYTES / 8;

export class Contexts implements ContextNotes {
  readonly #folder: string;
  readonly #warn: (text: string) => void;
  /** Marks this process's lines: another gateway may note the same session. */
  readonly #by = crypto.randomUUID().slice(0, 8);
  #key: Bun.CryptoHasher | null = null;
  readonly #sessions = new BoundedMap<string, Session>(MAX_SESSIONS);
  readonly #waiting = new Map<string, string[]>();
  #written = SHRINK_BYTES;
  #timer: Timer | undefined;
  #hasFailed = false;

  constructor(ledgerPath: string, warn: (text: string) => void) {
    this.#folder = nameFolder(ledgerPath);
    this.#warn = warn;
  }

  note(line: LineDraft, sent: readonly Piece[], about: AboutTurn = {}): void {
    const { session: name, agent } = line.client ?? {};
    if (name === undefined || this.#hasFailed) return;
    const session = this.#sessions.get(name) ?? this.#begin(name);
    this.#sessions.set(name, session);
    const { numbers, fresh } = notePrompt(session, line, sent, about);
    if (session.bytes > MAX_FILE_BYTES || session.numbers.size > MAX_PARTS) return;
    this.#key ??= this.#try(() => {
      makeFolder(this.#folder);
      return openKey(this.#folder);
    });
    if (this.#key === null) return;
    const news = describeNew(fresh, this.#key, about);
    this.#add(name, session, { by: this.#by, id: line.id, agent, ...news, sent: joinRanges(numbers) });
  }

  last(session: string): LastPrompt | null {
    const last = this.#sessions.get(session)?.prompts.get("") ?? null;
    return last && { tokens: last.tokens, shares: shareOf(last.pieces) };
  }

  close(): void {
    this.#write();
  }

  #begin(name: string): Session {
    const prompts = new BoundedMap<string, NotedPrompt>(MAX_AGENTS);
    const session: Session = { numbers: new Map(), bytes: 0, prompts };
    this.#add(name, session, { v: 1, session: name, by: this.#by });
    return session;
  }

  #add(name: string, session: Session, value: object): void {
    const line = `${JSON.stringify(value)}\n`;
    this.#waiting.getOrInsertComputed(name, () => []).push(line);
    session.bytes += line.length;
    this.#timer ??= setTimeout(() => this.#write(), WRITE_MS).unref();
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#try(() => makeFolder(this.#folder));
    if (this.#key === null || this.#hasFailed) return;
    for (const [name, lines] of this.#waiting) {
      this.#try(() => appendOwn(nameFile(this.#folder, name), Buffer.from(lines.join(""))));
      this.#written += lines.reduce((sum, line) => sum + line.length, 0);
    }
    this.#waiting.clear();
    if (this.#written < SHRINK_BYTES) return;
    this.#written = 0;
    this.#try(() => shrinkFolder(this.#folder));
    // A session without its file begins anew.
    for (const name of this.#sessions.keys())
      if (!existsSync(nameFile(this.#folder, name))) this.#sessions.delete(name);
  }

  /** A full disk costs only the notes. */
  #try<T>(act: () => T): T | null {
    if (this.#hasFailed) return null;
    try {
      return act();
    } catch (error) {
      this.#hasFailed = true;
      this.#warn(`what prompts consist of is no longer noted: ${messageOf(error)}`);
      return null;
    }
  }
}

function shareOf(pieces: readonly Piece[]): LastPrompt["shares"] {
  const total = pieces.reduce((sum, { size }) => sum + size, 0);
  const shares: Record<string, number> = {};
  for (const { kind, size } of pieces) shares[kind] = (shares[kind] ?? 0) + size / total;
  return shares;
}

function describeNew(fresh: readonly Piece[], key: Bun.CryptoHasher, { isSecret, called }: AboutTurn) {
  const clean = (name: string): string => (isSecret?.(name) === true ? REMOVED : name);
  const parts = fresh.map(({ kind, name, size, hash }) => [kind, clean(name), size, markOf(key, hash)]);
  return { called: called?.map(clean), parts: parts.length === 0 ? undefined : parts };
}

function notePrompt(
  session: Session,
  { client, usage }: LineDraft,
  sent: readonly Piece[],
  { isContinued = false }: AboutTurn,
): NotedPrompt & { readonly fresh: readonly Piece[] } {
  const agent = client?.agent ?? "";
  const before = session.prompts.get(agent);
  // If the upstream keeps the conversation, a request has only the last pieces.
  const pieces = isContinued && before !== undefined ? [...before.pieces, ...sent].slice(-MAX_PARTS) : sent;
  const fresh: Piece[] = [];
  // Nearly all pieces are where they were in the last prompt.
  const { pieces: earlier, numbers: known } = before ?? { pieces: [], numbers: [] };
  const numbers = known.slice(0, pieces.length);
  for (let at = 0; at < pieces.length; at += 1) {
    const piece = pieces[at];
    if (piece !== undefined && piece !== earlier[at]) numbers[at] = numberPiece(session, piece, fresh);
  }
  const prompt = { tokens: countTokens(usage, PROMPT_KINDS), pieces, numbers };
  session.prompts.set(agent, prompt);
  return { ...prompt, fresh };
}

function numberPiece({ numbers }: Session, piece: Piece, fresh: Piece[]): number {
  const known = numbers.get(piece.hash);
  if (known !== undefined || numbers.size > MAX_PARTS) return known ?? 0;
  fresh.push(piece);
  numbers.set(piece.hash, numbers.size);
  return numbers.size - 1;
}

function joinRanges(numbers: readonly number[]): [from: number, to: number][] {
  const ranges: [from: number, to: number][] = [];
  let last: [from: number, to: number] = [0, 0];
  for (const number of numbers)
    if (last[1] === number && ranges.length > 0) last[1] += 1;
    else ranges.push((last = [number, number + 1]));
  return ranges;
}
