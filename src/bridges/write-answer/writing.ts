// What the writers of answers share.

import type { Usage } from "../../billing/usage.ts";
import type { DialectName, StreamBreak } from "../../dialects/dialect.ts";
import { DIALECTS } from "../../dialects/endpoints.ts";
import type { RequestStamp } from "../responses-to-chat/context.ts";
import type { Seal, Tool } from "../turn/conversation.ts";
import { explainFailure, type Failure } from "../turn/failure.ts";
import { findTool, type ToolTable } from "../turn/names.ts";
import type { AnswerEnd, AnswerListener, Block } from "../turn/sequence.ts";
import { finishInput } from "../turn/tool-input.ts";

/** What an answer needs from its request. */
export interface AnswerContext {
  readonly client: DialectName;
  readonly stamp: RequestStamp;
  /** As the client named it: Claude Code drops the thoughts of other models. */
  readonly model: string;
  readonly tools: ToolTable;
  /** Codex takes an answer that was cut by its cap for a broken one. */
  readonly isCodex: boolean;
  readonly wantsUsage: boolean;
  readonly closeSeal: (seal: Seal) => string;
  /** What the upstream's meter has counted. */
  readonly count: () => Usage;
}

/** The end of an answer that has all of its blocks. */
export interface WholeAnswer {
  readonly id: string;
  readonly blocks: readonly Block[];
  readonly end: AnswerEnd;
}

/** Writes the stream of a client's dialect. */
export abstract class AnswerWriter implements AnswerListener {
  protected readonly context: AnswerContext;
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

  abstract begin(id: string): void;
  abstract open(block: Block): void;
  abstract delta(block: Block, piece: string): void;
  abstract close(block: Block): void;
  abstract end(end: AnswerEnd): void;
  abstract idle(): void;
}

/** The client's own tool and name, and the input as it takes it. */
export function readCall(
  block: Block,
  { tools }: AnswerContext,
): { tool: Tool | null; name: string; input: string } {
  const tool = findTool(tools, block.name);
  return { tool, name: tool?.name ?? block.name, input: finishInput(tool, block.text) };
}

/** An answer's id with the prefix of the client's dialect. Clients need one. */
export function nameAnswer(prefix: string, id: string, { stamp }: AnswerContext): string {
  const plain = (id || stamp.id).replace(/^(?:msg|resp|chatcmpl|req|gen)[_-]/, "").replaceAll(/[^\w-]/g, "_");
  return `${prefix}${plain}`;
}
