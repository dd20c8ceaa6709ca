// What the writers of answers share.

import {
  countTokens,
  OUTPUT_KINDS,
  PROMPT_KINDS,
  READ_KINDS,
  type Usage,
  WRITE_KINDS,
} from "../../billing/usage.ts";
import type { DialectName, StreamBreak } from "../../dialects/dialect.ts";
import { DIALECTS } from "../../dialects/endpoints.ts";
import { type Slices, writeSlices } from "../../lib/json/slices.ts";
import type { Seal, Tool, Wishes } from "./conversation.ts";
import { toClientError, type UpstreamError } from "./error.ts";
import type { Json } from "./notes.ts";
import { findTool, finishInput, isHeld as isHeldInput, type ToolTable } from "./tools.ts";
import type { AnswerAbout, AnswerEnd, AnswerListener, Block } from "./sequence.ts";

/** The id and time of a response whose upstream sends none. */
export interface RequestStamp {
  readonly id: string;
  readonly time: number;
}

export interface AnswerContext {
  readonly client: DialectName;
  readonly stamp: RequestStamp;
  /** The client's name of the model. Claude Code drops thoughts of other models. */
  readonly model: string;
  readonly tools: ToolTable;
  /** Codex takes a capped answer for a broken one. */
  readonly isCodex: boolean;
  readonly wishes: Wishes;
  readonly isJson: boolean;
  readonly closeSeal: (seal: Seal) => string;
  /** What the upstream's meter has counted. */
  readonly count: () => Usage;
}

export interface WholeAnswer {
  readonly blocks: readonly Block[];
  readonly end: AnswerEnd;
  readonly about: AnswerAbout;
}

export abstract class AnswerWriter implements AnswerListener {
  protected readonly context: AnswerContext;
  protected tool: Tool | null = null;
  /** The open block is written only at its end. */
  protected isHeld = false;
  /** The call's input has not begun. If it begins without a `{`, the block is held. */
  #mayBeOdd = false;
  #parts: (string | Json)[] = [];

  constructor(context: AnswerContext) {
    this.context = context;
  }

  /** `isLong`: in slices, because a stream's end may repeat the output five times. */
  take(isLong: boolean): string | Slices {
    const parts = this.#parts;
    this.#parts = [];
    if (isLong && parts.length > 0) return { [Symbol.iterator]: () => writeSlices(parts) };
    return parts.map((part) => (typeof part === "string" ? part : JSON.stringify(part))).join("");
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

  fail(failure: UpstreamError): void {
    const { client, stamp } = this.context;
    this.put(DIALECTS[client].errorEvent(toClientError(failure, client), stamp.id, this.position()));
  }

  /** An object must not change afterwards. */
  protected put(...parts: readonly (string | Json)[]): void {
    this.#parts.push(...parts);
  }

  protected position(): StreamBreak {
    return {};
  }

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

export function readCall(block: Block, { tools }: AnswerContext) {
  const tool = findTool(tools, block.name);
  return { tool, name: tool?.name ?? block.name, input: finishInput(tool, block) };
}

export function isFreeText({ isFree }: Block, tool: Tool | null): boolean {
  return isFree || tool?.kind === "custom";
}

/** Some servers repeat their ids, and Claude Code treats answers with the same id as one. */
export function nameAnswer({ stamp }: Pick<AnswerContext, "stamp">): string {
  return stamp.id.replace(/^req_/, "");
}

export function sumUsage(usage: Usage) {
  return {
    prompt: countTokens(usage, PROMPT_KINDS),
    read: countTokens(usage, READ_KINDS),
    written: countTokens(usage, WRITE_KINDS),
    output: countTokens(usage, OUTPUT_KINDS),
    reasoning: usage.reasoning ?? 0,
  };
}
