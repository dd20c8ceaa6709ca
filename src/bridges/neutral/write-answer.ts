// What the writers of answers share.

import type { Usage } from "../../billing/usage.ts";
import type { DialectName, StreamBreak } from "../../dialects/dialect.ts";
import { DIALECTS } from "../../dialects/endpoints.ts";
import type { Seal, Tool, Wishes } from "./conversation.ts";
import { explainFailure, type Failure } from "./failure.ts";
import { findTool, type ToolTable } from "./names.ts";
import type { AnswerAbout, AnswerEnd, AnswerListener, Block } from "./sequence.ts";
import { finishInput, isHeld as isHeldInput } from "./tool-input.ts";

/** Replaces a missing id or date of a response. */
export interface RequestStamp {
  readonly id: string;
  readonly time: number;
}

export interface AnswerContext {
  readonly client: DialectName;
  readonly stamp: RequestStamp;
  /** The client's name of the model: Claude Code drops thoughts of other models. */
  readonly model: string;
  readonly tools: ToolTable;
  /** Codex takes an answer that its cap cut for a broken one. */
  readonly isCodex: boolean;
  readonly wishes: Wishes;
  readonly isJson: boolean;
  readonly closeSeal: (seal: Seal) => string;
  /** What the upstream's meter has counted. */
  readonly count: () => Usage;
}

/** The end of an answer, and all of its blocks. */
export interface WholeAnswer {
  readonly blocks: readonly Block[];
  readonly end: AnswerEnd;
  readonly about: AnswerAbout;
}

export abstract class AnswerWriter implements AnswerListener {
  protected readonly context: AnswerContext;
  /** The client's tool of the open call. */
  protected tool: Tool | null = null;
  /** The open block is written only at its end. */
  protected isHeld = false;
  /** The open block may be a call whose input is not an object. Such a call is held. */
  #mayBeOdd = false;
  #text = "";

  constructor(context: AnswerContext) {
    this.context = context;
  }

  /** The text written since the last call. */
  take(): string {
    const text = this.#text;
    this.#text = "";
    return text;
  }

  open(block: Block): void {
    const isCall = block.kind === "call";
    this.tool = isCall ? findTool(this.context.tools, block.name) : null;
    this.isHeld = block.kind === "search" || (!block.isFree && isHeldInput(this.tool));
    this.#mayBeOdd = isCall && !block.isFree;
    this.start(block);
  }

  delta(block: Block, piece: string): void {
    const begins = this.#mayBeOdd && piece.trim() !== "";
    if (begins && !piece.trimStart().startsWith("{")) this.isHeld = true;
    if (begins) this.#mayBeOdd = false;
    if (!this.isHeld) this.grow(block, piece);
  }

  fail(failure: Failure): void {
    const { client, stamp } = this.context;
    this.put(DIALECTS[client].errorEvent(explainFailure(failure, client), stamp.id, this.position()));
  }

  protected put(text: string): void {
    this.#text += text;
  }

  /** What the client knows of a broken answer. */
  protected position(): StreamBreak {
    return {};
  }

  /** The input of a call that clients have not seen. Null: they have. */
  protected readRest(block: Block): string | null {
    return this.isHeld || block.text === "" ? finishInput(this.tool, block) : null;
  }

  abstract begin(about: AnswerAbout): void;
  protected abstract start(block: Block): void;
  protected abstract grow(block: Block, piece: string): void;
  abstract close(block: Block): void;
  abstract end(end: AnswerEnd, about: AnswerAbout): void;
  abstract idle(): void;
}

/** The client's own tool and name, and the input as the tool takes it. */
export function readCall(
  block: Block,
  { tools }: AnswerContext,
): { tool: Tool | null; name: string; input: string } {
  const tool = findTool(tools, block.name);
  return { tool, name: tool?.name ?? block.name, input: finishInput(tool, block) };
}

/** Whether the client sees a call of a custom tool. */
export function isFreeText({ isFree }: Block, tool: Tool | null): boolean {
  return isFree || tool?.kind === "custom";
}

/** An answer's name in the client's session. Some servers use an id again, and Claude Code would
 *  take two answers for one. */
export function nameAnswer({ stamp }: Pick<AnswerContext, "stamp">): string {
  return stamp.id.replace(/^req_/, "");
}
