// What the writers of answers share.

import type { Usage } from "../../billing/usage.ts";
import type { DialectName, StreamBreak } from "../../dialects/dialect.ts";
import { DIALECTS } from "../../dialects/endpoints.ts";
import type { Seal, Tool, Wishes } from "./conversation.ts";
import { explainFailure, type Failure } from "./failure.ts";
import { findTool, type ToolTable } from "./names.ts";
import type { AnswerAbout, AnswerEnd, AnswerListener, Block } from "./sequence.ts";
import { finishInput, isHeld as isHeldInput } from "./tool-input.ts";

/** Replaces the id and the date of a response that has none. */
export interface RequestStamp {
  readonly id: string;
  /** Milliseconds. */
  readonly time: number;
}

/** What an answer needs from its request. */
export interface AnswerContext {
  readonly client: DialectName;
  readonly stamp: RequestStamp;
  /** As the client named it: Claude Code drops the thoughts of other models. */
  readonly model: string;
  readonly tools: ToolTable;
  /** Codex takes an answer that was cut by its cap for a broken one. */
  readonly isCodex: boolean;
  readonly wishes: Wishes;
  /** The client has asked for JSON. */
  readonly isJson: boolean;
  readonly closeSeal: (seal: Seal) => string;
  /** What the upstream's meter has counted. */
  readonly count: () => Usage;
}

/** The end of an answer that has all of its blocks. */
export interface WholeAnswer {
  readonly blocks: readonly Block[];
  readonly end: AnswerEnd;
  readonly about: AnswerAbout;
}

/** Writes the stream of a client's dialect. */
export abstract class AnswerWriter implements AnswerListener {
  protected readonly context: AnswerContext;
  /** The client's tool of the call that is open. */
  protected tool: Tool | null = null;
  /** Nothing of the open block is written before its end. */
  protected isHeld = false;
  /** The open block may be a call whose input is not an object, which is held. */
  #mayBeOdd = false;
  #text = "";

  constructor(context: AnswerContext) {
    this.context = context;
  }

  /** What has been written since the last call. */
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

  /** What the client knows of an answer that breaks. */
  protected position(): StreamBreak {
    return {};
  }

  /** What is still to be written of a call: its input, where clients have seen nothing of it. */
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

/** The client's own tool and name, and the input as it takes it. */
export function readCall(
  block: Block,
  { tools }: AnswerContext,
): { tool: Tool | null; name: string; input: string } {
  const tool = findTool(tools, block.name);
  return { tool, name: tool?.name ?? block.name, input: finishInput(tool, block) };
}

/** The client knows the call as one of a custom tool. */
export function isFreeText({ isFree }: Block, tool: Tool | null): boolean {
  return isFree || tool?.kind === "custom";
}

/** An answer's name in its client's session. An upstream's own id will not do: some servers use the same one again, and then
 *  Claude Code takes two answers for one. */
export function nameAnswer({ stamp }: Pick<AnswerContext, "stamp">): string {
  return stamp.id.replace(/^req_/, "");
}
