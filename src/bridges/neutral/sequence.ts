// The neutral form of an answer: blocks in order, and an end. A listener gets
// one block at a time, because most clients know only one open block.

import type { Json } from "./notes.ts";
import type { Seal } from "./conversation.ts";
import { blameAnswer, type UpstreamError } from "./error.ts";

/** `search`: the provider searched the web for `text`. */
export type BlockKind = "text" | "refusal" | "reasoning" | "call" | "search";

export interface WebSource {
  readonly title: string;
  readonly url: string;
}

export interface Block {
  readonly kind: BlockKind;
  readonly index: number;
  /** A call's id, and the name that the upstream saw. */
  readonly id: string;
  readonly name: string;
  text: string;
  isClosed: boolean;
  seal: Seal | null;
  sources: readonly WebSource[];
  /** The input is free text, not JSON. */
  readonly isFree: boolean;
  /** A remark, not the answer: `phase` is `commentary` in Responses. */
  readonly isAside: boolean;
  readonly logprobs: unknown[];
  citations: readonly Citation[];
}

/** Positions in the block's text, in code points. */
export interface Citation extends WebSource {
  readonly start: number;
  readonly end: number;
}

export interface AnswerAbout {
  readonly id?: string | undefined;
  /** In seconds since 1970. */
  readonly created?: number | undefined;
  readonly model?: string | undefined;
  readonly tier?: unknown;
  readonly metadata?: Json;
  readonly moderation?: Json;
}

/** `declined`: the model refused. `refusal`: a filter did. */
export const END_REASONS = ["done", "calls", "cap", "stop", "declined", "refusal", "context"] as const;
export type EndReason = (typeof END_REASONS)[number];

export interface AnswerEnd {
  readonly reason: EndReason;
  /** The stop sequence that the model wrote, if known. */
  readonly stop: string | null;
}

export interface AnswerListener {
  begin(about: AnswerAbout): void;
  open(block: Block): void;
  delta(block: Block, piece: string): void;
  close(block: Block): void;
  end(end: AnswerEnd, about: AnswerAbout): void;
  fail(failure: UpstreamError): void;
}

/** Real answers stay below both limits. */
export const MAX_BLOCKS = 10_000;
const MAX_HELD_CHARACTERS = 8 * 1024 * 1024;
const TOO_LONG = "The upstream's answer is too long to convert.";

const EMPTY = { text: "", isClosed: false, seal: null, isFree: false, isAside: false };

export class Sequence {
  readonly blocks: Block[] = [];
  about: AnswerAbout = {};
  hasBegun = false;
  ended: AnswerEnd | null = null;
  failure: UpstreamError | null = null;
  readonly #reword: (failure: UpstreamError) => UpstreamError;
  readonly #listener: AnswerListener | null;
  readonly #name: string;
  /** The block that the listener sees. Earlier blocks are closed. */
  #shown = 0;
  readonly #callIds = new Set<string>();
  /** What the listener has not got yet. */
  #pending = "";
  held = 0;
  #steps = 0;
  #brought: [Block, string] | null = null;

  /** A call whose id is missing or repeated gets an id that contains `name`. */
  constructor(
    name: string,
    listener: AnswerListener | null = null,
    reword = (failure: UpstreamError) => failure,
  ) {
    this.#reword = reword;
    this.#listener = listener;
    this.#name = name;
  }

  get isOver(): boolean {
    return this.ended !== null || this.failure !== null;
  }

  /** Many upstreams repeat the beginning: the first one counts. */
  begin(): void {
    if (this.hasBegun || this.isOver) return;
    this.hasBegun = true;
    this.#listener?.begin(this.about);
  }

  open(kind: BlockKind, own = "", name = "", more?: Partial<Pick<Block, "isFree" | "isAside">>): Block {
    this.begin();
    const index = this.blocks.length;
    const needsName = kind === "call" && (own === "" || this.#callIds.has(own));
    const id = needsName ? `call_${this.#name}_${index}` : own;
    const block: Block = {
      ...EMPTY,
      sources: [],
      logprobs: [],
      citations: [],
      kind,
      index,
      id,
      name,
      ...more,
    };
    if (this.isOver) return block;
    this.hold(index < MAX_BLOCKS ? id.length + name.length : MAX_HELD_CHARACTERS);
    if (this.isOver) return block;
    this.blocks.push(block);
    if (kind === "call") this.#callIds.add(id);
    if (index === this.#shown) this.#listener?.open(block);
    return block;
  }

  delta(block: Block, piece: string): void {
    if (piece === "" || block.isClosed || this.isOver) return;
    this.hold(piece.length);
    if (this.isOver) return;
    this.#brought = [block, piece];
    block.text += piece;
    if (block.index === this.#shown && this.#listener !== null) this.#pending += piece;
  }

  /** Sends pieces together: a small event costs the client as much as a large one. */
  flush(): void {
    const [piece, block] = [this.#pending, this.blocks[this.#shown]];
    if (piece === "" || block === undefined) return;
    this.#pending = "";
    this.#listener?.delta(block, piece);
  }

  /** The text that the last event added to a block, if the event did nothing else. */
  takeBrought(): [Block, string] | null {
    const brought = this.#steps === 1 ? this.#brought : null;
    this.#steps = 0;
    this.#brought = null;
    return brought;
  }

  /** Some upstreams repeat a complete text at the end. */
  complete(block: Block, whole: string): void {
    if (whole.startsWith(block.text)) this.delta(block, whole.slice(block.text.length));
  }

  close(block: Block, seal: Seal | null = null, sources: readonly WebSource[] = []): void {
    if (block.isClosed || this.isOver) return;
    this.#steps += 1;
    if (seal !== null || sources.length > 0) this.hold(JSON.stringify([seal, sources]).length);
    block.isClosed = true;
    block.seal = seal;
    block.sources = sources;
    this.#advance();
  }

  /** `done` becomes `calls` if the answer has a call,
   *  or else `declined` if it has a refusal. */
  end(reason: EndReason, stop: string | null = null): void {
    if (this.isOver) return;
    this.begin();
    for (const block of this.blocks.slice(this.#shown)) this.close(block);
    const has = (kind: BlockKind): boolean => this.blocks.some((block) => block.kind === kind);
    const own = reason !== "done" ? reason : has("call") ? "calls" : has("refusal") ? "declined" : "done";
    this.ended = { reason: own, stop };
    this.#listener?.end(this.ended, this.about);
  }

  fail(failure: UpstreamError): void {
    if (this.isOver) return;
    this.flush();
    this.failure = this.#reword(failure);
    if (this.hasBegun) this.#listener?.fail(this.failure);
  }

  /** Counts characters that this object or its reader keeps. */
  hold(length: number): void {
    this.#steps += 1;
    this.held += length;
    if (this.held >= MAX_HELD_CHARACTERS) this.fail(blameAnswer(TOO_LONG));
  }

  #advance(): void {
    for (let shown = this.blocks[this.#shown]; shown?.isClosed === true; shown = this.blocks[this.#shown]) {
      this.flush();
      this.#listener?.close(shown);
      this.#shown += 1;
      const next = this.blocks[this.#shown];
      if (next === undefined) return;
      this.#listener?.open(next);
      this.#pending = next.text;
    }
  }
}
