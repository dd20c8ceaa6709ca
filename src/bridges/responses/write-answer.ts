// Writes blocks as an answer for a responses client.
// Its last event repeats the whole answer.

import type { Usage } from "../../billing/usage.ts";
import type { StreamBreak } from "../../dialects/dialect.ts";
import { DIALECTS } from "../../dialects/endpoints.ts";
import { formResponse as fillResponse } from "../../dialects/formats/responses.ts";
import { GatewayError } from "../../lib/errors.ts";
import { getField, parseFlatJson } from "../../lib/json/json.ts";
import type { Json } from "../neutral/notes.ts";
import type { AnswerEnd, Block, EndReason } from "../neutral/sequence.ts";
import { findTool } from "../neutral/tools.ts";
import {
  type AnswerContext,
  AnswerWriter,
  nameAnswer,
  readCall,
  sumUsage,
  type WholeAnswer,
} from "../neutral/write-answer.ts";

/** Null: the response is complete. */
export const INCOMPLETE_REASONS: Readonly<Record<EndReason, string | null>> = {
  done: null,
  calls: null,
  cap: "max_output_tokens",
  stop: null,
  declined: null,
  refusal: "content_filter",
  context: "max_output_tokens",
};

const DELTAS: Readonly<Record<Exclude<Block["kind"], "search">, string>> = {
  text: "response.output_text.delta",
  refusal: "response.refusal.delta",
  reasoning: "response.reasoning_summary_text.delta",
  call: "response.function_call_arguments.delta",
};

export class ResponsesAnswerWriter extends AnswerWriter {
  #sequence = 0;
  readonly #id = `resp_${nameAnswer(this.context)}`;
  readonly #begun = { response: formObject(this.#id, "in_progress", this.context, { output: [] }) };
  #items: Json[] = [];
  #hasPart = false;

  begin(): void {
    this.#event("response.created", this.#begun);
    this.idle();
  }

  /** Sends an event, because Codex ignores comments in a stream. */
  idle(): void {
    this.#event("response.in_progress", this.#begun);
  }

  protected start(block: Block): void {
    this.#hasPart = false;
    const item = formItem({ ...block, text: "", seal: null }, this.#id, this.context, "in_progress");
    this.#event("response.output_item.added", { output_index: block.index, item });
    if (!isSpoken(block)) return;
    const part = formPart(block, "", this.context);
    this.#event("response.content_part.added", { ...this.#place(block), part });
  }

  protected grow(block: Block, piece: string): void {
    if (block.kind === "reasoning") this.#announceSummary(block);
    const kind = block.kind === "refusal" && this.context.isCodex ? "text" : block.kind;
    if (kind === "search") return;
    const isCustom = this.tool?.kind === "custom";
    const type = isCustom ? "response.custom_tool_call_input.delta" : DELTAS[kind];
    const logprobs = kind === "text" ? [] : undefined;
    this.#event(type, { ...this.#place(block), delta: piece, logprobs });
  }

  close(block: Block): void {
    if (block.kind === "call") this.#finishCall(block);
    else if (block.kind === "reasoning") this.#finishThought(block);
    else if (isSpoken(block)) this.#finishText(block);
    const item = formItem(block, this.#id, this.context, "completed");
    this.#items.push(item);
    this.#event("response.output_item.done", { output_index: block.index, item });
  }

  end({ reason }: AnswerEnd): void {
    const { isCodex, client, stamp } = this.context;
    if (isCodex && (reason === "refusal" || reason === "declined") && this.#items.length === 0) {
      const error = new GatewayError("bad_request", REFUSED, { wireCode: "invalid_prompt" });
      return this.put(DIALECTS[client].errorEvent(error, stamp.id, this.position()));
    }
    const response = formResponse(this.#id, this.#items, reason, this.context);
    const type = response["status"] === "completed" ? "response.completed" : "response.incomplete";
    this.#event(type, { response });
  }

  protected override position(): StreamBreak {
    return { id: this.#id, model: this.context.model, sequence: this.#sequence };
  }

  /** Each item has only one part or summary, at index 0. */
  #place(block: Block): Json {
    return {
      item_id: nameItem(block, this.#id, this.context),
      output_index: block.index,
      content_index: isSpoken(block) ? 0 : undefined,
      summary_index: block.kind === "reasoning" ? 0 : undefined,
    };
  }

  #announceSummary(block: Block): void {
    if (this.#hasPart) return;
    this.#hasPart = true;
    const part = { type: "summary_text", text: "" };
    this.#event("response.reasoning_summary_part.added", { ...this.#place(block), part });
  }

  #finishThought(block: Block): void {
    if (!this.#hasPart) return;
    const { text } = block;
    const place = this.#place(block);
    const part = { type: "summary_text", text };
    this.#event("response.reasoning_summary_text.done", { ...place, text });
    this.#event("response.reasoning_summary_part.done", { ...place, part });
  }

  #finishText(block: Block): void {
    const { text } = block;
    const place = this.#place(block);
    const part = formPart(block, text, this.context);
    if (block.kind === "refusal" && !this.context.isCodex)
      this.#event("response.refusal.done", { ...place, refusal: text });
    else this.#event("response.output_text.done", { ...place, text, logprobs: [] });
    this.#event("response.content_part.done", { ...place, part });
  }

  #finishCall(block: Block): void {
    const { tool } = this;
    if (tool?.form !== undefined) return;
    const rest = this.readRest(block);
    if (rest !== null) this.grow(block, rest);
    const place = this.#place(block);
    const { input, name } = readCall(block, this.context);
    if (tool?.kind === "custom")
      return this.#event("response.custom_tool_call_input.done", { ...place, input });
    const done = { ...place, name: tool?.inside?.name ?? name, arguments: input };
    this.#event("response.function_call_arguments.done", done);
  }

  #event(type: string, data: Json): void {
    this.put(`event: ${type}\ndata: `, { type, sequence_number: this.#sequence, ...data }, "\n\n");
    this.#sequence += 1;
  }
}

const REFUSED = "The model refused to answer.";

export function writeWholeResponses({ blocks, end }: WholeAnswer, context: AnswerContext): string {
  const name = `resp_${nameAnswer(context)}`;
  const items = blocks.map((block) => formItem(block, name, context, "completed"));
  return JSON.stringify(formResponse(name, items, end.reason, context));
}

function formResponse(id: string, output: readonly Json[], why: EndReason, context: AnswerContext): Json {
  const reason = context.isCodex ? null : INCOMPLETE_REASONS[why];
  const status = reason === null ? "completed" : "incomplete";
  const usage = writeUsage(context.count());
  return formObject(id, status, context, { output, usage, incomplete_details: reason && { reason } });
}

function formObject(id: string, status: string, { model, stamp }: AnswerContext, more: Json): Json {
  return { ...fillResponse({ id, created_at: Math.floor(stamp.time / 1000), status, model, ...more }) };
}

function isSpoken({ kind }: Block): boolean {
  return kind === "text" || kind === "refusal";
}

const PREFIXES: Readonly<Record<Block["kind"], string>> = {
  text: "msg_",
  refusal: "msg_",
  reasoning: "rs_",
  call: "fc_",
  search: "ws_",
};

function nameItem({ kind, index, name }: Block, id: string, { tools }: AnswerContext): string {
  const isCustom = kind === "call" && findTool(tools, name)?.kind === "custom";
  return `${isCustom ? "ctc_" : PREFIXES[kind]}${id.replace(/^resp_/, "")}_${index}`;
}

function formPart({ kind }: Block, text: string, { isCodex }: AnswerContext): Json {
  if (kind === "refusal" && !isCodex) return { type: "refusal", refusal: text };
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function formItem(block: Block, id: string, context: AnswerContext, status: string): Json {
  const { kind, text, seal, sources } = block;
  const own = nameItem(block, id, context);
  if (kind === "call") return formCall(block, own, context, status);
  if (kind === "search") {
    const action = { type: "search", query: text, sources: sources.map(({ url }) => ({ type: "url", url })) };
    return { id: own, type: "web_search_call", status, action };
  }
  if (kind === "reasoning") {
    const summary = text === "" ? [] : [{ type: "summary_text", text }];
    const encrypted_content = seal === null ? undefined : context.closeSeal(seal);
    return { id: own, type: "reasoning", summary, encrypted_content };
  }
  const content = status === "completed" ? [formPart(block, text, context)] : [];
  return { id: own, type: "message", status, role: "assistant", content };
}

function formCall(block: Block, id: string, context: AnswerContext, status: string): Json {
  const { tool, name, input } = readCall(block, context);
  const call_id = block.id;
  const whole = status === "completed" ? input : "";
  const { inside } = tool ?? {};
  const own = inside === undefined ? { name } : { name: inside.name, namespace: inside.namespace };
  if (tool?.kind === "custom") return { id, type: "custom_tool_call", status, call_id, ...own, input: whole };
  if (tool?.form === "tool_search")
    return {
      id,
      type: "tool_search_call",
      status,
      call_id,
      execution: "client",
      arguments: parseFlatJson(input) ?? {},
    };
  if (tool?.form === "local_shell") {
    const action = { type: "exec", env: {}, command: getField(parseFlatJson(input), "command") ?? [] };
    return { id, type: "local_shell_call", status, call_id, action };
  }
  return { id, type: "function_call", status, call_id, ...own, arguments: whole };
}

function writeUsage(usage: Usage): Json {
  const { prompt, read, written, output, reasoning } = sumUsage(usage);
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: read, cache_write_tokens: written },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  };
}
