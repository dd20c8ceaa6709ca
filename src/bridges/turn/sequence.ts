// The neutral form of an answer: blocks, one after the other, and an end. Readers put in what an upstream sends, in
// whatever order; a listener gets one block at a time, because most clients know one open block only.

import type { Seal } from "./conversation.ts";
import type { Failure } from "./failure.ts";

/** `search`: the provider searched the web for `text`. */
export type BlockKind = "text" | "refusal" | "reasoning" | "call" | "search";

export interface Source {
  readonly title: string;
  readonly url: string;
}

export interface Block {
  readonly kind: BlockKind;
  /** Its position in the answer. */
  readonly index: number;
  /** Of a call: its id, and the name that the upstream saw. */
  readonly id: string;
  readonly name: string;
  /** All of it so far. */
  text: string;
  seal: Seal | null;
  /** What a search found. */
  sources: readonly Source[];
}

/** Why an answer ended. */
export const END_REASONS = ["done", "calls", "cap", "stop", "refusal", "context"] as const;
export type EndReason = (typeof END_REASONS)[number];

export interface AnswerEnd {
  readonly reason: EndReason;
  /** The sequence that the model wrote to stop, if it is known. */
  readonly stop: string | null;
}

export interface AnswerListener {
  begin(id: string, model: string): void;
  open(block: Block): void;
  delta(block: Block, piece: string): void;
  close(block: Block): void;
  end(end: AnswerEnd): void;
  fail(failure: Failure): void;
  /** The upstream works, and has nothing to say. */
  idle(): void;
}

type Key = string | number;
type Opening = Pick<Block, "kind"> & Partial<Pick<Block, "id" | "name">>;

export class Sequence {
  /** Of the answer, in their order. */
  readonly blocks: Block[] = [];
  id = "";
  model = "";
  over = false;
  readonly #listener: AnswerListener;
  /** Those that have not been closed for the listener. It sees the first one. */
  readonly #queue: Block[] = [];
  readonly #open = new Map<Key, Block>();
  readonly #closed = new Set<Block>();
  #begun = false;

  constructor(listener: AnswerListener) {
    this.#listener = listener;
  }

  /** Many upstreams repeat this with every event: the first one counts. */
  begin(id: string, model: string): void {
    if (this.#begun || this.over) return;
    this.#begun = true;
    this.id = id;
    this.model = model;
    this.#listener.begin(id, model);
  }

  has(key: Key): boolean {
    return this.#open.has(key);
  }

  open(key: Key, { kind, id = "", name = "" }: Opening): void {
    if (this.over) return;
    this.begin("", "");
    const block: Block = { kind, index: this.blocks.length, id, name, text: "", seal: null, sources: [] };
    this.blocks.push(block);
    this.#open.set(key, block);
    this.#queue.push(block);
    if (this.#queue.length === 1) this.#listener.open(block);
  }

  delta(key: Key, piece: string): void {
    const block = this.#open.get(key);
    if (block === undefined || piece === "" || this.over) return;
    block.text += piece;
    if (block === this.#queue[0]) this.#listener.delta(block, piece);
  }

  /** The rest of a text of which an upstream sends all at the end. What has been sent of it is not sent again. */
  complete(key: Key, whole: string): void {
    const known = this.#open.get(key)?.text ?? "";
    if (whole.startsWith(known)) this.delta(key, whole.slice(known.length));
  }

  close(key: Key, seal: Seal | null = null, sources: readonly Source[] = []): void {
    const block = this.#open.get(key);
    if (block === undefined || this.over) return;
    this.#open.delete(key);
    block.seal = seal;
    block.sources = sources;
    this.#closed.add(block);
    this.#advance();
  }

  idle(): void {
    if (!this.over) this.#listener.idle();
  }

  /** An upstream's own word for calls is not believed: what it has sent decides. */
  end(reason: EndReason, stop: string | null = null): void {
    if (this.over) return;
    this.begin("", "");
    for (const key of this.#open.keys()) this.close(key);
    const called = reason === "done" && this.blocks.some(({ kind }) => kind === "call");
    const refused = reason === "done" && this.blocks.some(({ kind }) => kind === "refusal");
    this.over = true;
    this.#listener.end({ reason: called ? "calls" : refused ? "refusal" : reason, stop });
  }

  fail(failure: Failure): void {
    if (this.over) return;
    this.over = true;
    this.#listener.fail(failure);
  }

  /** Closes what can be closed for the listener, and shows it the next block. */
  #advance(): void {
    for (let head = this.#queue[0]; head !== undefined && this.#closed.has(head); head = this.#queue[0]) {
      this.#listener.close(head);
      this.#closed.delete(head);
      this.#queue.shift();
      const [next] = this.#queue;
      if (next === undefined) return;
      this.#listener.open(next);
      if (next.text !== "") this.#listener.delta(next, next.text);
    }
  }
}

/** Only the blocks are of interest: they become a whole answer. */
export class Collector implements AnswerListener {
  ended: AnswerEnd | null = null;
  failure: Failure | null = null;

  begin(): void {}
  open(): void {}
  delta(): void {}
  close(): void {}
  idle(): void {}

  end(end: AnswerEnd): void {
    this.ended = end;
  }

  fail(failure: Failure): void {
    this.failure = failure;
  }
}
